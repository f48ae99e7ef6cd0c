"""Verdicts in words, short: for the summary, the runs table and whoever asks how it was found."""

from __future__ import annotations

import math
from typing import Literal

from cockpit.analysis.compare import LEAST, NOT, RISK, RISK_GOING_ON, SAME, Effect
from cockpit.analysis.verdict import WANTED, Verdict
from cockpit.model.text import milliseconds, neutral, si, size

_FIGURES = {
    "cpu.busy": "CPU",
    "cpu.per_reply": "CPU a reply",
    "memory.used": "memory",
    "processes.births_per_s": "births",
}
_BIG = 1.0
Role = Literal["good", "bad", ""]


def verdict_line(verdict: Verdict) -> str:
    """All of it in one line, as in `A MaxSpareServers 10 → 30: better: rate +15 % (+12 to +18 %), p99 … · 12 against
    12 blocks of 5 s`."""
    label = f"{neutral(verdict.label)}: " if verdict.label else ""
    return f"{label}{verdict_words(verdict)}{_basis(verdict)}"


def verdict_words(verdict: Verdict) -> str:
    """The verdict without its label and its basis."""
    so_far = "so far " if verdict.so_far else ""
    differing = [_beside(verdict, one) for one in verdict.effects if one.word in ("better", "worse")]
    if verdict.word == NOT:
        # Where it is only the headline that cannot be told.
        but = f"; but {', '.join(differing)}" if differing and verdict.effects[0].word == NOT else ""
        return f"{so_far}{NOT}: {verdict.reason}{but}{_waiting(verdict)}"
    alike = [one for one in verdict.effects if one.word == SAME]
    same = [figure_words(one.name) for one in alike if not unsure(one)]
    open_ones = [f"{figure_words(one.name)} {change_words(one)}" for one in alike if unsure(one) and not one.headline]
    not_sure = f"; not sure of {', '.join(open_ones)}" if open_ones else ""
    if verdict.word == SAME:
        others = [name for name in same if name != figure_words(verdict.effects[0].name)]
        nor = f"; {'nor' if not unsure(verdict.effects[0]) else SAME} in {', '.join(others)}" if others else ""
        but = f"; but {', '.join(differing)}" if differing else ""
        return f"{so_far}{effect_words(verdict.effects[0])}{nor}{but}{not_sure}{_waiting(verdict)}"
    rest = f"; {SAME} in {', '.join(same)}" if same else ""
    word = f"{verdict.word}, at least" if verdict.at_least else verdict.word
    return f"{so_far}{word}: {', '.join(differing)}{rest}{not_sure}{_waiting(verdict)}"


def unsure(effect: Effect) -> bool:
    """Whether its own interval shows a difference, but not surely enough for one figure of several."""
    low, high, change = effect.low, effect.high, effect.change
    if effect.word != SAME or low is None or high is None or change is None:
        return False
    return (low > 0 or high < 0) and not (effect.relative and abs(change) < LEAST)


def _beside(verdict: Verdict, effect: Effect) -> str:
    """An effect without its word where that is the verdict's."""
    word = "" if effect.word == verdict.word else f"{effect.word} "
    return f"{figure_words(effect.name)} {word}{change_words(effect)}"


def effect_words(effect: Effect) -> str:
    """`rate better +15 % (+12 to +18 %)`, or what could have been seen where nothing was."""
    name = figure_words(effect.name)
    if effect.word == NOT:
        return f"{name} {NOT}: {effect.reason}"
    if effect.word != SAME:
        return f"{name} {effect.word} {change_words(effect)}"
    same = "not sure" if unsure(effect) else SAME
    return f"{name} {same}: {change_words(effect)}{seen_words(effect)}"


def seen_words(effect: Effect) -> str:
    """The smallest change that would have been found."""
    if effect.seen is None:
        return ""
    seen = (
        f"×{effect.seen + 1:.2g}" if effect.relative and effect.seen >= _BIG else _plain(effect, effect.seen, sign="")
    )
    return f", {seen}{' %' if effect.relative and effect.seen < _BIG else _unit(effect)} would have been seen"


def change_words(effect: Effect) -> str:
    """The change with its interval: `+15 % (+12 to +18 %)`, `×9.7 (5.3 to 18)`, `÷164 (94 to 290)`."""
    change, low, high = effect.change, effect.low, effect.high
    if change is None:
        return "unknown"
    if low is None or high is None:
        return f"{_plain(effect, change)}{' %' if effect.relative else _unit(effect)}"
    if effect.relative and change >= _BIG:
        return f"×{_factor(1 + change)} ({_factor(1 + low)} to {_factor(1 + high)})"
    if effect.relative and change <= 1 / (1 + _BIG) - 1 and low > -1:
        return f"÷{_factor(1 / (1 + change))} ({_factor(1 / (1 + high))} to {_factor(1 / (1 + low))})"
    unit = " %" if effect.relative else _unit(effect)
    return f"{_plain(effect, change)}{unit} ({_plain(effect, low)} to {_plain(effect, high)}{unit})"


