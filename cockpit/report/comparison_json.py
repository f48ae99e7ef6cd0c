"""The JSON of a comparison. The structs are its schema; a name never changes meaning."""

from __future__ import annotations

from typing import Any

import msgspec

from cockpit.analysis.comparison import Beside, Comparison, Different, all_host_figures, distribution
from cockpit.analysis.sides import Side
from cockpit.model.text import escaped
from cockpit.report.verdicts import VerdictJson, verdict_json

_BUCKETS = 64


class SideJson(msgspec.Struct, frozen=True, kw_only=True):
    """One side: its name as requested, its segments by number and label, and the plan without secrets, in words.

    `start` and `end` are session seconds, `wall` the epoch second at which the session began. `knobs`: active
    values, null if none is set."""

    name: str
    session: str
    wall: float
    runs: list[int]
    rows: list[str]
    start: float
    end: float
    url: str
    knobs: dict[str, str | None]


class FigureJson(msgspec.Struct, frozen=True, kw_only=True):
    """A metric of both sides in the unit that thresholds use (seconds, per second, per cent, bytes); null: no data.
    `change` is the relative difference (0.1: a tenth more)."""

    figure: str
    before: float | None
    after: float | None
    change: float | None


class DifferentJson(msgspec.Struct, frozen=True, kw_only=True):
    """Differences between the sides, as text."""

    what: str
    before: str
    after: str


class DistributionJson(msgspec.Struct, frozen=True, kw_only=True):
    """Shares of responses by buckets of latency; `edges` are seconds, one more than there are buckets."""

    edges: list[float]
    before: list[float]
    after: list[float]


class CompareJson(msgspec.Struct, frozen=True, kw_only=True):
    """`load` is the difference between the two loads in words; empty: none. `failures` count errors, unexpected
    responses and statuses from 400 on, by kind. `verdicts` is one, or one per pair of segments under the same load."""

    before: SideJson
    after: SideJson
    load: list[str]
    settings: list[DifferentJson]
    surroundings: list[DifferentJson]
    figures: list[FigureJson]
    failures: list[FigureJson]
    hosts: dict[str, list[FigureJson]]
    distribution: DistributionJson
    verdicts: list[VerdictJson]


def comparison_json(comparison: Comparison) -> str:
    """Indented, no line end; hostile characters are escaped."""
    encoded = msgspec.json.encode(to_json(comparison))
    return escaped(msgspec.json.format(encoded, indent=2).decode())


def to_json(comparison: Comparison) -> CompareJson:
    """Return the comparison in the shape of the schema, with every metric of every host."""
    one, two = all_host_figures(comparison.before), all_host_figures(comparison.after)
    before, after = comparison.before.result.counts.latency, comparison.after.result.counts.latency
    spread = distribution(before, after, _BUCKETS)
    return CompareJson(
        before=_side(comparison.before),
        after=_side(comparison.after),
        load=list(comparison.load),
        settings=[_different(found) for found in comparison.settings],
        surroundings=[_different(found) for found in comparison.surroundings],
        figures=[_figure(found) for found in comparison.figures],
        failures=[_figure(found) for found in comparison.errors],
        hosts={
            name: [
                _figure(Beside(key, one.get(name, {}).get(key), two.get(name, {}).get(key)))
                for key in dict.fromkeys((*one.get(name, {}), *two.get(name, {})))
            ]
            for name in dict.fromkeys((*one, *two))
        },
        distribution=DistributionJson(
            edges=[edge / 1e9 for edge in spread.edges], before=list(spread.before), after=list(spread.after)
        ),
        verdicts=[verdict_json(verdict) for verdict in comparison.verdicts],
    )


def compare_schema() -> dict[str, Any]:
    """JSON Schema of `cockpit compare --json`."""
    return msgspec.json.schema(CompareJson)


def _side(side: Side) -> SideJson:
    started = side.state.started
    return SideJson(
        name=side.name,
        session=started.name if started else "",
        wall=started.wall if started else 0.0,
        runs=sorted({row.run for row in side.rows}),
        rows=[f"{row.number} {row.label}" for row in side.rows],
        start=side.rows[0].start,
        end=side.rows[-1].last,
        url=side.result.plan.without_secrets().url,
        knobs=dict(side.knobs),
    )


def _figure(found: Beside) -> FigureJson:
    return FigureJson(figure=found.name, before=found.before, after=found.after, change=found.change)


def _different(found: Different) -> DifferentJson:
    return DifferentJson(what=found.what, before=found.before, after=found.after)
