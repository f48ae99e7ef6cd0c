"""The live source of events: load engine, host feeds and tuner, on one queue and one clock."""

from __future__ import annotations

import asyncio
import os
import platform
from collections import deque
from collections.abc import AsyncIterator, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

from cockpit import __version__
from cockpit.analysis.capacity.levels import suggested_limits
from cockpit.analysis.words.rounds import time_words
from cockpit.hosts.feed import HostFeed
from cockpit.hosts.ssh.prompts import Keyring, PromptQueue, Question
from cockpit.hosts.stacks.profiler import Profiler
from cockpit.hosts.tails import pane_feeds
from cockpit.load.generator import boot_id, watch_machine
from cockpit.load.workers import WorkerLauncher
from cockpit.model.clock import Clock
from cockpit.model.errors import UsageError
from cockpit.model.events import AnyEvent, HostChanged, HostCondition, Note, RunStarted, SessionEnded, SessionStarted
from cockpit.model.load.plan import url_without_password
from cockpit.model.text import sanitize
from cockpit.profiles.profile import Profile
from cockpit.recording.secrets import Secrets
from cockpit.session.capacity import CapacitySearch
from cockpit.session.controls import Action, Controls, LoadPhase, LoadStatus, Mode, immediate
from cockpit.session.interrupted import answers_to, interruption_words
from cockpit.session.live_events import LiveEvents
from cockpit.session.live_load import LiveLoad
from cockpit.session.live_tuning import LiveTuning
from cockpit.session.log_timing import LogTimings, question_words
from cockpit.session.loop import EventBatch
from cockpit.session.rounding import rounded
from cockpit.traffic.launcher import TrafficLauncher
from cockpit.tuning.applied import HistoryEntry
from cockpit.tuning.discovery.probing import probe_of


