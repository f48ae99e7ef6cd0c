"""Share of a run that the progress bar shows as done."""

from cockpit.cli.progress import _progress
from cockpit.model.counts import Counts
from cockpit.model.load.plan import LoadPlan, PathList, Stage
from cockpit.model.state import Segment, State


def state_at(t: float, plan: LoadPlan, *starts: float) -> State:
    """Return a run with segments from `starts` to `t`; the first is the warm-up if the plan has one."""
    ends = (*starts[1:], t)
    segments = tuple(
        Segment(
            number=n, run=1, plan=plan, start=start, last=end, counts=Counts(completed=5),
            warmup=n == 0 and plan.warmup > 0,
        )
        for n, (start, end) in enumerate(zip(starts, ends, strict=True))
    )  # fmt: skip
    return State(t=t, runs=1, running=1, plans={1: plan}, segments=segments)


def test_progress_of_levels_and_requests() -> None:
    plan = LoadPlan(url="http://a/", warmup=2.0, stages=(Stage(duration=4.0, concurrency=1),) * 2)
    states = [state_at(11.0, plan, 10.0), state_at(13.0, plan, 10.0, 12.0), state_at(20.0, plan, 10.0, 12.0, 16.0)]
    assert [_progress(state)[0] for state in states] == [0.1, 0.3, 1.0]
    counted = LoadPlan(url="http://a/", requests=20)
    assert _progress(state_at(1.0, counted, 0.0))[0] == 0.25
    once = LoadPlan(url="http://a/", paths=PathList(pattern="/{1..10}", order="once"))
    assert _progress(state_at(1.0, once, 0.0))[0] == 0.5
