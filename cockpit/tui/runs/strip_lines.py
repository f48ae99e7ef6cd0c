"""The verdict strip as lines: its word and mark, a forest plot of its effects, and a bar for the seconds left. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from msgspec.structs import replace
from rich.cells import cell_len

from cockpit.analysis.effects import metric_of
from cockpit.analysis.outcome import DIFFERENT, Design, Effect, Outcome, Verdict
from cockpit.analysis.words import (
    amount_words,
    change_words,
    detectable_words,
    margin_words,
    metric_words,
    objection_words,
    too_few_words,
)
from cockpit.tui.charts.forest import axis, forest_row, scale_end
from cockpit.tui.draw_context import DrawContext
from cockpit.tui.runs.strip import Strip, VerdictProgress, strip
from cockpit.tui.terminal.lines import Lines
from cockpit.tui.terminal.styled_line import EMPTY, Line, Spot, clip, ends, fit, length, rule

MARKS = {
    Outcome.BETTER: "▲",
    Outcome.WORSE: "▼",
    Outcome.EQUIVALENT: "≈",
    Outcome.INCONCLUSIVE: "?",
    Outcome.INVALID: "!",
}
ROLES = {
    Outcome.BETTER: "better_value",
    Outcome.WORSE: "worse_value",
    Outcome.EQUIVALENT: "",
    Outcome.INCONCLUSIVE: "dim",
    Outcome.INVALID: "dim",
}
# Roles of the word; a likely outcome has the role of a metric.
_WORD_ROLES = {**dict.fromkeys(Outcome, "strong"), Outcome.BETTER: "better", Outcome.WORSE: "worse"}
# Metrics that can decide a verdict whose headline shows no difference.
_DECIDING = ("errors", "rate", "p50", "p99", "cpu.per_request", "cpu.busy")
# Cells of the marks, the widest name, change and interval, and the narrowest plot.
_MARK, _NAME, _CHANGE, _PLOT = 3, 16, 24, 11
_BAR = 12


def strip_lines(of: Strip, width: int, height: int) -> list[Line]:
    """Return the strip in full if `height` has room for it, else its word and as many effects as fit."""
    lines = full_lines(of, width)
    return lines if len(lines) <= height else _compact_lines(of, width, height)


def full_lines(of: Strip, width: int) -> list[Line]:
    """Return title, word, one line per effect, and the scale."""
    title = rule((("verdict ", "strong"), (of.change, "text")), ((of.compared, "dim"),), width)
    word = _word(of)
    if of.verdict.outcome is Outcome.INVALID:
        lines = [title, *_invalid_lines(of, width, str(of.verdict.outcome))]
    else:
        lines = [title, ends(word, _progress_line(of.progress, width - length(word) - 2), width)]
        lines += [(("   next: ", "dim"), (of.next, ""))] if of.next else []
    rows, room = _rows(of, of.effects, width)
    if not rows:
        return lines
    basis: Line = ((fit(_basis(of), width - room), "dim"),)
    return [*lines, *rows, (*basis, *axis(scale_end(of.effects), room))]


def _compact_lines(of: Strip, width: int, height: int) -> list[Line]:
    """Return the word in the title, then the next step, or effects."""
    word = _word(of, short=True)
    asked = of.next and of.verdict.outcome is not Outcome.INVALID
    rest: Line = ((f"next: {of.next}" if asked else of.compared, "dim"),)
    title = rule((*word, ("  ", ""), (of.change, "dim")), _progress_line(of.progress, 28) or rest, width)
    if of.verdict.outcome is Outcome.INVALID:
        return [title, *_invalid_lines(of, width)][:height]
    return [title, *_rows(of, _first(of, height - 1), width)[0]][:height]


def _invalid_lines(of: Strip, width: int, word: str = "") -> list[Line]:
    """Return two lines: `word`, the reason, and the next step."""
    text = f"{f'{word}: ' if word else ''}{_reason(of.verdict)}; next: {of.next}"
    first, *rest = wrap(text, max(_MARK, width - _MARK))
    mark = MARKS[of.verdict.outcome] if word else ""
    return [((fit(mark, _MARK) + first, "strong"),), clip(((" " * _MARK + " ".join(rest), "strong"),), width)]


def strip_words(of: Strip) -> Line:
    """Return the strip as a single line: mark, word, the deciding effect, and the seconds left."""
    left = f", {of.progress.words}" if of.progress else ""
    return (*_word(of), (left, ""))


def full_height(of: Strip) -> int:
    return 2 + bool(of.next) + (len(of.effects) + 1 if of.effects else 0)


def compact_height(of: Strip, most: int) -> int:
    return 3 if of.verdict.outcome is Outcome.INVALID else 1 + min(most, len(of.effects))


def _word(of: Strip, short: bool = False) -> Line:
    """Return mark and word, and the deciding effect unless `short`."""
    verdict = of.verdict
    # Another metric than the first may have concluded the verdict.
    likely = _likely(of, of.effects[0]) if of.effects and verdict.outcome is Outcome.INCONCLUSIVE else None
    role = ROLES[likely] if likely else _WORD_ROLES[verdict.outcome]
    if likely:
        word = f"{MARKS[likely]}? likely {likely}"
    elif verdict.outcome is Outcome.INCONCLUSIVE and of.progress:
        word = f"{MARKS[verdict.outcome]}  {verdict.outcome} so far"
    else:
        word = f"{MARKS[verdict.outcome]}  {verdict.outcome}{', at least' if verdict.at_least else ''}"
    detail = "" if short else _detail(of)
    return ((word, role), (f": {detail}" if detail else "", "text"))


def _likely(of: Strip, effect: Effect) -> Outcome | None:
    """Return the likely outcome of an effect, while more load can still conclude it."""
    return effect.likely if of.verdict.growing and effect.outcome is Outcome.INCONCLUSIVE else None


def _detail(of: Strip) -> str:
    verdict, effect = of.verdict, _deciding(of.verdict)
    if verdict.outcome is Outcome.INVALID:
        return _reason(verdict)
    if effect is None:
        if of.progress is None:
            return too_few_words(verdict)
        return "" if of.so_far is None else f"rate {amount_words(_rate(of.so_far))}"
    name = metric_words(effect.name)
    if verdict.outcome is Outcome.EQUIVALENT:
        return f"{name} {margin_words(effect)}"
    if verdict.outcome is Outcome.INCONCLUSIVE:
        detectable = "" if verdict.growing else detectable_words(effect)
        return f"{name} {amount_words(replace(effect, low=None, high=None))}{detectable}"
    return f"{name} {amount_words(effect)}"


def _deciding(verdict: Verdict) -> Effect | None:
    """Return the deciding effect: failed requests, the headline, or the first of the same outcome."""
    if verdict.outcome in DIFFERENT:
        alike = [one for one in verdict.effects if one.outcome is verdict.outcome]
        errors = [one for one in alike if one.name == "errors" and one.outcome is Outcome.WORSE]
        for one in (*errors, *alike):
            if one.headline or metric_of(one.name) in _DECIDING:
                return one
    return verdict.headline


def _reason(verdict: Verdict) -> str:
    return "" if verdict.objection is None else objection_words(verdict.objection)


def _rows(of: Strip, effects: Sequence[Effect], width: int) -> tuple[list[Line], int]:
    """Return one line per effect, and the cells of its plot."""
    hosts = {one.name.partition(".")[0] for one in effects if "." in one.name}
    names = [_name(one, len(hosts) > 1) for one in effects]
    wide = min(_NAME, max(map(cell_len, names), default=0))
    plot = width - _MARK - wide - _CHANGE - 2
    end = scale_end(of.effects)
    lines: list[Line] = []
    for one, name in zip(effects, names, strict=True):
        likely = _likely(of, one)
        role = ROLES[likely or one.outcome]
        mark = f"{MARKS[likely]}?" if likely else MARKS[one.outcome]
        head = f"{fit(mark, _MARK)}{fit(name, wide)} {fit(_change(one), _CHANGE)} "
        lines.append(((head, role), *(forest_row(one, end, plot, role) if plot >= _PLOT else EMPTY)))
    return lines, max(0, plot)


def _change(effect: Effect) -> str:
    """Return the change with its interval; the measured change first while it is inconclusive."""
    if effect.change is None:
        return "–"
    if effect.low is None and effect.high is None:
        return amount_words(effect)
    if effect.outcome is Outcome.INCONCLUSIVE and (effect.low is None or effect.high is None):
        return f"{amount_words(replace(effect, low=None, high=None))} ({amount_words(effect)})"
    return change_words(effect)


def _name(effect: Effect, with_host: bool) -> str:
    words = metric_words(effect.name)
    return words if with_host or "." not in effect.name else words.rpartition(" ")[2]


def _rate(change: float) -> Effect:
    return Effect(name="rate", outcome=Outcome.INCONCLUSIVE, change=change)


def _first(of: Strip, most: int) -> Sequence[Effect]:
    """Return as many effects as fit, the deciding one among them."""
    deciding = _deciding(of.verdict)
    kept = list(of.effects[:most])
    if kept and deciding in of.effects and deciding not in kept:
        kept[-1] = deciding
    return kept


def _progress_line(progress: VerdictProgress | None, room: int) -> Line:
    if progress is None:
        return EMPTY
    forms = ((_BAR, f" {progress.words} to be sure"), (_BAR, f" {progress.words}"), (_BAR // 2, f" {progress.words}"))
    cells, words = next(((cells, words) for cells, words in forms if cells + len(words) <= room), (0, progress.words))
    done = round(cells * progress.passed / (progress.passed + progress.left))
    return (("━" * done, "chart"), ("·" * (cells - done), "rule"), (words, ""))


def _basis(of: Strip) -> str:
    """Return the number of values of the verdict, and the maximum seconds of load for it."""
    verdict = of.verdict
    before, after = verdict.values
    if not verdict.effects and not of.cap:
        return ""
    if verdict.design is Design.SWITCH:
        cap = f"of ≤ {of.cap:.0f} s" if of.cap else "s"
        return f"{before * verdict.block} s before, {after * verdict.block} {cap} after"
    if verdict.design is Design.ROUNDS:
        return "1 round" if before == 1 else f"{before} rounds"
    return f"runs: {before} before, {after} after"


class VerdictStrip(Lines):
    DEFAULT_CSS = "VerdictStrip { height: 0; }"

    def draw(self, context: DrawContext, width: int, height: int) -> list[Line]:
        found = strip(context)
        self.spots = [Spot(y, 0, width, "compare") for y in range(height)]
        return [] if found is None else strip_lines(found, width, height)
