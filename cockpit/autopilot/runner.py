"""Search in a live session: evaluations as temporary changes, then the proof in rounds."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from cockpit.analysis.blocks import BLOCK, block_sample
from cockpit.analysis.capacity.result import result_of
from cockpit.analysis.intervals import FIRST_TEST
from cockpit.analysis.rounds import UNCOUNTED, WINDOW, RoundsPlan
from cockpit.analysis.switch.switch import long_run_variance
from cockpit.analysis.thresholds import AbortCheck, parse_threshold
from cockpit.analysis.verdicts.outcome import Verdict
from cockpit.analysis.windows import GUARD, segment_window
from cockpit.autopilot.knobs import space_of
from cockpit.autopilot.measuring import Evaluation, abort_limit, capacity_evaluation, metric_evaluation
from cockpit.autopilot.proof import Proof
from cockpit.autopilot.search import Search, Trial, error_of
from cockpit.autopilot.space import SearchPoint
from cockpit.metrics.results import run_result
from cockpit.model.autopilot import (
    AutopilotBegun,
    AutopilotEnded,
    AutopilotTrial,
    SearchPlan,
    TrialOutcome,
    TrialPurpose,
)
from cockpit.model.errors import (
    ChangeRefused,
    ChangeRolledBack,
    CockpitError,
    TargetError,
    UnreachableError,
    UsageError,
)
from cockpit.model.load.plan import LoadPlan
from cockpit.model.state import State
from cockpit.model.text import count_text, elapsed
from cockpit.session.live_session import LiveSession
from cockpit.session.recovery import recover
from cockpit.session.tuning import FinalSide
from cockpit.tuning.applied import ChangeFailed

# Maximum time of a capacity search (s): default and smallest. After the first, searches begin at this share of the
# original capacity.
SEARCH, SHORTEST_SEARCH, _START = 90.0, 60.0, 0.5
# Maximum duration of an evaluation (s), and the target for the relative standard error of its mean.
LONGEST, PRECISE = 60.0, 0.015
# Duration of a set-up (s) that is assumed before the first; time (s) after an evaluation until its host rolls back.
_SET_UP, _ROLLBACK_DELAY = 6.0, 60.0
# Maximum rounds of the proof, and their maximum share of the budget.
ROUNDS, _PROOF = 12, 0.5
# Expected improvement (share) below which a search ends, and the evaluations after the first points that it needs.
_MIN_IMPROVEMENT, _MIN_SEARCHED = 0.005, 6
# Number of best points that are measured again before the best is chosen.
_RACED = 3
# Maximum wait for a lost host (s).
_RECONNECT_WITHIN = 120.0
# Consecutive failed evaluations after which a search gives up.
_MAX_FAILURES = 5


# Asks the user whether these values may be tried.
Approve = Callable[[Mapping[str, str]], Awaitable[bool]]
# Decides at the end of a search whether the proposed values, if they are better, stay active.
Keep = Callable[["SearchResult"], Awaitable[bool]]


class SearchResult(NamedTuple):
    """Result of a search: its end with the proposed values, and the verdict of the rounds (None: no rounds ran)."""

    ended: AutopilotEnded
    verdict: Verdict | None = None


class Autopilot:
    """One search in one session. The user can pause it, skip an evaluation, and end it early with the proof."""

    def __init__(
        self,
        live: LiveSession,
        plan: SearchPlan,
        original: Mapping[str, str],
        approve: Approve | None = None,
        limits: Iterable[str] = (),
        spent: float = 0.0,
    ) -> None:
        """`original`: values by knob before the search ("": not set). `approve`: called before other values are
        evaluated; None: all are approved. `limits`: texts of the diagnosis, to record. `spent`: its duration (s)."""
        self.plan = plan
        self._live = live
        self._source = live.source
        self._original = dict(original)
        # Epoch time (s) of the start.
        self._since = 0.0
        # Limits of a capacity search, and else constraints of a constant load.
        self._until = ", ".join(plan.constraints) if plan.searches_capacity else ""
        self._constraints = () if self._until else tuple(parse_threshold(text) for text in plan.constraints)
        space = space_of(plan.knobs)
        self._search = Search(space, space.point(self._original), len(self._constraints), plan.seed)
        self._seconds = plan.seconds
        self._began, self._spent = 0.0, spent
        self._set_up_times: list[float] = []
        self._failures, self._last_error = 0, ""
        self._approve = approve
        self._resumed = asyncio.Event()
        self._resumed.set()
        self._skipping = self._finishing = self._proving = False
        self._paused = 0.0
        self._limits = tuple(limits)

    @property
    def paused(self) -> bool:
        return not self._resumed.is_set()

    @property
    def remaining_seconds(self) -> float:
        """Remaining budget (s); pauses and waiting for an answer do not count."""
        return self.plan.budget - (self._source.now() - self._began - self._paused)

    def pause(self) -> None:
        """Pause before the next evaluation, or resume. Raises UsageError during the proof."""
        self._check_searching()
        if self.paused:
            self._resumed.set()
        else:
            self._resumed.clear()

    def skip(self) -> None:
        """Stop the current evaluation without a result. Raises UsageError during the first one, and the proof."""
        self._check_searching()
        if not self._search.trials:
            raise UsageError("the original values are measured; all others are compared with them")
        self._skipping = True

    def finish(self) -> None:
        """End the search after the current evaluation, and start the proof. Raises UsageError during the proof."""
        self._check_searching()
        self._finishing = True
        self._resumed.set()

    def _check_searching(self) -> None:
        if self._proving:
            raise UsageError("the search has ended; the best values are compared with the original ones")

    async def run(self, keep: Keep | None = None) -> SearchResult:
        """Search until the budget is spent or no improvement is expected, then prove the best.

        Afterwards the original values are active, or the proved ones if `keep` returns True. `keep` is called whatever
        the result. Raises UsageError if the budget is too small, CockpitError if the load or a host fails for good.
        """
        self.check_budget()
        self._since = time.time()
        await self._live.hosts_read()
        now = self._source.now()
        self._began = now - self._spent
        self._source.emit(AutopilotBegun(t=now, plan=self.plan, original=self._original, limits=self._limits))
        result = SearchResult(AutopilotEnded(t=now, outcome="stopped", detail="interrupted"))
        try:
            result = await self._search_and_compare()
            await self._source.load.stop()
            await self._live.session.until(self._has_all_trials)
            if keep is not None and await keep(result) and result.ended.outcome == "better":
                await self._source.tuning.apply(self._changed(result.ended.values))
                result = result._replace(ended=replace(result.ended, applied=True))
        except CockpitError as error:
            if result.ended.outcome == "stopped":
                result = SearchResult(replace(result.ended, outcome="failed", detail=str(error)))
            raise
        finally:
            await self._source.load.stop()
            now = self._source.now()
            ended = replace(result.ended, t=now, seconds=result.ended.seconds or now - self._began)
            result = result._replace(ended=ended)
            self._source.emit(ended)
        return result

    @property
    def least_budget(self) -> float:
        """Seconds needed for the diagnosis, the first points, the race and the shortest proof."""
        search = (self._first_points + _RACED) * self._evaluation()
        return self._spent + max(search / (1 - _PROOF), search + FIRST_TEST * self._round())

    def check_budget(self) -> None:
        """Raise UsageError if the budget is too short."""
        if self.least_budget > self.plan.budget:
            diagnosis = "the diagnosis, " if self._spent else ""
            raise UsageError(
                f"--budget {elapsed(self.plan.budget)}: too short for {diagnosis}the first {self._first_points}"
                f" evaluations of {count_text(len(self.plan.knobs), 'knob')} and the proof; use --budget"
                f" {math.ceil(self.least_budget / 60)}m"
            )

    @property
    def _first_points(self) -> int:
        return 2 * len(self.plan.knobs) + 2

    def _has_all_trials(self, state: State) -> bool:
        return state.autopilot is not None and len(state.autopilot.trials) == len(self._search.trials)

    async def _search_and_compare(self) -> SearchResult:
        if await self._evaluate(self._search.start, "original") == "failed":
            raise TargetError(f"the original values could not be measured: {self._last_error}")
        self._seconds = self._precise_seconds()
        while await self._may_continue():
            point = self._search.ask()
            if point is None:
                break
            if not await self._is_approved(point):
                self._search.exclude(point)
                # The answer may have been immediate.
                await asyncio.sleep(0)
                continue
            purpose: TrialPurpose = "search" if self._search.searching else "spread"
            await self._evaluate(point, "original" if point == self._search.start else purpose)
        await self._race()
        best = self._search.best()
        if not best or best[0] == self._search.start or self._gain(best[0]) < self.plan.margin:
            return SearchResult(self._nothing(f"no values are better by more than {self.plan.margin:.0%}"))
        return await self._compare_best(best[0])

    def _changed(self, values: Mapping[str, str]) -> dict[str, str]:
        return {name: value for name, value in values.items() if value != self._original[name]}

    async def _is_approved(self, point: SearchPoint) -> bool:
        moved = self._changed(self._search.space.values(point))
        if not moved or self._approve is None:
            return True
        begun = self._source.now()
        approved = await self._approve(moved)
        self._paused += self._source.now() - begun
        return approved

    async def _may_continue(self) -> bool:
        """Wait while the search is paused; return whether another evaluation fits before the proof and may improve the
        metric. Raises TargetError after too many failures."""
        begun = self._source.now()
        await self._resumed.wait()
        self._paused += self._source.now() - begun
        if self._finishing:
            return False
        if self._failures >= _MAX_FAILURES:
            raise TargetError(f"{_MAX_FAILURES} consecutive evaluations failed; last error: {self._last_error}")
        # Besides the next point, the best points are measured again.
        if (1 + _RACED) * self._evaluation() + self._proof() > self.remaining_seconds:
            return False
        trials = [trial for trial in self._search.trials if trial.point != self._search.start]
        enough = len(trials) >= self._first_points + _MIN_SEARCHED
        return not (enough and self._search.searching and self._search.expected_improvement() < _MIN_IMPROVEMENT)

    def _evaluation(self) -> float:
        """Return the expected duration of the next evaluation (s)."""
        set_up = max(self._set_up_times[-4:], default=_SET_UP)
        return self._seconds + GUARD + set_up

    def _proof(self) -> float:
        """Return the duration of the proof (s) that the budget allows."""
        return min(ROUNDS * self._round(), max(FIRST_TEST * self._round(), _PROOF * self.plan.budget))

    def _round(self) -> float:
        """Return the expected duration of a round (s)."""
        return 2 * (self._window + UNCOUNTED + max(self._set_up_times[-4:], default=_SET_UP))

    @property
    def _window(self) -> float:
        """Length of a window of the proof (s)."""
        return self._seconds if self._until else WINDOW

    async def _race(self) -> None:
        """Measure the best points again, so that a lucky measurement does not win."""
        for point in self._search.best(_RACED):
            if point != self._search.start and self._evaluation() + self._proof() <= self.remaining_seconds:
                await self._evaluate(point, "race")

    async def _evaluate(self, point: SearchPoint, purpose: TrialPurpose) -> TrialOutcome:
        """Measure a point and add the result to the search; failing settings are a result, too."""
        moved = self._changed(self._search.space.values(point))
        self._source.load.plan = self._load()
        breaker = AbortCheck([abort_limit(constraint) for constraint in self._constraints])
        self._skipping = False
        number, begun, run = len(self._search.trials) + 1, self._source.now(), self._source.load.runs

        async def measure() -> None:
            await self._live.hosts_up(self._live.state.hosts)
            if self._until:
                await self._live.search_once(self._until, self._seconds, lambda _: self._skipping)
            else:
                await self._live.run_once(stop_when=lambda state: self._skipping or breaker(state))

        detail, lost = "", False
        try:
            if moved:
                await self._source.tuning.apply_temporarily(moved, self._seconds + GUARD + _ROLLBACK_DELAY, measure)
            else:
                await measure()
        except (ChangeRolledBack, ChangeRefused, ChangeFailed, UnreachableError) as error:
            if isinstance(error, ChangeFailed) and not error.is_loss:
                raise
            detail, lost = str(error), error.is_loss
            if lost:
                # The lost host rolls back by itself.
                searched = {knob.knob for knob in self.plan.knobs}
                await recover(self._live, searched, self._since, _RECONNECT_WITHIN)
        detail = detail or ("skipped" if self._skipping else "")
        measured = self._source.load.runs if self._source.load.runs > run else 0
        result = run_result(self._live.state, measured) if measured else None
        if not lost:
            loaded = result.seconds + result.warmup if result else 0.0
            self._set_up_times.append(max(0.0, self._source.now() - begun - loaded))
        if self._until:
            evaluation = capacity_evaluation(result_of(self._live.state, measured), detail)
        else:
            evaluation = metric_evaluation(result, self.plan.metric, self._constraints, breaker.failed, detail)
        return self._add_trial(point, purpose, number, measured, evaluation)

    def _load(self) -> LoadPlan:
        plan = replace(self._source.profile.plan, requests=None, stages=(), warmup=0.0)
        if not self._until:
            return replace(plan, duration=self._seconds, warmup=float(GUARD))
        original = next((trial.score for trial in self._search.trials if trial.score is not None), None)
        return plan if original is None else replace(plan, rate=max(1.0, round(_START * math.exp(original))))

    def _add_trial(
        self, point: SearchPoint, purpose: TrialPurpose, number: int, run: int, evaluation: Evaluation
    ) -> TrialOutcome:
        score = None if evaluation.metric is None else math.log(evaluation.metric) * (1 if self.plan.maximize else -1)
        self._search.tell(Trial(point, score, evaluation.margins, error_of(evaluation.interval)))
        # A failed constraint shows that the server responds; a skipped evaluation shows nothing about the server.
        failed = evaluation.outcome == "failed" and not self._skipping
        self._failures, self._last_error = self._failures + 1 if failed else 0, evaluation.detail
        expected = self._search.expected_improvement() if self._search.searching and self._search.best() else None
        self._source.emit(
            AutopilotTrial(
                t=self._source.now(),
                number=number,
                purpose=purpose,
                values=self._search.space.values(point),
                run=run,
                expected=expected,
                **evaluation._asdict(),
            )
        )
        return evaluation.outcome

    def _precise_seconds(self) -> float:
        """Return the duration of an evaluation (s) that gives the target precision, from the noise of the first."""
        segment = self._live.state.segment
        if segment is None or self._until:
            return self.plan.seconds
        blocks = block_sample(segment_window(self._live.state, segment)).blocks.get(self.plan.metric)
        if blocks is None or len(blocks) < FIRST_TEST or not bool((blocks > 0).all()):
            return self.plan.seconds
        variance = long_run_variance(np.log(blocks), np.array([])).value
        return min(LONGEST, max(self.plan.seconds, math.ceil(variance * BLOCK / PRECISE**2)))

    def _gain(self, point: SearchPoint) -> float:
        """Return the expected improvement of a point over the original values (share)."""
        here, there = self._search.predict([self._search.start, point]).mean
        return math.expm1(float(there - here))

    async def _compare_best(self, best: SearchPoint) -> SearchResult:
        """Compare the best with the original values in fresh rounds; measurements of the search do not count."""
        self._proving = True
        self._resumed.set()
        values = self._search.space.values(best)
        self._source.load.plan = replace(self._load(), duration=self._source.profile.plan.duration, warmup=0.0)
        rounds = max(FIRST_TEST, min(ROUNDS, int(self.remaining_seconds / self._round())))
        proof = Proof(self.plan.metric, self._constraints)
        proven = await self._source.tuning.compare_in_rounds(
            self._changed(values),
            RoundsPlan(rounds, self._window, seed=self.plan.seed, concluded=proof.is_decided, until=self._until),
            FinalSide.RESTORED,
        )
        verdict = proven.verdict
        detail = "no complete round" if verdict is None else proof.rejection_reason(verdict, self._live.state)
        ended = replace(self._nothing(detail), values=values, rounds=proven.number)
        return SearchResult(ended if detail else replace(ended, outcome="better"), verdict)

    def _nothing(self, detail: str) -> AutopilotEnded:
        now = self._source.now()
        return AutopilotEnded(t=now, outcome="nothing", seconds=now - self._began, detail=detail)
