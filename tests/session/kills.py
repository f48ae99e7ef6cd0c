"""A process that records a session is killed at a random instant, and what it had said by then is looked for in the
file."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from cockpit.model.errors import RecordingError
from cockpit.model.fold import fold_all
from cockpit.session.recording.reader import Recording

# A session at ten times its pace, a page every two seconds: each batch is recorded, folded and settled, then said.
SESSION = """
import sys, time
from pathlib import Path
from cockpit.model.fold import fold
from cockpit.model.state import State
from cockpit.session.recording import writer
from tests.session.events import small_session
writer.PAGE_SECONDS = 2.0
recorder = writer.RecordingWriter(Path(sys.argv[1]))
state, begin = State(), time.monotonic()
for event in small_session():
    time.sleep(max(0.0, begin + event.t / 10 - time.monotonic()))
    recorder.record([event])
    said = time.monotonic()
    state = fold(state, event)
    recorder.settle(state)
    print(said - begin, event.t, flush=True)
while True:
    time.sleep(1)
"""


class Killed(NamedTuple):
    """What became of a file: `missing` seconds of the process's life before it was killed are not in it."""

    opened: bool
    missing: float
    problem: str = ""


def killed(path: Path, seed: int) -> Killed:
    """Records into `path` in a process that is killed between its first event and its last."""
    # -P leaves the current directory out; the tests' helpers are found by PYTHONPATH.
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    process = subprocess.Popen([sys.executable, "-c", SESSION, path], stdout=subprocess.PIPE, env=environment)
    assert process.stdout is not None
    until = random.Random(seed).uniform(0.3, 5.8)
    told = []
    for line in process.stdout:
        at, t = map(float, line.split())
        told.append((at, t))
        if at >= until:
            break
    process.send_signal(signal.SIGKILL)
    # What was said between the look at the clock and the signal counts as well.
    told += [(float(line.split()[0]), float(line.split()[1])) for line in process.stdout.read().splitlines(True)[:-1]]
    process.wait()
    process.stdout.close()
    try:
        with Recording(path) as recording:
            events = list(recording.events())
            fold_all(events)
            problem = recording.damage
    except RecordingError as error:
        return Killed(False, told[-1][0], str(error))
    after = told[len(events) :]
    return Killed(not problem, told[-1][0] - after[0][0] if after else 0.0, problem)