def value_words(effect: Effect) -> str:
    """Before and after in the figure's unit, as in `12.1k → 13.9k`."""
    return " → ".join("–" if value is None else _value(effect.name, value) for value in (effect.before, effect.after))


def figure_words(name: str) -> str:
    """`web1 CPU a reply` for `web1.cpu.per_reply`; others as they are."""
    host, _, figure = name.partition(".")
    return f"{neutral(host)} {_FIGURES[figure]}" if figure in _FIGURES else name


def brief(verdict: Verdict) -> tuple[str, Role]:
    """At most eight characters for a table, and its colour: none for a difference that means nothing."""
    if verdict.word == NOT:
        return _why(verdict), ""
    shown = next((one for one in verdict.effects if one.word == verdict.word), verdict.effects[0])
    if verdict.word == SAME:
        return "≈", ""
    role: Role = "good" if verdict.word == "better" else "bad"
    name = "" if shown.headline else f"{shown.name.split('.', 1)[-1].split('.')[0][:3]} "
    if verdict.at_least:
        name = "≥" if verdict.word == "better" else "≤"
    change = shown.change or 0.0
    if shown.relative and change >= _BIG:
        return f"{name}×{si(1 + change, 2)}", role
    return f"{name}{_plain(shown, change, digits=0)}{'%' if name or not shown.relative else ' %'}", role


def method_lines(verdict: Verdict) -> list[str]:
    """How the verdict was found, and by which rules: a line each."""
    one, other = verdict.blocks
    lines = []
    if not verdict.effects:
        return [f"! {doubt}" for doubt in verdict.doubts]
    if verdict.unit == "run":
        lines.append(f"{one} runs against {other}, each run one value")
    else:
        each = f" in {verdict.repeats} pairs of windows" if verdict.repeats > 1 else ""
        worth = _worth(verdict)
        lines.append(f"{one} against {other} blocks of {verdict.length} s{each}{worth}")
        lines.append(
            "a change is the median over all pairs of blocks (p99: bootstrapped), not the quotient of the means"
        )
    for side, words in zip(("before", "after"), verdict.left_out, strict=True):
        if words:
            lines.append(f"left out {side}: {words}")
    risk = 100 * (RISK_GOING_ON if verdict.so_far else RISK)
    lines.append(
        f"95 % intervals; {len(verdict.effects)} figures, at a risk of {risk:.0f} % in all of a false difference, "
        "half of it for the first; less than 1 % counts as none"
    )
    if verdict.drift is not None:
        lines.append(f"what was before moved by {100 * verdict.drift:+.1f} % between its first and last window")
    return lines + [f"! {doubt}" for doubt in verdict.doubts]


def _worth(verdict: Verdict) -> str:
    """For how many independent blocks the headline's count, where that is fewer."""
    headline = verdict.headline
    if headline is None or headline.worth == (0, 0) or sum(headline.worth) >= sum(verdict.blocks):
        return ""
    return f", worth {headline.worth[0]} against {headline.worth[1]}: they resemble each other"


def _basis(verdict: Verdict) -> str:
    if not verdict.effects:
        return ""
    one, other = verdict.blocks
    if verdict.unit == "run":
        return f" · {one} against {other} runs"
    repeats = f" in {verdict.repeats} pairs" if verdict.repeats > 1 else ""
    return f" · {one} against {other} blocks of {verdict.length} s{repeats}"


def _waiting(verdict: Verdict) -> str:
    """How much longer it takes."""
    if not verdict.so_far or verdict.needs is None:
        return ""
    if math.isinf(verdict.needs):
        return "; what is before is too short to see more: keep it longer next time"
    seconds = f"{math.ceil(verdict.needs)} s more"
    return f"; {seconds}" if not verdict.effects else f"; {seconds} to see {100 * WANTED:.0f} %"


def _why(verdict: Verdict) -> str:
    """Why it is not comparable in a word."""
    for start, word in (
        ("different load", "≠ load"),
        ("too", "short"),
        ("generator", "gen!"),
        ("not steady", "unsteady"),
        ("the load", "load±"),
    ):
        if verdict.reason.startswith(start):
            return word
    return "n/c"


def _plain(effect: Effect, value: float, sign: str = "+", digits: int | None = None) -> str:
    """A share as per cent, another difference in its unit; without the unit."""
    minus = "−" if value < 0 else sign
    size_of = abs(value)
    if effect.relative or effect.name == "errors":
        shown = 100 * size_of
        places = (0 if shown >= 9.95 else 1) if digits is None else digits
        return f"{minus}{shown:.{places}f}"
    return f"{minus}{si(size_of)}"


def _unit(effect: Effect) -> str:
    if effect.name == "errors":
        return " points"
    return "/s" if effect.name.endswith("_per_s") else ""


def _factor(value: float) -> str:
    return f"{value:.1f}" if value < 9.95 else si(value)


def _value(name: str, value: float) -> str:
    if name.endswith("cpu.per_reply") or name.startswith("p"):
        return f"{milliseconds(value)} ms"
    if name == "errors":
        return f"{100 * value:.2f} %"
    if name.endswith("memory.used"):
        return f"{size(value)}B"
    return f"{si(value)}{' %' if name.endswith('cpu.busy') else '/s'}"
