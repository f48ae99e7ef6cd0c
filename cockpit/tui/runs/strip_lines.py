"""The verdict strip as lines: outcome, a forest plot of the effects, and a bar for the seconds left. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from msgspec.structs import replace
from rich.cells import cell_len

from cockpit.analysis.effects import metric_of
from cockpit.analysis.verdicts.outcome import DIFFERENT, Design, Effect, Outcome, Verdict
from cockpit.analysis.words.objections import bound_words, objection_words
from cockpit.analysis.words.verdicts import (
    MARKS,
    amount_words,
    change_words,
    detectable_words,
    margin_words,
    metric_words,
    too_few_words,
    uses_factors,
)
from cockpit.tui.charts.forest import axis, forest_row, scale_end
from cockpit.tui.draw_context import DrawContext
from cockpit.tui.guide import guide_lines
from cockpit.tui.runs.capacity_line import capacity_line
from cockpit.tui.runs.details import percentile_lines
from cockpit.tui.runs.strip import StripContents, VerdictProgress, strip
from cockpit.tui.terminal.lines import Pane
from cockpit.tui.terminal.styled_line import EMPTY, Line, Spot, clip, fit, left_and_right, length, padded, rule
from cockpit.tui.tuning.pending import pending_lines

ROLES = {
    Outcome.BETTER: "better_value",
    Outcome.WORSE: "worse_value",
    Outcome.EQUIVALENT: "",
    Outcome.INCONCLUSIVE: "dim",
    Outcome.INVALID: "dim",
}
# Roles of the outcome's word; a likely outcome has a role of ROLES.
_WORD_ROLES = {**dict.fromkeys(Outcome, "strong"), Outcome.BETTER: "better", Outcome.WORSE: "worse"}
# Roles of the bar with the outcome, by the role of the word.
_BARS = {"better": "better", "worse": "worse", "strong": "focus"}
# Metrics that can decide a verdict if the headline metric shows no difference.
_DECIDING = ("errors", "rate", "p50", "p99", "cpu.per_request", "cpu.busy")
# Cells of the mark, of the widest name, of change and interval; minimum cells of the plot.
_MARK, _NAME, _CHANGE, _PLOT = 3, 16, 24, 11
_BAR = 12
# Minimum height (lines) for all parts.
_FULL = 8


def strip_lines(contents: StripContents, width: int, height: int) -> list[Line]:
    """Return title, outcome, notes, next step, the effects that fit, and their scale; in a few lines without them."""
    if height < _FULL:
        return _compact_lines(contents, width, height)
    title = rule((("verdict ", "title"), (contents.change, "text")), ((contents.compared, "dim"),), width)
    word = _word(contents)
    if contents.verdict.outcome is Outcome.INVALID:
        lines = [title, *_invalid_lines(contents, width, str(contents.verdict.outcome))]
    else:
        lines = [title, _headline(word, contents.progress, width)]
        bound = bound_words(contents.verdict)
        lines += [((fit(" " * _MARK + bound, width).rstrip(), "warn"),)] if bound else []
        lines += [(("   next: ", "dim"), (contents.next, ""))] if contents.next else []
    notes: list[Line] = [((part, "text"),) for note in contents.notes for part in wrap(note, width)]
    rows, room = _rows(contents, _first(contents, max(0, height - len(lines) - len(notes) - 1)), width)
    if not rows:
        return [*lines, *notes][:height]
    basis: Line = ((fit(_basis(contents), width - room), "dim"),)
    return [*lines, *rows, (*basis, *axis(scale_end(contents.effects), room)), *notes]


def _headline(word: Line, progress: VerdictProgress | None, width: int) -> Line:
    """Return the outcome: a bar over the whole width, or beside the seconds that are still needed."""
    role = word[0][1]
    if progress is not None or role not in _BARS:
        return left_and_right(word, _progress_line(progress, width - length(word) - 2), width)
    return padded(tuple((text, _BARS[role]) for text, _ in word), width, _BARS[role])


def _compact_lines(contents: StripContents, width: int, height: int) -> list[Line]:
    """Return the title with outcome and next step, then effects; of an invalid verdict the reason."""
    word = _word(contents, short=True)
    has_next = contents.next and contents.verdict.outcome is not Outcome.INVALID
    rest: Line = ((f"next: {contents.next}" if has_next else contents.compared, "dim"),)
    title = rule((*word, ("  ", ""), (contents.change, "dim")), _progress_line(contents.progress, 28) or rest, width)
    if contents.verdict.outcome is Outcome.INVALID:
        return [title, *_invalid_lines(contents, width)][:height]
    return [title, *_rows(contents, _first(contents, height - 1), width)[0]][:height]


def _invalid_lines(contents: StripContents, width: int, word: str = "") -> list[Line]:
    """Return `word`, the reason and the next step in two lines."""
    text = f"{f'{word}: ' if word else ''}{_reason(contents.verdict)}; next: {contents.next}"
    first, *rest = wrap(text, max(_MARK, width - _MARK))
    mark = MARKS[contents.verdict.outcome] if word else ""
    return [((fit(mark, _MARK) + first, "strong"),), clip(((" " * _MARK + " ".join(rest), "strong"),), width)]


def strip_words(contents: StripContents) -> Line:
    """Return the strip as a single line: mark, outcome, deciding effect, and seconds left."""
    left = f", {contents.progress.words}" if contents.progress else ""
    return (*_word(contents), (left, ""))


def _word(contents: StripContents, short: bool = False) -> Line:
    """Return mark and outcome, and the deciding effect unless `short`."""
    verdict = contents.verdict
    # A concluded verdict may be decided by another metric than the first.
    likely = (
        _likely(contents, contents.effects[0]) if contents.effects and verdict.outcome is Outcome.INCONCLUSIVE else None
    )
    role = ROLES[likely] if likely else _WORD_ROLES[verdict.outcome]
    if likely:
        word = f"{MARKS[likely]}? likely {likely}"
    elif verdict.outcome is Outcome.INCONCLUSIVE and contents.progress:
        word = f"{MARKS[verdict.outcome]}  {verdict.outcome} so far"
    else:
        word = f"{MARKS[verdict.outcome]}  {verdict.outcome}{', at least' if verdict.at_least else ''}"
    detail = "" if short else _detail(contents)
    if role in ("better", "worse"):
        # Without other load, only a saturated generator makes an effect "at least".
        why = " · generator saturated" if detail and verdict.at_least and not bound_words(verdict) else ""
        return ((word, role), (f"  {detail}" if detail else "", "strong"), (why, "warn"))
    return ((word, role), (f": {detail}" if detail else "", "text"))


def _likely(contents: StripContents, effect: Effect) -> Outcome | None:
    """Return the likely outcome of an effect while more load can still conclude it, else None."""
    return effect.likely if contents.verdict.growing and effect.outcome is Outcome.INCONCLUSIVE else None


def _detail(contents: StripContents) -> str:
    verdict, effect = contents.verdict, _deciding(contents.verdict)
    if verdict.outcome is Outcome.INVALID:
        return _reason(verdict)
    if effect is None:
        if contents.progress is None:
            return too_few_words(verdict)
        return "" if contents.rate_change is None else f"rate {amount_words(_rate(contents.rate_change))}"
    name, factors = metric_words(effect.name), uses_factors(contents.effects)
    if verdict.outcome is Outcome.EQUIVALENT:
        return f"{name} {margin_words(effect)}"
    if verdict.outcome is Outcome.INCONCLUSIVE:
        detectable = "" if verdict.growing else detectable_words(effect)
        return f"{name} {amount_words(replace(effect, low=None, high=None), factors)}{detectable}"
    return f"{name} {amount_words(effect, factors)}"


def _deciding(verdict: Verdict) -> Effect | None:
    """Return the deciding effect: failed requests, the headline, or the first effect with the verdict's outcome."""
    if verdict.outcome in DIFFERENT:
        same = [effect for effect in verdict.effects if effect.outcome is verdict.outcome]
        errors = [effect for effect in same if effect.name == "errors" and effect.outcome is Outcome.WORSE]
        for effect in (*errors, *same):
            if effect.headline or metric_of(effect.name) in _DECIDING:
                return effect
    return verdict.headline


