"""Limits of a server, diagnosed from the metrics of a run."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.autopilot.diagnosis import BottleneckKind, find_bottlenecks, host_bottlenecks, suggested_knobs
from cockpit.autopilot.words import diagnosis_lines
from cockpit.model.counts import Counts
from cockpit.model.knobs import Knob
from cockpit.model.load import LoadPlan
from cockpit.model.metrics import RunResult

QUIET = {"cpu.idle": 60.0, "memory.total": 8e9, "memory.available": 4e9}


@pytest.mark.parametrize(
    ("metrics", "limit", "evidence"),
    [
        ({"listen.ListenOverflows": 12.0}, BottleneckKind.OVERFLOWS, "12.0 connections/s found the accept queue full"),
        ({"apache.busy": 150.0, "apache.idle": 0.0}, BottleneckKind.WORKERS, "150 busy, 0 idle (apache)"),
        ({"php-fpm.active": 5.0, "php-fpm.idle": 0.1}, BottleneckKind.WORKERS, "5 busy, 0 idle (php-fpm)"),
        ({"php-fpm.queued": 7.4}, BottleneckKind.QUEUED, "7 on average (php-fpm.queued)"),
        ({"processes.spawned_per_s": 30.0}, BottleneckKind.CHURN, "30.0 spawned/s"),
        ({"memory.available": 4e8}, BottleneckKind.MEMORY, "5% available"),
        ({"swapping.pswpin": 10.0}, BottleneckKind.MEMORY, "pages are swapped in or out"),
        ({"cgroup.memory": 96.4}, BottleneckKind.MEMORY, "its cgroup uses 96% of its limit"),
        (
            {"cgroup.throttled": 60.4, "cgroup.quota": 150.0},
            BottleneckKind.QUOTA,
            "throttled in 60% of the periods, quota 1.5 CPUs",
        ),
        ({"cgroup.throttled": 60.4}, BottleneckKind.QUOTA, "throttled in 60% of the periods"),
        ({"cpu.iowait": 30.0}, BottleneckKind.DISK, "30% of the time"),
        ({"cpu.idle": 3.0}, BottleneckKind.CPU, "97% busy"),
        (
            {"pressure.scpu": 80.0},
            BottleneckKind.CPU,
            "tasks waited for a CPU for 80% of the time while 60% was idle, because of a quota",
        ),
    ],
)
def test_limit_has_evidence(metrics: dict[str, float], limit: BottleneckKind, evidence: str) -> None:
    assert list(host_bottlenecks({**QUIET, **metrics}, ())) == [(limit, evidence)]


def test_single_busy_core_is_a_limit() -> None:
    assert [limit for limit, _ in host_bottlenecks(QUIET, (99.0, 10.0))] == [BottleneckKind.CORE]
    assert list(host_bottlenecks(QUIET, (99.0,))) == list(host_bottlenecks(QUIET, (60.0, 40.0))) == []
    assert list(host_bottlenecks({}, ())) == []


def test_no_limit_and_generator_limit() -> None:
    result = RunResult(
        run=1,
        plan=LoadPlan(url="http://a/"),
        counts=Counts(),
        seconds=20.0,
        hosts={},
        segments=(),
        saturated=0.0,
        stalled=0.0,
        partial="",
        reason="completed",
        detail="",
    )
    knobs = [Knob(name="w", host="a", kind="apache", directive="MaxRequestWorkers"), Knob(name="x", host="a", key="x")]
    [nothing] = find_bottlenecks(result, {}, knobs)
    assert (nothing.limit, nothing.knobs) == (BottleneckKind.NOTHING, ("w",))
    [found] = find_bottlenecks(replace(result, saturated=10.0), {}, knobs)
    assert (found.limit, found.knobs, suggested_knobs([found])) == (BottleneckKind.GENERATOR, (), ())
    assert next(iter(diagnosis_lines([nothing]))).endswith("is at its limit) → w")
