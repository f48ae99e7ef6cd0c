"""The machines that load comes from, a line each."""

from __future__ import annotations

from cockpit.model.fold_load import SATURATED_CPU, SATURATED_LAG
from cockpit.model.generator_state import GeneratorState
from cockpit.model.text import clock, milliseconds, neutral, si
from cockpit.tui.draw_context import DrawContext
from cockpit.tui.terminal.lines import Lines
from cockpit.tui.terminal.styled_line import Line, Piece, clip, fit

# Maximum lines, and cells of a name.
MOST, _NAME = 6, 16


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
