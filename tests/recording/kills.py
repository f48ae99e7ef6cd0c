"""Kill a process that records a session at a random time, and compare the file with the requests it had reported."""

import os
import random
import signal
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from cockpit.model.counts import Counts
from cockpit.model.errors import RecordingError
from cockpit.model.events import AnyEvent, RunStarted, SessionStarted
from cockpit.model.fold.fold import fold, fold_all
from cockpit.model.histogram import Histogram
from cockpit.model.load.plan import LoadPlan
from cockpit.model.state import State
from cockpit.model.tick import Tick
from cockpit.recording import writer
from cockpit.recording.reader import Recording
from tests.commands import FORKS


class Killed(NamedTuple):
    """The file of a killed process; `missing`: seconds before the kill that are not recorded."""

    opened: bool
    missing: float
    problem: str = ""


def killed(path: Path, seed: int, latest: float = 8.0) -> Killed:
    """Record into `path` in a process that is killed after 0.3 s to `latest` s."""
    reports, theirs = FORKS.Pipe(duplex=False)
    process = FORKS.Process(target=_record, args=(path, theirs))
    process.start()
    theirs.close()
    until = random.Random(seed).uniform(0.3, latest)
    sent = [reports.recv()]
    while sent[-1][0] < until:
        sent.append(reports.recv())
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    # Requests reported between reading the clock and the signal count as well.
    while reports.poll():
        try:
            sent.append(reports.recv())
        except (EOFError, OSError):
            break
    reports.close()
    end = sent[-1][0]
    try:
        with Recording(path) as recording:
            state = fold_all(recording.events())
            problem = recording.damage
    except RecordingError as error:
        return Killed(False, end, str(error))
    counts = state.segments[-1].counts if state.segments else Counts()
    kept = min(counts.completed, counts.service.count, counts.first_byte.count)
    missing = [at for at, requests in sent if requests > kept]
    return Killed(not problem, end - missing[0] if missing else 0.0, problem)


def _record(path: Path, reports: Connection) -> None:
    """Record a run of 200 requests/s with a page every two seconds: each tick takes the same path as in cockpit, then
    the time (s) and the number of requests are sent."""
    writer.PAGE_SECONDS = 2.0
    recorder, state, begin = writer.RecordingWriter(path), State(), time.monotonic()

    def record(event: AnyEvent) -> None:
        nonlocal state
        recorder.record([event])
        state = fold(state, event)
        recorder.settle(state)

    record(SessionStarted(t=0.0, wall=0.0, version="0", name="killed"))
    record(RunStarted(t=0.0, run=1, plan=LoadPlan(url="http://web1/")))
    for number in range(100):
        time.sleep(max(0.0, begin + (number + 1) / 10 - time.monotonic()))
        latencies = Histogram.of([(1 + (number * k) % 97) * 1_000_000 for k in range(20)])
        start, t = number / 10, (number + 1) / 10
        record(Tick(t=t, start=start, run=1, worker=0, sent=20, completed=20, service=latencies, first_byte=latencies))
        reports.send((time.monotonic() - begin, 20 * (number + 1)))
