"""Carries a study out in a live session: sets up, loads, waits until it settles, and puts the knobs back."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from cockpit.model.errors import ChangeRefused, CockpitError, HostError, TargetError
from cockpit.model.events import StudyBegun, StudyLook, StudyRun, StudyStepEnded
from cockpit.model.figures import RunResult, run_result
from cockpit.model.load import LoadPlan
from cockpit.model.state import State
from cockpit.model.study import Look, Pass, Study
from cockpit.session.headless import hosts_ready, run_once
from cockpit.session.live import LiveSource
from cockpit.session.loop import Session
from cockpit.study.journal import Journal, write_journal
from cockpit.study.keeper import Keeper
from cockpit.study.plan import Extent, Step, agreed, counted, enough, load_of, steps, takes, values_of, warm_up_of
from cockpit.tuning.effect import GOOD_REPLIES, PACE, asked
from cockpit.tuning.probing import probe_of
from cockpit.tuning.transaction import see_through

# Seconds that a host or a target may take to come back after a change.
BACK_WITHIN = 60.0
# The name of the pass that is none of the study's: what comes before a first step.
WARM_UP = "warm-up"


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a study has come: `done` of `steps`, what it does `now`, about how many seconds are `left`."""

    steps: int
    done: int
    now: str
    left: Extent


