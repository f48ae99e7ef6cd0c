"""The machines that load comes from: a line each, and a table of all that is known of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from textual.binding import BindingType
from textual.content import Content

from cockpit.model.fold_load import SATURATED_CPU, SATURATED_LAG
from cockpit.model.generators import GeneratorState
from cockpit.model.state import State
from cockpit.model.text import clock, milliseconds, neutral, si
from cockpit.tui.dialogs.live_text import LiveText
from cockpit.tui.draw_context import DrawContext
from cockpit.tui.key_names import closing
from cockpit.tui.key_table import MainKey
from cockpit.tui.terminal.lines import Lines
from cockpit.tui.terminal.styled_line import Line, Piece, clip, fit

# Maximum lines, and cells of a name.
MOST, _NAME = 6, 16
_TITLES = ("generator", "workers", "req/s", "cpu", "cpu wait", "lag p99", "clock offset", "±", "drift")
_WIDTHS = (_NAME, 7, 7, 5, 9, 9, 15, 9, 10)


class Generators(Lines):
    DEFAULT_CSS = "Generators { height: 0; padding: 0 1; }"

    def draw(self, context: DrawContext, width: int, height: int) -> list[Line]:
        known = list(context.state.generators.values())
        # Lost ones are shown first if there are too many.
        shown = sorted(known, key=lambda one: one.lost is None)[:height] if len(known) > height else known
        longest = min(_NAME, max((len(one.name) for one in shown), default=0))
        return [clip(_line(one, longest), width) for one in shown]


def _line(one: GeneratorState, longest: int) -> Line:
    name: Piece = (fit(neutral(one.name), longest), "strong")
    if one.lost is not None:
        t, reason = one.lost
        return (("generator ", "dim"), name, (f" LOST at {clock(t)}: {neutral(reason)}", "failed"))
    line: list[Piece] = [("generator ", "dim"), name]
    if one.last is not None:
        cpu, lag = one.last.cpu, one.last.lag
        line += [(" req/s ", "dim"), (f"{si(one.last.completed):>5}", "")]
        line += [("  cpu ", "dim"), (f"{100 * cpu:3.0f}%", "alarm" if cpu >= SATURATED_CPU else "")]
        line += [("  lag ", "dim"), (f"{milliseconds(lag)} ms", "alarm" if lag >= SATURATED_LAG else "")]
    if one.offset is not None:
        line += [("  clock ±", "dim"), (f"{milliseconds(one.uncertainty)} ms", "")]
    if one.drift:
        line.append((f", drifts {one.drift * 1e6:+.0f} µs/s", "dim"))
    return tuple(line)


class GeneratorScreen(LiveText):
    """A row per machine that load comes from, of its last whole second."""

    BINDINGS: ClassVar[list[BindingType]] = [closing(MainKey.GENERATORS)]
    heading = "machines that load comes from"

    def lines(self, state: State) -> Iterator[Content]:
        return _table(state)


def _table(state: State) -> Iterator[Content]:
    """Head, a row per machine, and what the columns mean."""
    yield Content.styled(_row(_TITLES), "$cockpit-dim")
    for one in state.generators.values():
        name = fit(neutral(one.name), _NAME)
        if one.lost is not None:
            t, reason = one.lost
            yield Content.styled(f"{name} LOST at {clock(t)}: {neutral(reason)}", "$cockpit-worse")
            continue
        last, known = one.last, one.offset is not None
        saturated = last is not None and (last.cpu >= SATURATED_CPU or last.lag >= SATURATED_LAG)
        cells = (
            name,
            str(state.machines.count(one.name)),
            *(
                ("", "", "", "")
                if last is None
                else (
                    si(last.completed),
                    f"{100 * last.cpu:.0f}%",
                    f"{milliseconds(last.cpu_wait)} ms",
                    f"{milliseconds(last.lag)} ms",
                )
            ),
            f"{one.offset:+.4f} s" if one.offset is not None else "",
            f"{milliseconds(one.uncertainty)} ms" if known else "",
            f"{one.drift * 1e6:+.0f} µs/s" if one.drift else "",
        )
        yield Content.styled(_row(cells), "$cockpit-warn" if saturated else "")
    yield Content.styled(
        "cpu: of its busiest load worker · cpu wait: of all its workers, per second · lag: how late requests start"
        "\nclock offset: what is added to its clock to get this machine's, off by at most ±",
        "$cockpit-dim",
    )


def _row(cells: tuple[str, ...]) -> str:
    first, *more = zip(cells, _WIDTHS, strict=True)
    return fit(*first) + " ".join(f"{cell:>{width}}" for cell, width in more)
