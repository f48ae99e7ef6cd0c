"""Verdicts on the segments of a session: segments with the same settings and load are one variant.

The first variant under a load is the baseline, with which every other variant is compared.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

from msgspec.structs import replace

from cockpit.analysis.blocks import BLOCK
from cockpit.analysis.plans import differences
from cockpit.analysis.rounds import rounds_verdict
from cockpit.analysis.switch.verdict import concluding_blocks
from cockpit.analysis.verdicts.outcome import DIFFERENT, Outcome, Verdict
from cockpit.analysis.verdicts.verdict import (
    judge_duet,
    judge_repeated_runs,
    judge_rounds,
    judge_single_runs,
    judge_switch,
)
from cockpit.analysis.windows import (
    GUARD,
    UNLOADED_LONGEST,
    Window,
    counted_range,
    segment_window,
    segment_window_at,
)
from cockpit.analysis.words.timeline import segment_label
from cockpit.model.load.plan import LoadPlan
from cockpit.model.state import Change, RoundsState, Segment, State

# Shorter windows (s) have too few blocks: their segments are compared as a whole.
_TOO_SHORT = 10
_CACHE_SIZE = 1000
_CONCLUSIONS = (*DIFFERENT, Outcome.EQUIVALENT)
# A conclusion that other load spoils is tried again at this multiple of its blocks.
_STEP = 1.15
# Seconds after the end of a window within which its last metrics arrive.
_ARRIVED = 3
# Seconds after the end of a run within which its readings without load arrive (see Window.unloaded).
_IDLE = GUARD + round(UNLOADED_LONGEST) + _ARRIVED
Settings = tuple[tuple[str, str | None], ...]


class VariantSegments(NamedTuple):
    """Segments with the same settings and load, oldest first. `label` is that of the first, without its load level."""

    settings: Settings
    segments: tuple[Segment, ...]

    @property
    def label(self) -> str:
        return segment_label(self.segments[0])


class ChangeStep(NamedTuple):
    """The instant (session s) at which a change became active, or was rolled back (`back`)."""

    t: float
    change: Change
    back: bool


def segment_verdict(state: State, segment: Segment, base: Segment, label: str = "") -> Verdict:
    """Return the verdict on a segment: of one run the first that concludes, which is final, else that on all data."""
    label, before, after = label or segment_label(segment), segment_window(state, base), segment_window(state, segment)
    if base.run != segment.run:
        return judge_single_runs(before, after, label)
    if base.start < segment.start:
        for t in _concluding_instants(state, before, after):
            known = segment_window_at(state, base, t), segment_window_at(state, segment, t)
            verdict = judge_switch(*known, label)
            if verdict.outcome in _CONCLUSIONS:
                return replace(verdict, reached=t)
    verdict = judge_switch(before, after, label)
    if verdict.growing and verdict.outcome in _CONCLUSIONS:
        # Its last readings have not arrived, or the headline has not concluded.
        return replace(verdict, outcome=Outcome.INCONCLUSIVE, needs=float(_ARRIVED))
    return verdict


def _concluding_instants(state: State, before: Window, after: Window) -> Iterator[float]:
    """Yield instants (session s) at which the headline concludes, ever further apart. The data until then are
    complete."""
    following = 0.0
    for number in concluding_blocks(before, after):
        t = float(after.seconds[min(number * BLOCK, len(after.seconds)) - 1].second + 1)
        if t + _ARRIVED > state.t:
            return
        if number >= following:
            yield t
            following = number * _STEP


def segment_before(state: State, segment: Segment) -> Segment | None:
    """Return the baseline of a change under load: the segment before it in the same run. None if there is none."""
    if not segment.changes or segment.number < 2:
        return None
    before = state.segments[segment.number - 2]
    if before.run != segment.run or before.warmup or segment.warmup or differences(before.plan, segment.plan):
        return None
    if segment.plan.ramp_to is not None:
        return None
    return before


def baseline_of(state: State, segment: Segment, chosen: Segment | None = None) -> Segment | None:
    """Return the baseline of a segment: `chosen`, the segment before a change under load, or the first that is no
    warm-up. None for warm-ups, rounds, duets, and the baseline itself."""
    if segment.plan.variants or segment.warmup or segment.round:
        return None
    first = next((each for each in state.segments if not each.warmup), None)
    base = chosen or segment_before(state, segment) or first
    return None if base is None or base.number == segment.number else base


class SegmentVerdicts:
    """Cache of segment verdicts: a finished segment is judged once, a growing one after each block.

    For a screen that draws the same segments repeatedly. One cache serves one session, also when a replay seeks back.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], Verdict | None] = {}

    def verdict(self, state: State, segment: Segment, base: Segment) -> Verdict:
        """Return the verdict on `segment` vs `base`, both segments of `state`."""
        key = (*_cache_key(state, segment), *_cache_key(state, base))
        verdict = self._cached(key, lambda: segment_verdict(state, segment, base))
        assert verdict is not None
        return verdict

    def duet(self, state: State, segment: Segment) -> Verdict:
        """Return the verdict on the two variants of a segment's duet."""
        verdict = self._cached(("duet", *_cache_key(state, segment)), lambda: duet_segment_verdict(state, segment))
        assert verdict is not None
        return verdict

    def rounds(self, state: State, rounds: RoundsState) -> Verdict | None:
        complete, over = rounds.complete, rounds.ended is not None
        # The last readings of a host arrive after the window.
        ended = max((window.end or 0.0 for window in complete[-1]), default=0.0) if complete else state.t
        age = min(_ARRIVED, int(state.t - ended))
        idle = _idle_blocks(state, rounds.begun.run)
        key = ("rounds", rounds.begun.number, rounds.begun.t, len(complete), over, age, idle)
        return self._cached(key, lambda: rounds_verdict(state, rounds))

    def _cached(self, key: tuple[object, ...], judged: Callable[[], Verdict | None]) -> Verdict | None:
        if key not in self._known:
            if len(self._known) > _CACHE_SIZE:
                self._known.clear()
            self._known[key] = judged()
        return self._known[key]