def _reason(verdict: Verdict) -> str:
    return "" if verdict.objection is None else objection_words(verdict.objection)


def _rows(contents: StripContents, effects: Sequence[Effect], width: int) -> tuple[list[Line], int]:
    """Return one line per effect, and the width of the plot in cells."""
    hosts = {effect.name.partition(".")[0] for effect in effects if "." in effect.name}
    names = [_name(effect, len(hosts) > 1) for effect in effects]
    name_width = min(_NAME, max(map(cell_len, names), default=0))
    plot = width - _MARK - name_width - _CHANGE - 2
    end, factors = scale_end(contents.effects), uses_factors(contents.effects)
    lines: list[Line] = []
    for effect, name in zip(effects, names, strict=True):
        likely = _likely(contents, effect)
        role = ROLES[likely or effect.outcome]
        mark = f"{MARKS[likely]}?" if likely else MARKS[effect.outcome]
        head = f"{fit(mark, _MARK)}{fit(name, name_width)} {fit(_change(effect, factors), _CHANGE)} "
        lines.append(((head, role), *(forest_row(effect, end, plot, role) if plot >= _PLOT else EMPTY)))
    return lines, max(0, plot)


def _change(effect: Effect, factors: bool) -> str:
    """Return the change with its interval; for inconclusive one-sided intervals the measured change first."""
    if effect.change is None:
        return "–"
    if effect.low is None and effect.high is None:
        return amount_words(effect, factors)
    if effect.outcome is Outcome.INCONCLUSIVE and (effect.low is None or effect.high is None):
        return f"{amount_words(replace(effect, low=None, high=None), factors)} ({amount_words(effect, factors)})"
    return change_words(effect, factors)


