"""A comparison as JSON, whose structs are its schema, and as text for the terminal."""

from __future__ import annotations

import msgspec

from cockpit.analysis.comparison import Comparison, Difference, MetricPair, distribution
from cockpit.analysis.verdicts.sides import Side
from cockpit.analysis.words.comparison import differences, overlaid, tables
from cockpit.analysis.words.timeline import segment_label
from cockpit.document.model import Document, Items, Pairs, Paragraph, Part, Table
from cockpit.document.text import Paint, plain, to_text
from cockpit.metrics.values import all_host_metrics
from cockpit.model.text import clock
from cockpit.report.capacity import compared_words, results_of
from cockpit.report.encoding import struct_from, to_json
from cockpit.report.verdicts import VerdictJson, verdict_blocks, verdict_json
from cockpit.report.words import plan_words

_BUCKETS = 64


class SideJson(msgspec.Struct, frozen=True, kw_only=True):
    """One side: its name as requested, the numbers of its runs, and its segments (`rows`: number and label). `start`
    and `end` are session seconds, `wall` is the start of the session (epoch s). `knobs` are active values; null:
    unset."""

    name: str
    session: str
    wall: float
    runs: list[int]
    rows: list[str]
    start: float
    end: float
    url: str
    knobs: dict[str, str | None]


class MetricJson(msgspec.Struct, frozen=True, kw_only=True):
    """A metric of both sides in the unit that thresholds use (seconds, per second, percent, bytes); null: no data.
    `change` is the relative difference (0.1: 10% more)."""

    name: str
    before: float | None
    after: float | None
    change: float | None


class DistributionJson(msgspec.Struct, frozen=True, kw_only=True):
    """Shares of responses by buckets of latency; `edges` are seconds, one more than there are buckets."""

    edges: list[float]
    before: list[float]
    after: list[float]


class CompareJson(msgspec.Struct, frozen=True, kw_only=True):
    """`load` lists differences between the two loads as text. `failures` counts errors, unexpected responses and
    statuses of 400 or above, by kind. `verdicts` has one verdict, or one per pair of segments under the same
    load. `capacity` compares the capacities that were found by searches within the same limits; "": none."""

    before: SideJson
    after: SideJson
    load: list[str]
    settings: tuple[Difference, ...]
    environment: tuple[Difference, ...]
    metrics: list[MetricJson]
    failures: list[MetricJson]
    hosts: dict[str, list[MetricJson]]
    distribution: DistributionJson
    verdicts: list[VerdictJson]
    capacity: str


def comparison_json(comparison: Comparison) -> str:
    return to_json(compare_json(comparison))


def compare_json(comparison: Comparison) -> CompareJson:
    """Return the comparison in the shape of the schema, with every metric of every host."""
    first, second = all_host_metrics(comparison.before.result), all_host_metrics(comparison.after.result)
    before, after = comparison.before.result.counts.latency, comparison.after.result.counts.latency
    spread = distribution(before, after, _BUCKETS)
    return CompareJson(
        before=_side(comparison.before),
        after=_side(comparison.after),
        load=list(comparison.load),
        settings=comparison.settings,
        environment=comparison.environment,
        metrics=[struct_from(MetricJson, pair) for pair in comparison.metrics],
        failures=[struct_from(MetricJson, pair) for pair in comparison.errors],
        hosts={
            name: [
                struct_from(MetricJson, MetricPair(key, first.get(name, {}).get(key), second.get(name, {}).get(key)))
                for key in dict.fromkeys((*first.get(name, {}), *second.get(name, {})))
            ]
            for name in dict.fromkeys((*first, *second))
        },
        distribution=DistributionJson(
            edges=[edge / 1e9 for edge in spread.edges], before=list(spread.before), after=list(spread.after)
        ),
        verdicts=[verdict_json(verdict) for verdict in comparison.verdicts],
        capacity=capacity_comparison(comparison),
    )


def capacity_comparison(comparison: Comparison) -> str:
    """Return the last capacities of both sides, and how they differ; "" if a side has none."""
    sides = (comparison.before, comparison.after)
    results = [results_of(side.state, side.segments[-1].run) for side in sides]
    return compared_words(results[0][-1], results[1][-1]) if all(results) else ""


def _side(side: Side) -> SideJson:
    started = side.state.started
    return SideJson(
        name=side.name,
        session=started.name if started else "",
        wall=started.wall if started else 0.0,
        runs=sorted({segment.run for segment in side.segments}),
        rows=[f"{segment.number} {segment_label(segment)}" for segment in side.segments],
        start=side.segments[0].start,
        end=side.segments[-1].last,
        url=side.result.plan.without_secrets().url,
        knobs=dict(side.knobs),
    )


_DRAWN_BUCKETS = 20
_BARS = 44


def comparison_text(comparison: Comparison, paint: Paint = plain) -> str:
    return to_text(comparison_document(comparison), paint)


def comparison_document(comparison: Comparison) -> Document:
    """Return both sides, the verdicts, the differences of settings and machines, and all metrics."""
    before, after = comparison.before, comparison.after
    sides = [("before", side_words(before)), ("after", side_words(after)), ("load", plan_words(after.result.plan))]
    unlike = [f"the load differs: {', '.join(comparison.load)}"] if comparison.load else []
    compared = [
        Table((f"{title} that differ", "before", "after"), [row[:3] for row in rows])
        for title, rows in differences(comparison)
    ]
    compared += [Table((title, "before", "after", "differs by"), rows) for title, rows in tables(comparison)]
    latencies = [side.result.counts.latency for side in (before, after)]
    bars = Table(
        (f"{after.result.counts.latency_name} time, ms", "█ both, ▀ only before, ▄ only after", "before   after"),
        overlaid(latencies[0], latencies[1], _DRAWN_BUCKETS, _BARS),
    )
    return Document(
        "",
        [Pairs(sides), Items(unlike, "warn"), Paragraph(capacity_comparison(comparison))],
        [
            Part("", [block for verdict in comparison.verdicts for block in verdict_blocks(verdict)]),
            *(Part("", [table]) for table in (*compared, bars)),
        ],
    )


def side_words(side: Side) -> str:
    first, last = side.segments[0], side.segments[-1]
    runs = sorted({segment.run for segment in side.segments})
    which = f"run {runs[0]}" if len(runs) == 1 else f"runs {runs[0]} to {runs[-1]}"
    label = segment_label(first)
    label += f" and {len(side.segments) - 1} more segments" if len(side.segments) > 1 else ""
    return f"{side.name}  {which}, {label}, {clock(first.start)} to {clock(last.last)}"
