"""What a recording costs: its size, how soon a long one opens and shows an instant, and what a kill takes of it."""

from __future__ import annotations

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
from cockpit.model.fold import fold_all
from cockpit.recording.reader import Recording
from tests.bench import crowded
from tests.bench.table import at_most, exactly, neighbours, show
from tests.recording.kills import killed

HOUR = 3600.0
LONG = 8 * HOUR
BAR_SIZE = 8.0  # MB an hour
BAR_REPORT = 3.0  # seconds
BAR_OPEN = 0.2
BAR_SEEK = 0.050  # median
BAR_PLAYED = 0.5
SEEKS = 60
FASTEST = 64
# Session seconds that are played at the fastest pace, and how often a second the screen is told.
PLAYED = 640.0
FRAMES = 20

KILLS = 200
AT_ONCE = 4


@cache
def _minute() -> list[AnyEvent]:
    return crowded.minute()


def recording_size() -> bool:
    """An hour of one host with 200 workers at 1 Hz and 2000 requests a second."""
    events = _minute()
    with tempfile.TemporaryDirectory() as folder, neighbours():
        path = Path(folder) / "hour.cockpit"
        last = crowded.recorded(path, crowded.session(events, HOUR))
        size = path.stat().st_size / 1e6
        reported = _reported(path)
        with Recording(path) as recording:
            kinds = Counter(type(event).__name__ for event in recording.events())
            damage = recording.damage
    row = last.segments[-1]
    lines = [
        f"{kinds['Tick']} ticks, {kinds['HostSample']} samples of {len(last.hosts['web1'].processes)} processes",
        f"{row.counts.completed} requests, {len(row.counts.latency.indices)} buckets of latency",
    ]
    bars = [
        at_most("MB", size, BAR_SIZE),
        exactly("damage", len(damage), 0),
        at_most("cockpit report, as a page, takes", reported, BAR_REPORT, " s"),
    ]
    return show("recording of an hour", lines, bars)


def _reported(path: Path) -> float:
    """Seconds that the command takes from its start to its end."""
    begin = time.perf_counter()
    command = [sys.executable, "-m", "cockpit", "report", str(path), "-o", str(path.with_suffix(".html"))]
    subprocess.run(command, check=True, timeout=600)
    return time.perf_counter() - begin


def recording_seek() -> bool:
    """Eight hours of the same: opened, looked at here and there, played at the fastest pace."""
    events = _minute()
    with tempfile.TemporaryDirectory() as folder, neighbours():
        path = Path(folder) / "long.cockpit"
        print("recording of eight hours, made in pages ...")
        crowded.recorded(path, crowded.session(events, LONG))
        size = path.stat().st_size / 1e6
        opening = _opened(path)
        with Recording(path) as recording:
            seeks = _seeks(recording)
            played = _played(recording)
    lines = [
        f"{size:.1f} MB; seeks: longest {1000 * max(seeks):.0f} ms of {SEEKS}",
    ]
    bars = [
        at_most("opens in", opening, BAR_OPEN, " s"),
        at_most("seek, median", median(seeks), BAR_SEEK, " s"),
        at_most(f"cores to play at x{FASTEST}", played, BAR_PLAYED),
    ]
    return show("recording of eight hours", lines, bars)


def _opened(path: Path) -> float:
    """Seconds until the beginning can be shown."""
    begin = time.perf_counter()
    with Recording(path) as recording:
        fold_all([known.event for known in recording.following(0, -1.0, 0.0)])
    return time.perf_counter() - begin


def _seeks(recording: Recording) -> list[float]:
    """Seconds until the state at instants all over it is there, with what the charts show of it; garbage is looked for
    as `cockpit replay` has it."""
    gc.set_threshold(GARBAGE)
    gc.collect()
    gc.freeze()
    drawn = random.Random(1)
    took = []
    for _ in range(SEEKS):
        t = drawn.uniform(0, recording.end)
        begin = time.perf_counter()
        anchor = recording.anchor(t)
        state = fold_all([one.event for one in recording.following(anchor.number, anchor.instant, t)], anchor.state)
        assert state.t <= t
        took.append(time.perf_counter() - begin)
    return took


def _played(recording: Recording) -> float:
    """The share of the time it has that the fastest replay takes, from the middle on."""
    now = recording.end / 2
    anchor = recording.anchor(now)
    number, since, state = anchor.number, anchor.instant, anchor.state
    begin = time.perf_counter()
    until = now + PLAYED
    while now < until:
        now += FASTEST / FRAMES
        found = recording.following(number, since, now)
        state = fold_all([one.event for one in found], state)
        number, since = (found[-1].number if found else number), now
    return (time.perf_counter() - begin) / (PLAYED / FASTEST)


def kills() -> bool:
    """A recording process killed at random instants, many times."""
    with tempfile.TemporaryDirectory() as folder, neighbours(), ThreadPoolExecutor(AT_ONCE) as pool:
        found = list(pool.map(lambda seed: killed(Path(folder) / f"{seed}.cockpit", seed), range(KILLS)))
    missing = [one.missing for one in found if one.opened]
    problems = Counter(one.problem for one in found if one.problem)
    lines = [f"missing: median {median(missing):.2f} s, most {max(missing):.2f} s", *map(str, problems.items())]
    return show(
        f"{KILLS} times kill -9 of a session that is recorded",
        lines,
        [exactly("files that open", len(missing), KILLS), at_most("seconds missing", max(missing), 1.0)],
    )
