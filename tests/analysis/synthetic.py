"""Synthetic windows with known rates and latencies; consecutive seconds are autocorrelated."""

import numpy as np
import numpy.typing as npt

from cockpit.analysis.windows import Window
from cockpit.model.histogram import Histogram
from cockpit.model.host.state import CpuShare, HostPoint, MemoryUse
from cockpit.model.load.plan import LoadPlan
from cockpit.model.load.seconds import LoadSecond

Floats = npt.NDArray[np.float64]
PLAN = LoadPlan(url="http://a/", concurrency=20, duration=60.0)
OPEN = LoadPlan(url="http://a/", rate=1000.0, duration=60.0)

# Responses per second with a random latency. The rate is set separately, so that tests stay quick.
_DRAWN = 150
_TAIL = np.array([0.5, 1, 1.5, 2, 3, 30.0])
_TAIL_SHARES = np.array([0.2, 0.4, 0.2, 0.1, 0.08, 0.02])


def noise(generator: np.random.Generator, number: int, phi: float, deviation: float) -> Floats:
    """Return AR(1) noise around 0 with that standard deviation, from its stationary distribution."""
    shocks = generator.normal(0.0, deviation * np.sqrt(1 - phi**2), number)
    values = np.empty(number)
    values[0] = generator.normal(0.0, deviation)
    for at in range(1, number):
        values[at] = phi * values[at - 1] + shocks[at]
    return values


def window(
    seed: int,
    seconds: int = 60,
    *,
    rate: float = 1000.0,
    slower: float = 1.0,
    phi: float = 0.0,
    deviation: float = 0.04,
    drift: float = 0.0,
    failed: float = 0.0,
    busy: float = 40.0,
    other: float | None = None,
    start: int = 0,
    plan: LoadPlan = PLAN,
) -> Window:
    """Return a window of `rate` responses/s with latencies around 1 ms × `slower`.

    `drift` is the relative rise of the rate from the first second to the last, `failed` the share of failed responses,
    `other` the CPU share of other programs on the host (%, standard deviation 2 points; None: not measured).
    """
    generator = np.random.default_rng(seed)
    rises = 1 + drift * np.arange(seconds) / max(1, seconds - 1)
    rates = rate * rises * np.exp(noise(generator, seconds, phi, deviation))
    times = slower * np.exp(noise(generator, seconds, phi, deviation))
    shares = busy * np.exp(noise(generator, seconds, phi, deviation))
    used = 1e9 + np.cumsum(generator.normal(0, 1e5, seconds))
    found = []
    for at in range(seconds):
        drawn = generator.choice(_TAIL, _DRAWN, p=_TAIL_SHARES) * generator.lognormal(0, 0.2, _DRAWN)
        histogram = Histogram.of((drawn * times[at] * 1e6).astype(np.int64))
        completed = round(float(rates[at]))
        found.append(
            LoadSecond(
                second=start + at,
                start=float(start + at),
                end=float(start + at + 1),
                completed=completed,
                failed=int(generator.binomial(completed, failed)) if failed else 0,
                latency=histogram.coarse(),
            )
        )
    loads = [None if other is None else other + float(generator.normal(0, 2)) for _ in range(seconds)]
    points = tuple(_point(start + at + 1.0, float(shares[at]), int(used[at]), loads[at]) for at in range(seconds))
    return Window(
        start=float(start),
        end=float(start + seconds),
        plan=plan,
        seconds=tuple(found),
        hosts={"web1": points},
        cpus={"web1": 2},
    )


def _point(t: float, busy: float, used: int, other: float | None) -> HostPoint:
    return HostPoint(
        t=t,
        cpu=CpuShare(user=busy * 0.6, nice=0.0, system=busy * 0.4, iowait=0.0, steal=0.0, idle=100 - busy),
        memory=MemoryUse(total=4 << 30, used=used, free=1 << 30, shared=0, buff_cache=0, available=1 << 30),
        load=(0.0, 0.0, 0.0),
        other=other,
    )