class Runner:
    """One study in one session, from the steps that are not done yet to the settings put back.

    `folder` holds its journal; it must be locked for this process. `done` are the numbers of the steps that earlier
    sessions have done.
    """

    def __init__(
        self, session: Session, source: LiveSource, study: Study, folder: Path, journal: Journal, done: Collection[int]
    ) -> None:
        self.study = study
        self.journal = journal
        self._session = session
        self._source = source
        self._folder = folder
        self._steps = steps(study)
        self._todo = [step for step in self._steps if step.number not in done]
        self._visit: int | None = None
        self._keeper: Keeper | None = None
        self._now = "connecting"
        self._took: list[float] = []

    @property
    def progress(self) -> Progress:
        profile = self._source.profile
        run = sum(self._took) / len(self._took) if self._took else None
        left = takes(self.study, self._todo, profile.knobs, profile.actions, run)
        return Progress(steps=len(self._steps), done=len(self._steps) - len(self._todo), now=self._now, left=left)

    async def run(self) -> None:
        """All steps that are left. Whatever happens, the knobs are put back before this returns or raises.

        Raises TargetError, HostError, ChangeRefused, ChangeUndone; each step that was done until then stays done.
        """
        await hosts_ready(self._session, self._source)
        self._write(self.journal)
        self._source.emit(
            StudyBegun(
                t=self._source.now(),
                study=self.study.without_secrets(),
                fingerprint=self.study.fingerprint,
                steps=len(self._steps),
                done=len(self._steps) - len(self._todo),
            )
        )
        try:
            await self._look_up_originals()
            while self._todo:
                await self._do(self._todo[0])
                self._todo.pop(0)
        finally:
            self._now = "putting the settings back"
            ending = asyncio.ensure_future(self._put_back())
            await see_through(ending)
            ending.result()
        self._write(replace(self.journal, finished=True))

    async def _look_up_originals(self) -> None:
        """Reads the knobs and writes their values down, before anything is touched."""
        if not (self.study.knobs or self.study.after):
            return
        originals = await self._source.tuning.read(self.study.knobs)
        self._write(replace(self.journal, originals=originals, touched=True))
        self._keeper = await Keeper.start(self._folder)

    async def _do(self, step: Step) -> None:
        """One step, to its end."""
        if step.visit != self._visit:
            self._visit = None
            await self._set_up(step)
            self._visit = step.visit
        study = self.study
        plan = load_of(study, step.arm, step.rung)
        rates: list[list[float]] = [[] for _ in study.passes]
        runs: list[list[int]] = []
        while not enough(study, rates):
            runs.append([])
            for part, known in zip(study.passes, rates, strict=True):
                result = await self._run(step, part, plan, len(runs))
                known.append(settling_figure(result))
                runs[-1].append(result.run)
        chosen = tuple(run for turn in counted(study, len(runs)) for run in runs[turn])
        steady = agreed(study, rates)
        self._source.emit(StudyStepEnded(t=self._source.now(), step=step.number, counted=chosen, steady=steady))

    async def _set_up(self, step: Step) -> None:
        """The arm's values in force, its actions done."""
        self._now = f"setting up {step.arm.name}"
        tuning = self._source.tuning
        wanted = values_of(self.study, step.arm, self.journal.originals)
        await self._hosts_up()
        known = await tuning.read(self.study.knobs)
        await tuning.apply({name: value for name, value in wanted.items() if known[name] != value})
        await self._act(step.arm.before)
        if self.study.warm_up:
            await self._run(step, Pass(name=WARM_UP), warm_up_of(self.study, step.arm), 0)

    async def _act(self, names: Sequence[str]) -> None:
        for name in names:
            await self._source.tuning.act(name)

    async def _run(self, step: Step, part: Pass, plan: LoadPlan, turn: int) -> RunResult:
        self._now = words_of(step, part, plan, turn)
        begun = self._source.now()
        await self._act(part.before)
        await self._hosts_up()
        await self._serving(plan)
        await self._source.load.over()
        self._source.load.plan = plan
        number = self._source.load.runs + 1
        self._source.emit(
            StudyRun(
                t=self._source.now(),
                run=number,
                step=step.number,
                round=step.round,
                arm=step.arm.name,
                rung=step.rung,
                part=part.name,
                turn=turn,
            )
        )
        await self._look(number, after=False)
        state = await run_once(self._session, self._source)
        await self._look(number, after=True)
        result = run_result(state, number)
        if result is None or result.reason != "completed":
            detail = result.detail if result else "it did not begin"
            raise TargetError(f"{self._now}: the run did not come to its end: {detail or 'somebody stopped it'}")
        if part.name != WARM_UP:
            self._took.append(self._source.now() - begun)
        return result

    async def _look(self, run: int, *, after: bool) -> None:
        for look in self.study.looks:
            self._source.emit(await self._seen(look, run, after))

    async def _seen(self, look: Look, run: int, after: bool) -> StudyLook:
        try:
            text, detail = await self._source.tuning.look(look.host, look.command), ""
        except (ChangeRefused, HostError) as error:
            text, detail = "", str(error)
        return StudyLook(
            t=self._source.now(), run=run, look=look.name, host=look.host, after=after, text=text, detail=detail
        )

    async def _hosts_up(self) -> None:
        """Returns once every host is there. Raises HostError when one stays away."""

        def up(state: State) -> bool:
            return all(host.condition in ("up", "slow") for host in state.hosts.values())

        try:
            await asyncio.wait_for(self._session.until(up), BACK_WITHIN)
        except TimeoutError:
            away = next(host for host in self._session.state.hosts.values() if host.condition not in ("up", "slow"))
            raise HostError(f"{away.config.name}: {away.detail or f'is away for {BACK_WITHIN:.0f} s'}") from None

    async def _serving(self, plan: LoadPlan) -> None:
        """Returns once the target gives good replies in a row. Raises TargetError when it does not."""
        probe = probe_of(plan)
        deadline = asyncio.get_running_loop().time() + BACK_WITHIN
        good, wrong = 0, ""
        while good < GOOD_REPLIES:
            wrong = await asked(probe)
            good = 0 if wrong else good + 1
            if wrong:
                if asyncio.get_running_loop().time() > deadline:
                    raise TargetError(wrong)
                await asyncio.sleep(PACE)

    async def _put_back(self) -> None:
        """The knobs as they were before the study. What cannot be put back now the keeper tries on."""
        await self._source.load.stop()
        if not self.journal.touched:
            return
        try:
            await self._restore()
        except CockpitError:
            if self._keeper:
                self._keeper.leave()
            raise
        self._write(replace(self.journal, touched=False))
        if self._keeper:
            await self._keeper.dismiss()

    async def _restore(self) -> None:
        tuning = self._source.tuning
        known = await tuning.read(self.study.knobs)
        originals = self.journal.originals
        await tuning.apply({name: value for name, value in originals.items() if known[name] != value})
        await self._act(self.study.after)

    def _write(self, journal: Journal) -> None:
        self.journal = journal
        write_journal(self._folder, journal)


def settling_figure(result: RunResult) -> float:
    """What is to settle: the rate; where the plan fixes that, the median response time."""
    return result.counts.latency.percentile(50) if result.plan.open else result.rate


def words_of(step: Step, part: Pass, plan: LoadPlan, turn: int) -> str:
    """What is being run, as in `round 1 · event · 2000/s · cold · run 2`."""
    words = [f"round {step.round}", step.arm.name]
    if turn == 0:
        return " · ".join([*words, part.name])
    if step.rung is not None:
        words.append(f"{step.rung:g}/s" if plan.open else f"c={step.rung:g}")
    return " · ".join([*words, *([part.name] if part.name else []), f"run {turn}"])
