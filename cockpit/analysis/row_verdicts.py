"""Verdicts on the segments of a session: segments with the same settings and load are one variant.

The first variant under a load is the baseline; every other one gets a verdict against it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from cockpit.analysis.blocks import BLOCK
from cockpit.analysis.outcome import Verdict
from cockpit.analysis.plans import differences
from cockpit.analysis.rounds import rounds_verdict
from cockpit.analysis.verdict import judge_rounds, judge_runs, judge_single_runs, judge_switch
from cockpit.analysis.windows import Window, counted_range, row_window
from cockpit.model.load import LoadPlan
from cockpit.model.state import Change, RoundsState, Segment, State

# A window shorter than this (s) is worth no blocks: rows are then taken whole.
_TOO_SHORT = 10
_KEPT = 1000
# Seconds after the end of a window within which its last metrics arrive.
_ARRIVED = 3
Settings = tuple[tuple[str, str | None], ...]


class VariantSegments(NamedTuple):
    """Segments with the same settings and load, by time. `label` is that of the first, without its load level."""

    settings: Settings
    rows: tuple[Segment, ...]

    @property
    def label(self) -> str:
        return self.rows[0].label


def row_verdict(state: State, row: Segment, base: Segment, load_may_differ: bool = False) -> Verdict:
    judge = judge_switch if base.run == row.run else judge_single_runs
    return judge(row_window(state, base), row_window(state, row), row.label, load_may_differ)


def row_before(state: State, row: Segment) -> Segment | None:
    """Return the baseline of a change under load: the segment before it in the same run. None if there is none."""
    if not row.changes or row.number < 2:
        return None
    before = state.segments[row.number - 2]
    if before.run != row.run or before.warmup or row.warmup or differences(before.plan, row.plan):
        return None
    return before


class RowVerdicts:
    """Verdicts of rows, kept: a row that is over is judged once, a growing one after each block.

    For a screen that draws the same rows again and again. One for a session; going back in it finds the same ones.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], Verdict | None] = {}

    def verdict(self, state: State, row: Segment, base: Segment) -> Verdict:
        """The verdict on `row` against `base`, both rows of `state`."""
        found = self._kept((*_stamp(state, row), *_stamp(state, base)), lambda: row_verdict(state, row, base))
        assert found is not None
        return found

    def rounds(self, state: State, rounds: RoundsState) -> Verdict | None:
        complete, over = rounds.complete, rounds.ended is not None
        # The last readings of a host arrive after the window.
        age = (
            min(_ARRIVED, int(state.t - max((window.end or 0.0 for window in complete[-1]), default=0.0)))
            if complete
            else 0
        )
        key = ("rounds", rounds.begun.number, rounds.begun.t, len(complete), over, age)
        return self._kept(key, lambda: rounds_verdict(state, rounds))

    def _kept(self, key: tuple[object, ...], judged: Callable[[], Verdict | None]) -> Verdict | None:
        if key not in self._known:
            if len(self._known) > _KEPT:
                self._known.clear()
            self._known[key] = judged()
        return self._known[key]


def _stamp(state: State, row: Segment) -> tuple[object, ...]:
    """Return values that differ when the row's verdict may differ."""
    if row.end is None:
        return row.number, row.start, len(counted_range(state, row)) // BLOCK, row.altered, row.partial
    # A host's last reading of a row arrives after the row's end.
    read = tuple(window.seconds for window in row.hosts.values())
    return row.number, row.start, row.end, row.counts.completed, row.altered, row.partial, row.reason, read


def verdicts(state: State) -> tuple[Verdict, ...]:
    """Return a verdict for every variant against the baseline, under each load, then those of rounds. A change that
    was measured by rounds has only theirs."""
    found = [(rounds, rounds_verdict(state, rounds)) for rounds in state.rounds]
    judged = [(rounds, verdict) for rounds, verdict in found if verdict is not None]
    measured = {rounds.begun.change for rounds, _ in judged if rounds.begun.change}
    of_variants = []
    for alike in _by_load(state):
        first, *others = alike
        known = [other for other in others if not measured & set(other.rows[0].changes)]
        of_variants += [_variant_verdict(state, first, other) for other in known]
    return (*of_variants, *(verdict for _, verdict in judged))


def settings_at(state: State, t: float) -> Settings:
    """Return knobs and values at instant `t` that differ from those at the start of the session."""
    begun: dict[str, str | None] = {}
    values: dict[str, str | None] = {}
    for at, change, back in sorted(change_steps(state.changes), key=lambda step: step[0]):
        for setting in change.settings:
            begun.setdefault(setting.knob, setting.old)
            if at <= t:
                values[setting.knob] = setting.old if back else setting.new
    return tuple(sorted((knob, value) for knob, value in values.items() if value != begun[knob]))


def change_steps(changes: Sequence[Change]) -> list[tuple[float, Change, bool]]:
    """Yield (instant, change, undone) for every change that became active or was rolled back."""
    steps = []
    for change in changes:
        if change.active_since is None:
            continue
        steps.append((change.active_since, change, False))
        if change.ended is not None and change.outcome not in (None, "applied"):
            steps.append((change.ended, change, True))
    return steps


def _by_load(state: State) -> list[list[VariantSegments]]:
    """Arms under each load, both in order of their first row, without warm-ups and the rows of rounds."""
    loads: list[dict[Settings, list[Segment]]] = []
    plans: list[LoadPlan] = []
    for row in state.segments:
        if row.warmup or row.round:
            continue
        place = next((at for at, plan in enumerate(plans) if not differences(plan, row.plan)), None)
        if place is None:
            place = len(plans)
            plans.append(row.plan)
            loads.append({})
        loads[place].setdefault(settings_at(state, row.start), []).append(row)
    return [[VariantSegments(settings, tuple(rows)) for settings, rows in variants.items()] for variants in loads]


def _variant_verdict(state: State, first: VariantSegments, other: VariantSegments) -> Verdict:
    """By rounds when the settings alternate, by runs when there are several, else by the nearest two."""
    windows = {row.number: row_window(state, row) for row in (*first.rows, *other.rows)}
    pairs = _alternating(first, other)
    if len(pairs) > 1 and all(_long(windows[row.number]) for pair in pairs for row in pair):
        return judge_rounds([([windows[one.number]], [windows[two.number]]) for one, two in pairs], other.label)
    if len(first.rows) > 1 and len(other.rows) > 1:
        before, after = ([[windows[row.number]] for row in variant.rows] for variant in (first, other))
        return judge_runs(before, after, other.label)
    # The segment before it is nearest in time, so it drifted least.
    longest = max(other.rows, key=lambda row: len(windows[row.number].seconds))
    usable = [row for row in first.rows if _long(windows[row.number])] or list(first.rows)
    nearest = min(usable, key=lambda row: abs(row.start - longest.start))
    judge = judge_switch if nearest.run == longest.run else judge_single_runs
    return judge(windows[nearest.number], windows[longest.number], other.label)


def _long(window: Window) -> bool:
    return len(window.seconds) >= _TOO_SHORT


def _alternating(first: VariantSegments, other: VariantSegments) -> list[tuple[Segment, Segment]]:
    """Pairs of a row before and the next one after it, as they follow each other in time."""
    pairs: list[tuple[Segment, Segment]] = []
    waiting: Segment | None = None
    known = {row.number for row in first.rows}
    for row in sorted((*first.rows, *other.rows), key=lambda row: row.start):
        if row.number in known:
            waiting = row
        elif waiting is not None:
            pairs.append((waiting, row))
            waiting = None
    return pairs