def _cache_key(state: State, segment: Segment) -> tuple[object, ...]:
    """Return a key that changes whenever the segment's verdict may change."""
    known = (segment.number, segment.start, segment.end, segment.plan, segment.losses)
    if segment.end is None:
        return *known, len(counted_range(state, segment)) // BLOCK
    # A host's last reading of a segment arrives after the segment's end, those without load after its run's.
    read = tuple(window.seconds for window in segment.hosts.values())
    return *known, segment.counts.completed, segment.reason, read, _idle_blocks(state, segment.run)


def _idle_blocks(state: State, run: int) -> int:
    """Return how many blocks of time without load follow a run; -1: another run follows it."""
    last = state.segment
    if last is None or last.run != run:
        return -1
    return 0 if last.end is None else min(int(state.t - last.end), _IDLE) // BLOCK


def duet_segment_verdict(state: State, segment: Segment) -> Verdict:
    """Return the verdict on the two variants of a segment's duet."""
    return judge_duet(segment_window(state, segment))


def verdicts(state: State) -> tuple[Verdict, ...]:
    """Return the verdicts on duets, on all settings vs the baseline, by load, then those on rounds. A change measured
    by rounds has only the verdict of its rounds."""
    of_rounds = [(rounds, rounds_verdict(state, rounds)) for rounds in state.rounds]
    judged = [(rounds, verdict) for rounds, verdict in of_rounds if verdict is not None]
    measured = {rounds.begun.change for rounds, _ in judged if rounds.begun.change}
    of_variants = []
    for alike in _by_load(state):
        first, *others = alike
        known = [variant for variant in others if not measured & set(variant.segments[0].changes)]
        of_variants += [_variant_verdict(state, first, variant) for variant in known]
    duets = [
        duet_segment_verdict(state, segment)
        for segment in state.segments
        if segment.plan.variants and not segment.warmup
    ]
    return (*duets, *of_variants, *(verdict for _, verdict in judged))


