"""The machines that generate load: one line per machine, and a table of their metrics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from textual.binding import BindingType
from textual.content import Content

from cockpit.model.fold.load import SATURATED_CPU, SATURATED_LAG
from cockpit.model.generators import GeneratorState
from cockpit.model.state import State
from cockpit.model.text import clock, milliseconds, sanitize, si
from cockpit.tui.dialogs.live_text import LiveText
from cockpit.tui.draw_context import DrawContext
from cockpit.tui.key_names import close_binding
from cockpit.tui.key_table import MainKey
from cockpit.tui.terminal.lines import Lines
from cockpit.tui.terminal.styled_line import Line, Piece, clip, fit

# Maximum number of lines; width of a name in cells.
MOST, _NAME = 6, 16
_TITLES = ("generator", "workers", "req/s", "cpu", "cpu wait", "lag p99", "clock offset", "±", "drift")
_WIDTHS = (_NAME, 7, 7, 5, 9, 9, 15, 9, 10)


class Generators(Lines):
    DEFAULT_CSS = "Generators { height: 0; padding: 0 1; }"

    def draw(self, context: DrawContext, width: int, height: int) -> list[Line]:
        generators = list(context.state.generators.values())
        # If not all fit, lost generators come first.
        fits = len(generators) <= height
        shown = generators if fits else sorted(generators, key=lambda each: each.lost is None)[:height]
        longest = min(_NAME, max((len(each.name) for each in shown), default=0))
        return [clip(_line(each, longest), width) for each in shown]


def _line(generator: GeneratorState, longest: int) -> Line:
    name: Piece = (fit(sanitize(generator.name), longest), "strong")
    if generator.lost is not None:
        t, reason = generator.lost
        return (("generator ", "dim"), name, (f" LOST at {clock(t)}: {sanitize(reason)}", "failed"))
    line: list[Piece] = [("generator ", "dim"), name]
    if generator.last is not None:
        cpu, lag = generator.last.cpu, generator.last.lag
        line += [(" req/s ", "dim"), (f"{si(generator.last.completed):>5}", "")]
        line += [("  cpu ", "dim"), (f"{100 * cpu:3.0f}%", "alarm" if cpu >= SATURATED_CPU else "")]
        line += [("  lag ", "dim"), (f"{milliseconds(lag)} ms", "alarm" if lag >= SATURATED_LAG else "")]
    if generator.offset is not None:
        line += [("  clock ±", "dim"), (f"{milliseconds(generator.uncertainty)} ms", "")]
    if generator.drift:
        line.append((f", drift {generator.drift * 1e6:+.0f} µs/s", "dim"))
    return tuple(line)


class GeneratorScreen(LiveText):
    """One row per machine that generates load, with the values of its last complete second."""

    BINDINGS: ClassVar[list[BindingType]] = [close_binding(MainKey.GENERATORS)]
    heading = "load generators"

    def lines(self, state: State) -> Iterator[Content]:
        return _table(state)


def _table(state: State) -> Iterator[Content]:
    """Yield the header, one row per generator, and a legend of the columns."""
    yield Content.styled(_row(_TITLES), "$cockpit-dim")
    for generator in state.generators.values():
        name = fit(sanitize(generator.name), _NAME)
        if generator.lost is not None:
            t, reason = generator.lost
            yield Content.styled(f"{name} LOST at {clock(t)}: {sanitize(reason)}", "$cockpit-worse")
            continue
        last = generator.last
        saturated = last is not None and (last.cpu >= SATURATED_CPU or last.lag >= SATURATED_LAG)
        cells = (
            name,
            str(state.machines.count(generator.name)),
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
            f"{generator.offset:+.4f} s" if generator.offset is not None else "",
            f"{milliseconds(generator.uncertainty)} ms" if generator.offset is not None else "",
            f"{generator.drift * 1e6:+.0f} µs/s" if generator.drift else "",
        )
        yield Content.styled(_row(cells), "$cockpit-warn" if saturated else "")
    yield Content.styled(
        "cpu: busiest load worker · cpu wait: all its load workers, per second · lag: delay of requests behind schedule"
        "\nclock offset: clock of this machine minus clock of the generator; ±: maximum error",
        "$cockpit-dim",
    )


def _row(cells: tuple[str, ...]) -> str:
    first, *more = zip(cells, _WIDTHS, strict=True)
    return fit(*first) + " ".join(f"{cell:>{width}}" for cell, width in more)
