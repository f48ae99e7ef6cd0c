"""Growth of memory, threads and open files of a server over a long run. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from cockpit.analysis.intervals import ALPHA, Floats, Interval, student_quantile
from cockpit.analysis.windows import GUARD
from cockpit.model.state import Segment, State

# Minimum length (s) of a segment whose growth is estimated, blocks of its samples, and minimum share of filled blocks.
LEAST, BLOCKS, FILLED = 600.0, 30, 0.8
# Samples after the start of a segment that do not count: a share of its length.
_STARTING = 0.1
_HOUR = 3600.0
# Autocorrelation of blocks from which they are judged as a random walk.
_WALK = 0.4


class Growth(NamedTuple):
    """The growth of a metric of a host per hour: `memory` (PSS, bytes) or `threads` of the watched processes, or
    `open files` of the whole host."""

    host: str
    metric: str
    per_hour: Interval


def growths(state: State, segments: Sequence[Segment]) -> Iterator[Growth]:
    """Yield the growth of each host in the longest segment; nothing if it is shorter than LEAST."""
    longest = max(segments, key=lambda segment: segment.seconds, default=None)
    if longest is None or longest.seconds < LEAST:
        return
    start = longest.start + max(GUARD, _STARTING * longest.seconds)
    for name, host in state.hosts.items():
        points = [point for point in host.points if start <= point.t <= longest.last and not point.hidden]
        memory = [(point.t, float(point.pss)) for point in points if point.pss is not None and point.count]
        threads = [(point.t, float(point.threads)) for point in points if point.count]
        files = [(point.t, float(point.files)) for point in points if point.files is not None]
        for metric, values in (("memory", memory), ("threads", threads), ("open files", files)):
            if not values:
                continue
            times, amounts = np.array(values).T
            if (interval := slope(times, amounts, start, longest.last)) is not None:
                yield Growth(name, metric, Interval(*(_HOUR * value for value in interval)))


def slope(times: Floats, values: Floats, start: float, end: float) -> Interval | None:
    """Return the slope (1/s) of a line from `start` to `end`, fitted to the means of BLOCKS blocks. The interval allows
    for autocorrelation of first order between blocks, and for a random walk. None: too few samples."""
    places = np.minimum((BLOCKS * (times - start) / (end - start)).astype(int), BLOCKS - 1)
    filled = np.unique(places)
    if len(filled) < FILLED * BLOCKS:
        return None
    means = np.array([values[places == place].mean() for place in filled])
    middles = start + (filled + 0.5) * (end - start) / BLOCKS
    apart = middles - middles.mean()
    steep = float(apart @ means / (apart @ apart))
    rest = means - means.mean() - steep * apart
    squares = float(rest @ rest)
    number = len(filled)
    if squares <= 1e-12 * max(1.0, float(means @ means)):
        return Interval.around(steep, 0.0)
    seen = float(rest[1:] @ rest[:-1]) / squares
    # Residuals of a fitted line correlate less than the noise.
    correlation = max(0.0, seen + (2 + 4 * seen) / number)
    if correlation >= _WALK:
        # A random walk, perhaps: the mean of its steps is the slope. Steps of block means have a correlation of 1/4.
        steps = np.diff(means) / np.diff(middles)
        error, freedom = float(steps.std(ddof=1)) * math.sqrt(1.5 / len(steps)), len(steps) - 1.0
        return Interval.around(float(steps.mean()), student_quantile(1 - ALPHA / 2, freedom) * error)
    inflation = (1 + correlation) / (1 - correlation)
    freedom = max(2.0, number / inflation - 2)
    error = math.sqrt(squares / (number - 2) * inflation / float(apart @ apart))
    return Interval.around(steep, student_quantile(1 - ALPHA / 2, round(freedom, 1)) * error)