def settings_at(state: State, instants: Iterable[float]) -> dict[float, Settings]:
    """Return, for each instant, the knobs whose values differ from those at the start of the session."""
    begun: dict[str, str | None] = {}
    values: dict[str, str | None] = {}
    settings: dict[float, Settings] = {}
    steps = deque(change_steps(state.changes))
    known: Settings | None = ()
    for t in sorted(instants):
        while steps and steps[0].t <= t:
            _, change, back = steps.popleft()
            for setting in change.settings:
                begun.setdefault(setting.knob, setting.old)
                values[setting.knob] = setting.old if back else setting.new
            known = None
        if known is None:
            known = tuple(sorted((knob, value) for knob, value in values.items() if value != begun[knob]))
        settings[t] = known
    return settings


def change_steps(changes: Sequence[Change]) -> list[ChangeStep]:
    """Return every change that became active or was rolled back, in order of time."""
    steps = []
    for change in changes:
        if change.active_since is None:
            continue
        steps.append(ChangeStep(change.active_since, change, False))
        if change.ended is not None and change.outcome not in (None, "applied"):
            steps.append(ChangeStep(change.ended, change, True))
    return sorted(steps, key=attrgetter("t"))


def measured_segments(state: State) -> Iterator[tuple[Settings, Segment]]:
    """Yield the segments and their settings, without warm-ups, rounds, capacity searches, whose load varies, and the
    evaluations of a search, which is judged only by its final rounds."""
    evaluated = {trial.run for trial in state.autopilot.trials} if state.autopilot else set()
    evaluated |= {search.begun.run for search in state.capacities}
    settings = settings_at(state, (segment.start for segment in state.segments))
    for segment in state.segments:
        if not (segment.warmup or segment.round or segment.run in evaluated or segment.plan.variants):
            yield settings[segment.start], segment


def _by_load(state: State) -> list[list[VariantSegments]]:
    """Return the variants under each load, loads and variants in order of their first segment."""
    loads: list[dict[Settings, list[Segment]]] = []
    plans: list[LoadPlan] = []
    for settings, segment in measured_segments(state):
        place = next((at for at, plan in enumerate(plans) if not differences(plan, segment.plan)), None)
        if place is None:
            place = len(plans)
            plans.append(segment.plan)
            loads.append({})
        loads[place].setdefault(settings, []).append(segment)
    return [
        [VariantSegments(settings, tuple(segments)) for settings, segments in variants.items()] for variants in loads
    ]


def _variant_verdict(state: State, first: VariantSegments, variant: VariantSegments) -> Verdict:
    """Judge a variant: by rounds if the settings alternate, by runs if both sides have several, else by the nearest
    segments."""
    windows = {segment.number: segment_window(state, segment) for segment in (*first.segments, *variant.segments)}
    pairs = _alternating_pairs(first, variant)
    if len(pairs) > 1 and all(_is_long_enough(windows[segment.number]) for pair in pairs for segment in pair):
        return judge_rounds(
            [([windows[first.number]], [windows[second.number]]) for first, second in pairs], variant.label
        )
    if len(first.segments) > 1 and len(variant.segments) > 1:
        before, after = ([[windows[segment.number]] for segment in variant.segments] for variant in (first, variant))
        return judge_repeated_runs(before, after, variant.label)
    # The segment nearest in time has the least drift.
    longest = max(variant.segments, key=lambda segment: len(windows[segment.number].seconds))
    usable = [segment for segment in first.segments if _is_long_enough(windows[segment.number])] or list(first.segments)
    nearest = min(usable, key=lambda segment: abs(segment.start - longest.start))
    return segment_verdict(state, longest, nearest, label=variant.label)


def _is_long_enough(window: Window) -> bool:
    return len(window.seconds) >= _TOO_SHORT


def _alternating_pairs(first: VariantSegments, variant: VariantSegments) -> list[tuple[Segment, Segment]]:
    """Return pairs of a baseline segment and the next segment of the other variant, in order of time."""
    pairs: list[tuple[Segment, Segment]] = []
    waiting: Segment | None = None
    known = {segment.number for segment in first.segments}
    for segment in sorted((*first.segments, *variant.segments), key=lambda segment: segment.start):
        if segment.number in known:
            waiting = segment
        elif waiting is not None:
            pairs.append((waiting, segment))
            waiting = None
    return pairs
