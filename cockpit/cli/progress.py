"""Progress bar on stderr for runs without the screen."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress

from cockpit.analysis.capacity.result import levels_of
from cockpit.analysis.words.capacity import level_line
from cockpit.cli.terminal import raw
from cockpit.load.paths import count_of
from cockpit.metrics.results import RunResult, run_result
from cockpit.model.load.plan import LoadPlan
from cockpit.model.state import State
from cockpit.model.text import milliseconds, sanitize, si
from cockpit.profiles.profile import Profile
from cockpit.report.words import plan_words
from cockpit.session.capacity import searchable
from cockpit.session.loop import EndOfSession, Session

REFRESH = 0.25


async def show_progress(session: Session, profile: Profile) -> None:
    """Show progress until cancelled; if stderr is not a terminal, print only the load."""
    print(plan_words(profile.plan.without_secrets()), file=sys.stderr)
    if sys.stderr.isatty():
        await _bar(session)


async def show_search(session: Session, profile: Profile) -> None:
    """Print one line per level of a capacity search until cancelled."""
    print(plan_words(searchable(profile.plan).without_secrets()), file=sys.stderr)
    await print_lines(session, _level_lines)


def _level_lines(state: State) -> list[str]:
    levels = levels_of(state, state.capacities[-1]) if state.capacities else ()
    return [level_line(number, level) for number, level in enumerate(levels, 1)]


async def print_lines(session: Session, lines_of: Callable[[State], Sequence[str]]) -> None:
    """Print on stderr each line of the states, once, until the session ends."""
    printed: set[str] = set()

    def new_lines(state: State) -> list[str]:
        return [line for line in lines_of(state) if line not in printed]

    with suppress(EndOfSession):
        while True:
            for line in new_lines(await session.until(lambda state: bool(new_lines(state)))):
                printed.add(line)
                print(sanitize(line), file=sys.stderr, flush=True)


async def _bar(session: Session) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=Console(file=raw(sys.stderr)), transient=True, auto_refresh=False) as progress:
        task = progress.add_task(_waiting(session.state), total=1.0)
        while True:
            done, words = _progress(session.state)
            progress.update(task, completed=done, description=words, refresh=True)
            await asyncio.sleep(REFRESH)


def _progress(state: State) -> tuple[float, str]:
    result = run_result(state, state.runs) if state.runs else None
    if result is None:
        return 0.0, _waiting(state)
    warming = "warm-up  " if result.segments[0].warmup else ""
    return min(1.0, _share(state, result.plan, result)), f"{warming}{result_words(result)}"


def result_words(result: RunResult) -> str:
    p99 = milliseconds(result.counts.latency.percentile(99))
    return f"{si(result.rate)} req/s  p99 {p99} ms  {result.counts.failed} failed"


def _share(state: State, plan: LoadPlan, result: RunResult) -> float:
    """Return the completed share of the time (warm-up included) or of the requests, whichever is larger."""
    return max(_share_of_time(state, plan, result), _share_of_requests(plan, result))


def _share_of_time(state: State, plan: LoadPlan, result: RunResult) -> float:
    seconds = plan.duration or sum(stage.duration for stage in plan.stages)
    if not seconds:
        return 0.0
    began = next(segment.start for segment in state.segments if segment.run == result.run)
    return (state.t - began) / (plan.warmup + seconds)


def _share_of_requests(plan: LoadPlan, result: RunResult) -> float:
    once = plan.paths is not None and plan.paths.order == "once"
    requests = plan.requests or (count_of(plan.paths) if plan.paths and once else 0)
    if not requests or result.segments[0].warmup:
        return 0.0
    return (result.counts.completed + sum(result.counts.errors.values())) / requests


def _waiting(state: State) -> str:
    waiting = [name for name, host in state.hosts.items() if not host.points]
    return f"connecting to {', '.join(waiting)}" if waiting else "starting"