def _name(effect: Effect, with_host: bool) -> str:
    words = metric_words(effect.name)
    return words if with_host or "." not in effect.name else words.rpartition(" ")[2]


def _rate(change: float) -> Effect:
    return Effect(name="rate", outcome=Outcome.INCONCLUSIVE, change=change)


def _first(contents: StripContents, most: int) -> Sequence[Effect]:
    """Return at most `most` effects, including the deciding one."""
    deciding = _deciding(contents.verdict)
    kept = list(contents.effects[:most])
    if kept and deciding in contents.effects and deciding not in kept:
        kept[-1] = deciding
    return kept


def _progress_line(progress: VerdictProgress | None, room: int) -> Line:
    if progress is None:
        return EMPTY
    forms = ((_BAR, f" {progress.words} to be sure"), (_BAR, f" {progress.words}"), (_BAR // 2, f" {progress.words}"))
    cells, words = next(((cells, words) for cells, words in forms if cells + len(words) <= room), (0, progress.words))
    done = round(cells * progress.counted / (progress.counted + progress.left))
    return (("━" * done, "chart"), ("·" * (cells - done), "rule"), (words, ""))


def _basis(contents: StripContents) -> str:
    """Return the amount of data behind the verdict: seconds of load, rounds or runs."""
    verdict = contents.verdict
    before, after = verdict.values
    if not verdict.effects and not contents.cap:
        return ""
    if verdict.design is Design.SWITCH:
        cap = f"of ≤ {contents.cap:.0f} s" if contents.cap else "s"
        return f"{before * verdict.block} s before, {after * verdict.block} {cap} after"
    if verdict.design is Design.ROUNDS:
        return "1 round" if before == 1 else f"{before} rounds"
    if verdict.design is Design.DUET:
        return f"{before * verdict.block} s of both"
    return f"runs: {before} before, {after} after"


def _parts(context: DrawContext, above: Sequence[Line], width: int, height: int) -> list[Line]:
    """Return the latency of the segment by parts, in the lines below `above`."""
    segment, room = context.segment, height - len(above)
    if segment is None or room <= 1:
        return []
    # A recording has the parts of a growing segment up to half a minute late.
    parts = context.extent is None or segment.end is not None
    return percentile_lines(segment, width, room, parts=parts)


class VerdictStrip(Pane):
    """The verdict on the selected segment; instead a change under way, a search, or a segment without a verdict."""

    DEFAULT_CSS = "VerdictStrip { height: 0; }"
    opens = True

    def draw(self, context: DrawContext, width: int, height: int) -> list[Line]:
        self.spots = []
        if lines := pending_lines(context, width):
            return [*lines, *_parts(context, lines, width, height)]
        searched = capacity_line(context)
        if searched is not None:
            return [rule((("capacity", "title"),), (), width), clip(searched, width)]
        contents = strip(context)
        if contents is None:
            return [*(lines := guide_lines(context, width, height)), *_parts(context, lines, width, height)]
        self.spots = [Spot(y, 0, width, "compare") for y in range(height)]
        return strip_lines(contents, width, height)