class LiveSource:
    """Source of the events of a live session. `batches()` starts to watch the hosts; load starts on request.

    `questions` passes questions of hosts to the user; None: no user, questions are refused. `check_target`: changes
    require a good response of the target before and after. `launcher` starts the load workers; None: on this machine.
    """

    def __init__(
        self,
        profile: Profile,
        clock: Clock,
        *,
        ssh_config: Path | None = None,
        questions: PromptQueue | None = None,
        check_target: bool = True,
        launcher: WorkerLauncher | None = None,
    ) -> None:
        self.profile = profile
        self._clock = clock
        self._secrets = Secrets(profile)
        self._events: deque[AnyEvent] = deque()
        self._woken = asyncio.Event()
        self._closed = False
        self._failure: BaseException | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.questions = questions
        keyring = Keyring()
        self.feeds = {
            config.name: HostFeed(
                config,
                clock,
                self.emit,
                ssh_config=ssh_config,
                asker=questions,
                keyring=keyring,
                plan=profile.plan,
            )
            for config in profile.hosts
        }
        self.profilers = {name: Profiler(feed, clock, self.emit) for name, feed in self.feeds.items()}
        traffic = profile.plan.traffic
        launcher = TrafficLauncher(self.feeds, clock) if traffic else launcher
        self.load = LiveLoad(profile.plan, clock, self.emit, launcher, self._secrets.learn_plan)
        self._live_events = events = LiveEvents(clock, self.emit, self._secrets.hide_values)
        probe = probe_of(profile.plan) if check_target and not traffic else None
        self.capacity = CapacitySearch(self.load, events)
        self.tuning = LiveTuning(profile, self.feeds, events, self.load, self._spawn, probe, self.capacity)
        self.timings = LogTimings(profile.timings, self.tuning, self.load, events)
        self.controls = LiveControls(self)

    def emit(self, event: AnyEvent) -> None:
        """Queue an event; only for the thread of the event loop."""
        event = self._secrets.redact(rounded(event))
        self._events.append(event)
        self._woken.set()
        if isinstance(event, HostChanged) and event.condition == HostCondition.UP and event.facts is not None:
            self._spawn(self.tuning.read_host(event.host))
        if isinstance(event, RunStarted) and event.plan.variants:
            asyncio.get_running_loop().call_soon(self.tuning.extension.await_duet)

    async def batches(self) -> AsyncIterator[EventBatch]:
        self.emit(_session_started(self.profile, self._clock))
        self._spawn(watch_machine(self._clock, self.emit, lambda: self.load.pids))
        self._spawn(self.tuning.watch_values())
        if self.profile.timings:
            self._spawn(self.timings.follow())
        for name, feed in self.feeds.items():
            self._spawn(feed.run())
            self._spawn(self.profilers[name].run())
            for pane in pane_feeds(feed, self._clock, self.emit):
                self._spawn(pane)
        while not (self._closed and not self._events):
            await self._woken.wait()
            self._woken.clear()
            if self._failure is not None:
                raise self._failure
            events = tuple(self._events)
            self._events.clear()
            if events:
                yield EventBatch(events, reached=self._live_events.update)

    def toggle_profilers(self, _: str = "") -> None:
        """Switch the CPU profiles of all hosts on, or off if one is on."""
        active = any(profiler.active for profiler in self.profilers.values())
        for profiler in self.profilers.values():
            profiler.switch(not active)

    def now(self) -> float:
        return self._clock.now()

    def mark(self, text: str) -> None:
        self.emit(Note(t=self._clock.now(), text=text.strip() or "mark"))

    async def close(self) -> None:
        """Stop the run, wait for its last metrics, and disconnect from the hosts."""
        if self._closed:
            return
        self.tuning.begin_close()
        await self.capacity.close()
        await self.load.stop()
        await self.tuning.close()
        await asyncio.gather(*(profiler.close() for profiler in self.profilers.values()))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.emit(SessionEnded(t=self._clock.now()))
        self._closed = True
        self._woken.set()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Fail the session if a task ended with an internal error; otherwise a pane would freeze silently."""
        self._tasks.discard(task)
        if not task.cancelled() and (failure := task.exception()) is not None:
            self._failure = failure
            self._woken.set()


class LiveControls(Controls):
    """The controls of a live session. `look_back`: actions that show its past, if it can be shown.

    While a study or a search controls load and settings (`mode`), only actions that do not disturb it are possible.
    """

    mode = Mode.LIVE

    def __init__(self, source: LiveSource) -> None:
        self.look_back: tuple[Action, ...] = ()
        self._source = source
        self._tuning = source.tuning
        load = source.load
        self._toggle_load = Action("toggle", "start/stop", self._toggle)
        # Users decide the load of their traffic.
        self._amount = (
            ()
            if source.profile.plan.traffic
            else (
                Action("more", "more load", immediate(lambda _: load.change(more=True))),
                Action("less", "less load", immediate(lambda _: load.change(more=False)), footer=False),
            )
        )
        self._mark = Action("mark", "note", immediate(source.mark), prompt="Note for the timeline")
        self._answer_hosts = Action("answer", "answer hosts", immediate(self._answer))
        self._profile = Action("profile", "profile", immediate(source.toggle_profilers), footer=False)
        self._stop_search = Action("capacity", "stop search", immediate(lambda _: source.capacity.stop()))
        confirm = immediate(lambda _: self._tuning.confirm())
        self._confirm, self._permit = Action("keep", "keep change", confirm), Action("keep", "switch now", confirm)

    @property
    def actions(self) -> tuple[Action, ...]:
        """The actions that are possible now; some only while a host or a change waits for the user."""
        questions = self._source.questions
        answer = (self._answer_hosts,) if questions and questions.awaited else ()
        search = self._stop_search if self._source.capacity.running else self._search()
        if self.mode is not Mode.LIVE:
            return (*answer, self._mark)
        waiting = self._permit if self._tuning.running_rounds else self._confirm
        confirm = (waiting,) if self._tuning.awaited else ()
        return (
            self._toggle_load,
            *answer,
            *confirm,
            *self._interrupted(),
            *self._timing(),
            *self._amount,
            self._mark,
            *((search,) if self._amount else ()),
            *((self._profile,) if self._source.profilers else ()),
            *self.look_back,
        )

    @property
    def tuning(self) -> LiveTuning | None:
        return self._tuning if self.mode is Mode.LIVE else None

    def _search(self) -> Action:
        capacity = self._source.capacity
        longest = time_words(capacity.longest)
        question = f"Capacity: the highest arrival rate within these limits, in at most {longest}"
        limits = suggested_limits(self._source.profile.thresholds)
        return Action("capacity", "capacity", capacity.run, question, footer=False, prefill=limits)

    def _interrupted(self) -> tuple[Action, ...]:
        if not self._tuning.interrupted.changes:
            return ()
        host, past = self._tuning.interrupted.changes[0]
        question = f"{interruption_words(host, past)}: {answers_to(past)}"
        carry_out = partial(self._resolve, host, past)
        return (Action("unfinished", "unfinished change", carry_out, prompt=question),)

    def _timing(self) -> tuple[Action, ...]:
        timing = self._source.timings.next
        if timing is None or self._tuning.awaited:
            return ()
        add = partial(self._source.timings.add, timing)
        return (Action("durations", "log durations", add, sanitize(question_words(timing), 400)),)

    @property
    def load(self) -> LiveLoad | None:
        return self._source.load if self.mode is Mode.LIVE else None

    @property
    def question(self) -> Question | None:
        questions = self._source.questions
        return questions.first if questions else None

    def decline_questions(self) -> None:
        if self._source.questions:
            self._source.questions.close()

    @property
    def status(self) -> LoadStatus:
        load = self._source.load
        if self._tuning.running_rounds:
            phase = LoadPhase.ASKING if self._tuning.awaited else LoadPhase.ROUNDS
        elif self._source.capacity.running:
            phase = LoadPhase.CAPACITY
        elif load.running:
            phase = LoadPhase.RUNNING
        else:
            phase = LoadPhase.STARTING if load.starting else LoadPhase.IDLE
        return LoadStatus(load.plan, phase, load.failure)

    @property
    def position(self) -> float | None:
        return self._source.now()

    async def _toggle(self, _: str) -> None:
        load = self._source.load
        if load.running or load.starting:
            await load.stop()
        else:
            await load.start()

    async def _resolve(self, host: str, past: HistoryEntry, answer: str) -> None:
        match answer.strip().lower():
            case "undo" | "u":
                await self._tuning.interrupted.undo(host, past)
            case "finish" | "f":
                await self._tuning.interrupted.finish(host, past)
            case "leave" | "l":
                await self._tuning.interrupted.leave(host, past)
            case _:
                raise UsageError(f"{past.name}: type {answers_to(past)}")

    def _answer(self, _: str) -> None:
        if self._source.questions:
            self._source.questions.invite()


def _session_started(profile: Profile, clock: Clock) -> SessionStarted:
    return SessionStarted(
        t=0.0,
        wall=clock.wall,
        version=__version__,
        name=profile.name,
        question=profile.question,
        target=url_without_password(profile.plan.url),
        hosts=tuple(host.without_secrets() for host in profile.hosts),
        knobs=profile.knobs,
        actions=profile.actions,
        thresholds=profile.thresholds,
        environment={
            "python": platform.python_version(),
            "kernel": f"{platform.system()} {platform.release()}",
            "cpus": str(os.cpu_count() or 1),
        },
        boot=boot_id(),
    )
