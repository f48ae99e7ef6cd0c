"""Growth of memory and threads: intervals on autocorrelated noise, and the lines of reports."""

from collections.abc import Callable

import numpy as np
import pytest

from cockpit.analysis.growth import growths, slope
from cockpit.analysis.words.growth import growth_words
from cockpit.model.host.samples import HostConfig
from cockpit.model.host.state import HostPoint, HostState, MemoryUse
from cockpit.model.load.plan import LoadPlan
from cockpit.model.state import Segment, State
from tests.analysis.synthetic import Floats, noise

SECONDS, REPETITIONS = 3600, 100
TIMES = np.arange(SECONDS) + 0.5
NOISES: dict[str, Callable[[np.random.Generator], Floats]] = {
    "white": lambda random: random.normal(0, 1, SECONDS),
    "AR(1)": lambda random: noise(random, SECONDS, 0.99, 1.0),
    "random walk": lambda random: random.normal(0, 1, SECONDS).cumsum(),
    "steps": lambda random: (random.random(SECONDS) < 0.003).cumsum() - 0.003 * TIMES,
}


@pytest.mark.parametrize("name", NOISES)
def test_intervals_allow_for_autocorrelation(name: str) -> None:
    random = np.random.default_rng(3)
    intervals = [slope(TIMES, NOISES[name](random) + 0.01 * TIMES, 0, SECONDS) for _ in range(REPETITIONS)]
    covered = [interval is not None and interval.low <= 0.01 <= interval.high for interval in intervals]
    assert sum(covered) >= 0.88 * REPETITIONS


def state_of(seconds: int, per_hour: float) -> State:
    random = np.random.default_rng(4)
    memory = MemoryUse(total=1 << 32, used=0, free=0, shared=0, buff_cache=0, available=0)
    points = tuple(
        HostPoint(
            t=float(t),
            memory=memory,
            load=(0.0, 0.0, 0.0),
            count=3,
            pss=round(5e8 + per_hour * t / 3600 + random.normal(0, 1e5)),
            threads=12,
            files=3000 + t // 600,
        )
        for t in range(seconds)
    )
    host = HostState(config=HostConfig(name="web1"), points=points)
    segment = Segment(number=1, run=1, plan=LoadPlan(url="http://a/"), start=0.0, last=float(seconds))
    return State(hosts={"web1": host}, segments=(segment,))


def test_growth_is_a_line_of_long_runs() -> None:
    state = state_of(1800, 3.1 * 2**20)
    memory, threads, files = growths(state, state.segments)
    assert memory.per_hour.low <= 3.1 * 2**20 <= memory.per_hour.high
    assert growth_words(memory).startswith("web1 memory (PSS) +3.") and " MiB/h (95% CI " in growth_words(memory)
    assert growth_words(threads) == "web1 threads 0.0/h (95% CI 0.0 to 0.0)"
    assert growth_words(files).startswith("web1 open files +") and files.per_hour.low <= 6 <= files.per_hour.high
    short = state_of(300, 3.1 * 2**20)
    assert not list(growths(short, short.segments))


def test_time_without_samples_has_no_growth() -> None:
    assert slope(TIMES[:1000], TIMES[:1000], 0, SECONDS) is None
