"""Run a study in a live session: rounds of set-ups and runs, tests after each round, restored settings at the end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from cockpit.analysis.capacity.result import result_of
from cockpit.metrics.results import RunResult, run_result
from cockpit.model.errors import ChangeRefused, CockpitError, HostError, TargetError
from cockpit.model.load.plan import LoadPlan
from cockpit.model.state import State
from cockpit.model.study import (
    Observation,
    Pass,
    Study,
    StudyBegun,
    StudyEnded,
    StudyObservation,
    StudyRound,
    StudyRun,
    StudyStepEnded,
    StudyStepLost,
    setup_warmup_plan,
    variant_plan,
)
from cockpit.model.text import sanitize
from cockpit.session.live_session import LiveSession
from cockpit.session.recovery import (
    check_hosts,
    is_loss,
    recover,
    restore,
    set_values,
    wait_for_hosts,
    wait_for_target,
)
from cockpit.study.collecting import collect
from cockpit.study.journal import Journal, write_journal
from cockpit.study.judging import next_round
from cockpit.study.plan import (
    DurationRange,
    StudyStep,
    all_steps,
    first_test,
    is_counted,
    reloads_left,
    round_of,
    search_time,
    steps_of,
    study_duration,
    total_duration,
    values_of,
)
from cockpit.study.restorer import RestorerProcess
from cockpit.study.results import StudyResult
from cockpit.tuning.transaction import wait_despite_cancellation

# Timeout (s) for a lost host to be reachable again; maximum number of repeated steps in a session.
LOST_FOR = 300.0
MOST_REPEATS = 3
# The name of the pass before the first step of a visit; its runs are not part of the result.
WARM_UP = "warm-up"


class StudyProgress(msgspec.Struct, frozen=True, kw_only=True):
    """Progress of a study: `step` of `steps` in `round` of at most `rounds` (0: no round has started).

    `now` is the current activity, `left` the estimated time left. `result` covers the completed rounds; None without
    any.
    """

    round: int
    rounds: int
    step: int
    steps: int
    now: str
    left: DurationRange
    result: StudyResult | None = None


class StudyRunner:
    """Runs the remaining steps of a study in one session, then restores the settings.

    `folder` has the study's journal and must be locked by this process. `earlier` are the last states of the study's
    earlier sessions.
    """

    def __init__(
        self,
        live: LiveSession,
        study: Study,
        folder: Path,
        journal: Journal,
        earlier: Sequence[State] = (),
    ) -> None:
        self.study = study
        self.journal = journal
        self._live = live
        self._session = live.session
        self._source = live.source
        self._folder = folder
        self._earlier = earlier
        self._result = collect(earlier, journal.name)
        self._round: StudyRound | None = None
        self._todo: list[StudyStep] = []
        self._visit: int | None = None
        self._restorer: RestorerProcess | None = None
        self._now = "connecting"
        self._run_times: list[float] = []
        self._repeats = 0
        self._known_left: tuple[tuple[int, int, int], DurationRange] | None = None

    @property
    def progress(self) -> StudyProgress:
        turn = self._round
        steps = len(turn.steps) if turn else 0
        return StudyProgress(
            round=turn.round if turn else 0,
            rounds=self.study.all_rounds,
            step=min(steps, steps - len(self._todo) + 1),
            steps=steps,
            now=self._now,
            left=self._left(),
            result=self._result,
        )

    def _left(self) -> DurationRange:
        """Return the time left as of the last run or step (see `_time_left`)."""
        now = (self._round.round if self._round else 0, len(self._todo), len(self._run_times))
        if self._known_left is None or self._known_left[0] != now:
            self._known_left = now, self._time_left()
        return self._known_left[1]

    def _time_left(self) -> DurationRange:
        """Estimate the time left: at least to the first test or this round's end, at most to the last round's end."""
        profile, turn = self._source.profile, self._round
        run = sum(self._run_times) / len(self._run_times) if self._run_times else None
        if turn is None:
            return study_duration(self.study, profile.knobs, profile.actions)
        first = max(turn.round, first_test(self.study))
        times = [
            total_duration(self.study, [*self._todo, *self._later(turn, last)], profile.knobs, profile.actions, run)
            for last in (first, self.study.all_rounds)
        ]
        return DurationRange(times[0].least, times[1].most, times[1].known)

    def _later(self, turn: StudyRound, last: int) -> list[StudyStep]:
        """Return the steps of the rounds after `turn` up to `last`, if no further comparison is closed."""
        rounds = [round_of(self.study, number, turn.open) for number in range(turn.round + 1, last + 1)]
        return [step for turn in rounds for step in steps_of(self.study, turn)]

    async def run(self) -> None:
        """Run all remaining steps; restore the knobs in any case before returning or raising.

        Raises TargetError, HostError, ChangeRefused, ChangeRolledBack; completed steps stay done.
        """
        await self._live.hosts_read()
        self._write(self.journal)
        self._source.emit(
            StudyBegun(
                t=self._source.now(),
                study=self.study.without_secrets(),
                fingerprint=self.study.fingerprint,
                steps=len(all_steps(self.study)),
                done=len(self._result.done) if self._result else 0,
            )
        )
        try:
            await self._save_originals()
            await self._rounds()
        finally:
            self._now = "restoring the settings"
            ending = asyncio.ensure_future(self._restore())
            await wait_despite_cancellation(ending)
            ending.result()
        self._source.emit(StudyEnded(t=self._source.now()))
        self._write(replace(self.journal, finished=True))

    async def _rounds(self) -> None:
        """Run rounds until every comparison is closed or the last round is done."""
        while (turn := next_round(self.study, self._result)) is not None:
            done = self._result.done if self._result else frozenset()
            self._todo = [step for step in steps_of(self.study, turn) if step.number not in done]
            self._round = replace(turn, t=self._source.now())
            self._source.emit(self._round)
            while self._todo:
                await self._run_or_repeat(self._todo[0])
                self._todo.pop(0)
            self._now = f"testing round {turn.round}"
            self._result = await self._result_of_round(turn)

    async def _result_of_round(self, turn: StudyRound) -> StudyResult | None:
        """Wait until the session's state has the last step of a round; return the study's result."""
        steps = {step.number for step in steps_of(self.study, turn)}
        earlier = self._result.done if self._result else frozenset()

        def has_steps(state: State) -> bool:
            return state.study is not None and steps <= earlier | {ended.step for ended in state.study.done}

        state = await self._session.until(has_steps)
        return await asyncio.to_thread(collect, [*self._earlier, state], self.journal.name)

    async def _save_originals(self) -> None:
        """Write the knobs' values to the journal before the first change, and start the restorer."""
        if not (self.study.knobs or self.study.after):
            return
        originals = await self._source.tuning.read(self.study.knobs)
        self._write(replace(self.journal, originals=originals, since=time.time(), touched=True))
        self._restorer = await RestorerProcess.start(self._folder)

    async def _run_or_repeat(self, step: StudyStep) -> None:
        """Run a step; if a host is lost, repeat the step when the host is back."""
        while True:
            try:
                return await self._run_step(step)
            except CockpitError as error:
                if not is_loss(self._session.state, error) or self._repeats == MOST_REPEATS:
                    raise
                self._repeats += 1
                self._visit = None
                detail = sanitize(str(error), 400)
                self._source.emit(StudyStepLost(t=self._source.now(), step=step.number, detail=detail))
                await self._source.load.stop()
                self._now = f"waiting for a host: {detail}"
                await recover(self._live, self.study.knobs, self.journal.since, LOST_FOR)

    async def _run_step(self, step: StudyStep) -> None:
        if step.visit != self._visit:
            self._visit = None
            await self._set_up(step)
            self._visit = step.visit
        study = self.study
        plan = variant_plan(study, step.variant, step.level)
        counted: list[int] = []
        for turn in range(1, study.discard + study.runs + 1):
            for part in study.passes:
                result = await self._run(step, part, plan, turn)
                if is_counted(study, step, turn) and self._has_value(result.run):
                    counted.append(result.run)
        self._source.emit(StudyStepEnded(t=self._source.now(), step=step.number, counted=tuple(counted)))

    async def _set_up(self, step: StudyStep) -> None:
        """Apply the variant's values, run the reloads that the changes did not run, and the variant's actions.

        Each visit thus has the same set-up, independent of the previous variant.
        """
        self._now = f"setting up {step.variant.name}"
        await wait_for_hosts(self._live)
        changed = await set_values(self._live, values_of(self.study, step.variant, self.journal.originals))
        await self._source.tuning.commands.reload(reloads_left(self.study, self._source.profile.knobs, changed))
        await self._act(step.variant.before)
        if self.study.setup_warmup:
            await self._run(step, Pass(name=WARM_UP), setup_warmup_plan(self.study, step.variant), 0)

    async def _act(self, names: Sequence[str]) -> None:
        for name in names:
            await self._source.tuning.commands.act(name)

    async def _run(self, step: StudyStep, part: Pass, plan: LoadPlan, turn: int) -> RunResult:
        self._now = words_of(step, part, plan, turn)
        begun = self._source.now()
        await self._act(part.before)
        await wait_for_hosts(self._live)
        await wait_for_target(plan)
        await self._source.load.over()
        self._source.load.plan = plan
        number = self._source.load.runs + 1
        self._source.emit(
            StudyRun(
                t=self._source.now(),
                run=number,
                step=step.number,
                round=step.round,
                variant=step.variant.name,
                level=step.level,
                pass_name=part.name,
                turn=turn,
            )
        )
        await self._observe(number, after=False)
        until = self.study.until if part.name != WARM_UP else ""
        state = await (self._live.search_once(until, search_time(self.study)) if until else self._live.run_once())
        check_hosts(state)
        await self._observe(number, after=True)
        result = run_result(state, number)
        if result is None or not _is_complete(state, result, searched=bool(until)):
            detail = result.detail if result else "it did not start"
            raise TargetError(f"{self._now}: the run did not complete: {detail or 'it was stopped'}")
        if part.name != WARM_UP:
            self._run_times.append(self._source.now() - begun)
        return result

    def _has_value(self, run: int) -> bool:
        """Return whether a run has a value to compare: a search without a capacity has none."""
        capacity = result_of(self._session.state, run)
        return not self.study.until or (capacity is not None and capacity.rate is not None)

    async def _observe(self, run: int, *, after: bool) -> None:
        for observation in self.study.observations:
            self._source.emit(await self._observation(observation, run, after))

    async def _observation(self, observation: Observation, run: int, after: bool) -> StudyObservation:
        try:
            text, detail = await self._source.tuning.commands.output_of(observation.host, observation.command), ""
        except (ChangeRefused, HostError) as error:
            text, detail = "", str(error)
        return StudyObservation(
            t=self._source.now(),
            run=run,
            name=observation.name,
            host=observation.host,
            after=after,
            text=text,
            detail=detail,
        )

    async def _restore(self) -> None:
        """Restore the knobs; leave the hosts where this fails to the restorer."""
        await self._source.load.stop()
        if not self.journal.touched:
            return
        journal = self.journal
        failed = await restore(self._live, journal.knobs, journal.actions, journal.originals, journal.since)
        self._write(self.journal.left_on(failed))
        if failed:
            if self._restorer:
                self._restorer.leave()
            raise next(iter(failed.values()))
        if self._restorer:
            await self._restorer.dismiss()

    def _write(self, journal: Journal) -> None:
        self.journal = journal
        write_journal(self._folder, journal)


def _is_complete(state: State, result: RunResult, *, searched: bool) -> bool:
    if not searched:
        return result.reason == "completed"
    capacity = result_of(state, result.run)
    return capacity is not None and capacity.is_complete


def words_of(step: StudyStep, part: Pass, plan: LoadPlan, turn: int) -> str:
    """Return a run's name, as in `event · 2000/s · cold · run 2`."""
    words = [step.variant.name]
    if turn == 0:
        return " · ".join([*words, part.name])
    if step.level is not None:
        words.append(f"{step.level:g}/s" if plan.open else f"c={step.level:g}")
    return " · ".join([*words, *([part.name] if part.name else []), f"run {turn}"])
