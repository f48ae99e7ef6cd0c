"""Run-queue wait of the watched processes between two readings of a host."""

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
    assert step_between(old, new, FACTS).run_queue == (use if use is None else pytest.approx(use))
