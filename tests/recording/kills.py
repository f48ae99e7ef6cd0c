"""Kill a process that records a session at a random time, and compare the file with the requests it had reported."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from cockpit.model.counts import Counts
from cockpit.model.errors import RecordingError
from cockpit.model.fold import fold_all
from cockpit.recording.reader import Recording

# A session with a run of 200 requests/s and a page every two seconds: each tick takes the same path as in cockpit, then
# the number of requests is printed.
SESSION = """
import sys, time
from pathlib import Path
from cockpit.model.events import RunStarted, SessionStarted, Tick
from cockpit.model.fold import fold
from cockpit.model.histogram import Histogram
from cockpit.model.load import LoadPlan
from cockpit.model.state import State
from cockpit.recording import writer
writer.PAGE_SECONDS = 2.0
recorder = writer.RecordingWriter(Path(sys.argv[1]))
state, begin, sent = State(), time.monotonic(), 0
def take(event):
    global state
    recorder.record([event])
    state = fold(state, event)
    recorder.settle(state)
take(SessionStarted(t=0.0, wall=0.0, version="0", name="killed"))
take(RunStarted(t=0.0, run=1, plan=LoadPlan(url="http://web1/")))
for number in range(100):
    time.sleep(max(0.0, begin + (number + 1) / 10 - time.monotonic()))
    latencies = Histogram.of([(1 + (number * k) % 97) * 1_000_000 for k in range(20)])
    start, t = number / 10, (number + 1) / 10
    take(Tick(t=t, start=start, run=1, worker=0, sent=20, completed=20, service=latencies, first_byte=latencies))
    sent += 20
    print(time.monotonic() - begin, sent, flush=True)
"""


class Killed(NamedTuple):
    """The file of a killed process; `missing`: seconds before the kill that are not recorded."""

    opened: bool
    missing: float
    problem: str = ""


def killed(path: Path, seed: int) -> Killed:
    """Record into `path` in a process that is killed between its first and last event."""
    # -P excludes the current directory; PYTHONPATH makes the tests' helpers importable.
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    process = subprocess.Popen([sys.executable, "-c", SESSION, path], stdout=subprocess.PIPE, env=environment)
    assert process.stdout is not None
    until = random.Random(seed).uniform(0.3, 8.0)
    printed = []
    for line in process.stdout:
        at, sent = map(float, line.split())
        printed.append((at, sent))
        if at >= until:
            break
    process.send_signal(signal.SIGKILL)
    # Lines printed between reading the clock and the signal count as well.
    printed += [
        (float(line.split()[0]), float(line.split()[1])) for line in process.stdout.read().splitlines(True)[:-1]
    ]
    process.wait()
    process.stdout.close()
    try:
        with Recording(path) as recording:
            state = fold_all(recording.events())
            problem = recording.damage
    except RecordingError as error:
        return Killed(False, printed[-1][0], str(error))
    counts = state.segments[-1].counts if state.segments else Counts()
    kept = min(counts.completed, counts.service.count, counts.first_byte.count)
    missing = [at for at, sent in printed if sent > kept]
    return Killed(not problem, printed[-1][0] - missing[0] if missing else 0.0, problem)
