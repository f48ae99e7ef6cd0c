"""Times and context switches of the watched processes between two readings of a host."""

import pytest
from msgspec.structs import replace

from cockpit.model.host.rates import step_between
from cockpit.model.host.samples import ProcessCounters
from tests.model.hosts import FACTS, process, reading

SECOND = 1_000_000_000


def worker(pid: int, ran: float | None, waited: float = 0.0, ticks: int | None = None) -> ProcessCounters:
    """Return a process that ran and waited for these seconds; `ticks`: its CPU time if it has further threads."""
    if ran is None:
        return process(pid, utime=ticks or 0)
    counters = process(pid, utime=round(ran * FACTS.hz) if ticks is None else ticks)
    return replace(counters, ran=round(ran * SECOND), waited=round(waited * SECOND))


@pytest.mark.parametrize(
    ("before", "after", "use"),
    [
        ([worker(1, 1, 1), worker(2, 5, 1)], [worker(1, 3, 2), worker(2, 5, 1)], (100 / 3, 30.0)),
        ([worker(1, 1, 1)], [worker(1, 3, 2), worker(2, 2, 3)], (50.0, 50.0)),
        ([worker(1, 1, 1), worker(2, None)], [worker(1, 2, 1), worker(2, None)], (0.0, 10.0)),
        ([worker(1, 1, 1), worker(2, None)], [worker(1, 2, 1), worker(2, None, ticks=5)], None),
        ([worker(1, 1, 1), worker(2, None)], [worker(1, 2, 1), worker(2, 4)], None),
        ([worker(1, 1, 1)], [worker(1, 2, 1, ticks=300)], None),
        ([worker(1, 1, 1)], [worker(1, 1, 1)], None),
        ([], [], None),
    ],
    ids=["one runs", "new", "idle threads", "busy threads", "threads before", "threads meanwhile", "idle", "none"],
)
def test_wait_is_a_share_of_the_time_ready_to_run(
    before: list[ProcessCounters], after: list[ProcessCounters], use: tuple[float, float] | None
) -> None:
    old, new = reading(0.0, processes=tuple(before)), reading(10.0, processes=tuple(after))
    times = step_between(old, new, FACTS).times
    known = None if times is None or times.wait is None else (times.wait, times.busiest)
    assert known == (use if use is None else pytest.approx(use))


def test_times_are_shares_of_all_processes() -> None:
    before = (worker(1, 1, 1), worker(2, 5, 1))
    new = replace(worker(3, 1, 1), start=100_900)
    after = (worker(1, 3, 2), replace(worker(2, 5, 1), stat="D"), new, process(4, stat="Z"))
    # The third process started a second before the end of the interval.
    old, now = reading(0.0, processes=before), reading(10.0, processes=after)
    times = step_between(old, now, FACTS).times
    assert times is not None and (times.lived, times.ran, times.waited, times.blocked) == (21.0, 3.0, 2.0, 10.0)
    assert times.shares == pytest.approx((100 * 3 / 21, 100 * 2 / 21, 100 * 10 / 21, 100 * 16 / 21))


def test_context_switches_are_counted_in_total_and_by_cause() -> None:
    before = (replace(worker(1, 1), switches=10, left=(8, 1)), replace(worker(2, 1), switches=7))
    after = (replace(worker(1, 2), switches=30, left=(20, 4)), replace(worker(2, 2), switches=9, left=(5, 2)))
    times = step_between(reading(0.0, processes=before), reading(10.0, processes=after), FACTS).times
    assert times is not None and (times.switches, times.left) == (22, (12, 3))


def test_idle_threads_make_times_unknown() -> None:
    """A clock tick is too coarse to say that they did not run."""
    before, after = (worker(1, 1, 1), worker(2, None)), (worker(1, 2, 1), process(2, utime=0))
    times = step_between(reading(0.0, processes=before), reading(10.0, processes=after), FACTS).times
    assert times is not None and times.wait == 0 and times.lived == 0
