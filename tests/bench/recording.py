"""Cost of a recording: size, time to open and to seek, and data lost by a kill."""

import gc
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from statistics import median

from cockpit.cli import GARBAGE
from cockpit.model.events import AnyEvent
from cockpit.model.fold.fold import fold_all
from cockpit.recording.reader import Recording
from tests.bench import crowded
from tests.bench.table import at_most, exactly, report_other_load, show
from tests.recording.kills import killed

HOUR = 3600.0
LONG = 8 * HOUR
BAR_SIZE = 9.0  # MB per hour
BAR_REPORT = 3.0  # seconds
BAR_OPEN = 0.2
BAR_SEEK = 0.050  # median
BAR_PLAYED = 0.5
SEEKS = 60
FASTEST = 64
# Session seconds that are played at the highest speed, and screen updates per second.
PLAYED = 640.0
FRAMES = 20

KILLS = 200
AT_ONCE = 4


@cache
def _minute() -> list[AnyEvent]:
    return crowded.minute()


def recording_size() -> bool:
    """One hour of a host with 200 workers at 1 Hz and 2000 requests/s."""
    events = _minute()
    with tempfile.TemporaryDirectory() as folder, report_other_load():
        path = Path(folder) / "hour.cockpit"
        last = crowded.recorded(path, crowded.session(events, HOUR))
        size = path.stat().st_size / 1e6
        reported = _reported(path)
        with Recording(path) as recording:
            kinds = Counter(type(event).__name__ for event in recording.events())
            damage = recording.damage
    segment = last.segments[-1]
    lines = [
        f"{kinds['Tick']} ticks, {kinds['HostSample']} samples of {len(last.hosts['web1'].processes)} processes",
        f"{segment.counts.completed} requests, {len(segment.counts.latency.indices)} buckets of latency",
    ]
    bars = [
        at_most("MB", size, BAR_SIZE),
        exactly("damage", len(damage), 0),
        at_most("cockpit report as HTML", reported, BAR_REPORT, " s"),
    ]
    return show("recording of an hour", lines, bars)


def _reported(path: Path) -> float:
    """Return the duration of the command (s)."""
    begin = time.perf_counter()
    command = [sys.executable, "-m", "cockpit", "report", str(path), "-o", str(path.with_suffix(".html"))]
    subprocess.run(command, check=True, timeout=600)
    return time.perf_counter() - begin


def recording_seek() -> bool:
    """Eight hours of the same session: open, seek, and play at the highest speed."""
    events = _minute()
    with tempfile.TemporaryDirectory() as folder, report_other_load():
        path = Path(folder) / "long.cockpit"
        print("recording of eight hours, written in pages ...")
        crowded.recorded(path, crowded.session(events, LONG))
        size = path.stat().st_size / 1e6
        opening = _opened(path)
        with Recording(path) as recording:
            seeks = _seeks(recording)
            played = _played(recording)
    lines = [f"{size:.1f} MB; seeks: longest {1000 * max(seeks):.0f} ms of {SEEKS}"]
    bars = [
        at_most("opens in", opening, BAR_OPEN, " s"),
        at_most("seek, median", median(seeks), BAR_SEEK, " s"),
        at_most(f"cores to play at x{FASTEST}", played, BAR_PLAYED),
    ]
    return show("recording of eight hours", lines, bars)


def _opened(path: Path) -> float:
    """Return the time (s) until the start can be shown."""
    begin = time.perf_counter()
    with Recording(path) as recording:
        fold_all([known.event for known in recording.following(0, -1.0, 0.0)])
    return time.perf_counter() - begin


def _seeks(recording: Recording) -> list[float]:
    """Return the times (s) to load the state at random instants, with the garbage collection of `cockpit replay`."""
    gc.set_threshold(GARBAGE)
    gc.collect()
    gc.freeze()
    generator = random.Random(1)
    took = []
    for _ in range(SEEKS):
        t = generator.uniform(0, recording.end)
        begin = time.perf_counter()
        anchor = recording.latest_checkpoint(t)
        state = fold_all([entry.event for entry in recording.following(anchor.number, anchor.instant, t)], anchor.state)
        assert state.t <= t
        took.append(time.perf_counter() - begin)
    return took


def _played(recording: Recording) -> float:
    """Return the CPU share of the fastest replay, from the middle of the recording."""
    now = recording.end / 2
    anchor = recording.latest_checkpoint(now)
    number, since, state = anchor.number, anchor.instant, anchor.state
    begin = time.perf_counter()
    until = now + PLAYED
    while now < until:
        now += FASTEST / FRAMES
        found = recording.following(number, since, now)
        state = fold_all([entry.event for entry in found], state)
        number, since = (found[-1].number if found else number), now
    return (time.perf_counter() - begin) / (PLAYED / FASTEST)


def kills() -> bool:
    """Kill a recording process at random instants, many times."""
    with tempfile.TemporaryDirectory() as folder, report_other_load(), ThreadPoolExecutor(AT_ONCE) as pool:
        found = list(pool.map(lambda seed: killed(Path(folder) / f"{seed}.cockpit", seed), range(KILLS)))
    missing = [kill.missing for kill in found if kill.opened]
    problems = Counter(kill.problem for kill in found if kill.problem)
    lines = [f"missing: median {median(missing):.2f} s, most {max(missing):.2f} s", *map(str, problems.items())]
    return show(
        f"{KILLS} × kill -9 of a recorded session",
        lines,
        [exactly("files that open", len(missing), KILLS), at_most("seconds missing", max(missing), 1.0)],
    )
