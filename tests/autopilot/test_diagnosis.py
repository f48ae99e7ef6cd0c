"""Limits of a server, diagnosed from the metrics of a run; the plan and the claim of a search as text."""

import pytest
from msgspec.structs import replace

from cockpit.analysis.verdicts.outcome import Design, Effect, Outcome, Verdict
from cockpit.autopilot.diagnosis import BottleneckKind, find_bottlenecks, host_bottlenecks, suggested_knobs
from cockpit.autopilot.words import diagnosis_lines, plan_lines, result_line
from cockpit.metrics.results import RunResult
from cockpit.model.autopilot import AutopilotBegun, AutopilotEnded, AutopilotState, SearchedKnob, SearchPlan
from cockpit.model.counts import Counts
from cockpit.model.events import HostSample
from cockpit.model.fold.fold import fold_all
from cockpit.model.host.samples import CpuCounters
from cockpit.model.knobs import Knob
from cockpit.model.load.plan import LoadPlan
from tests.model.hosts import START, UP, result_of, sample

QUIET = {"cpu.idle": 60.0, "memory.total": 8e9, "memory.available": 4e9}
THROTTLED = {"cgroup.throttled": 60.4}
WAITING = "tasks waited for a CPU for 80% of the time while 60% was idle, because of a quota"


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
        (THROTTLED | {"cgroup.quota": 150.0}, BottleneckKind.QUOTA, "throttled in 60% of the periods, quota 1.5 CPUs"),
        (THROTTLED, BottleneckKind.QUOTA, "throttled in 60% of the periods"),
        ({"cpu.iowait": 30.0}, BottleneckKind.DISK, "30% of the time"),
        ({"cpu.idle": 3.0}, BottleneckKind.CPU, "97% busy"),
        ({"pressure.scpu": 80.0}, BottleneckKind.CPU, WAITING),
    ],
)
def test_limit_has_evidence(metrics: dict[str, float], limit: BottleneckKind, evidence: str) -> None:
    assert list(host_bottlenecks({**QUIET, **metrics}, ())) == [(limit, evidence)]


def test_single_busy_core_is_a_limit() -> None:
    assert [limit for limit, _ in host_bottlenecks(QUIET, (99.0, 10.0))] == [BottleneckKind.CORE]
    assert list(host_bottlenecks(QUIET, (99.0,))) == list(host_bottlenecks(QUIET, (60.0, 40.0))) == []
    assert list(host_bottlenecks({}, ())) == []
    assert list(host_bottlenecks({"memory.total": 8e9, "memory.used": 1e9}, ())) == []


def test_no_limit_and_generator_limit() -> None:
    none = {"hosts": {}, "segments": (), "saturated": 0.0, "stalled": 0.0, "losses": (), "detail": ""}
    plan = LoadPlan(url="http://a/")
    result = RunResult(run=1, plan=plan, counts=Counts(), seconds=20.0, reason="completed", **none)  # type: ignore[arg-type]
    knobs = [Knob(name="w", host="a", kind="apache", directive="MaxRequestWorkers"), Knob(name="x", host="a", key="x")]
    [nothing] = find_bottlenecks(result, (), knobs)
    assert (nothing.limit, nothing.knobs) == (BottleneckKind.NOTHING, ("w",))
    [found] = find_bottlenecks(replace(result, saturated=10.0), (), knobs)
    assert (found.limit, found.knobs, suggested_knobs([found])) == (BottleneckKind.GENERATOR, (), ())
    assert next(iter(diagnosis_lines([nothing]))).endswith("is at its limit) → w")


def test_use_of_each_cpu_is_that_of_the_run_not_of_its_end() -> None:
    def at(t: float, busy: int) -> HostSample:
        total = round(100 * t)
        cores = (CpuCounters(busy, 0, 0, total - busy, 0, 0, 0, 0), CpuCounters(0, 0, 0, total, 0, 0, 0, 0))
        return sample(t, cores=cores, cpu=CpuCounters(busy, 0, 0, 2 * total - busy, 0, 0, 0, 0))

    before, *during, after = (at(t, 100 * min(t, 4)) for t in range(1, 6))
    states = [fold_all([START, UP, before, *during[:number]]) for number in (0, 3)]
    [found] = find_bottlenecks(result_of(before, during, after), states, [])
    assert (found.limit, found.host, found.evidence) == (BottleneckKind.CORE, "web1", "busiest CPU 100%, all CPUs 38%")


SEARCHED = (SearchedKnob("KeepAlive", ("On", "Off")),)
BEGUN = AutopilotBegun(
    t=0.0,
    plan=SearchPlan(metric="rate", maximize=True, knobs=SEARCHED, budget=660.0, seed=1),
    original={"KeepAlive": "Off"},
    limits=("bottleneck: web1: all CPUs are busy (97% busy)",),
)
VERDICT = Verdict(
    outcome=Outcome.BETTER,
    design=Design.ROUNDS,
    values=(6, 6),
    effects=(
        Effect(name="rate", outcome=Outcome.BETTER, headline=True, change=0.23, low=0.18, high=0.29),
        Effect(name="p99", outcome=Outcome.EQUIVALENT, change=-0.02, low=-0.05, high=0.01),
        Effect(name="web1.cpu.per_request", outcome=Outcome.BETTER, change=-0.2, low=-0.3, high=-0.1),
        Effect(name="web1.memory.used", outcome=Outcome.WORSE, change=0.12, low=0.1, high=0.14),
    ),
)


def test_claim_lists_cost_in_errors_latency_and_memory() -> None:
    ended = AutopilotEnded(t=600.0, outcome="better", seconds=540.0, values={"KeepAlive": "On"}, rounds=1)
    line = result_line(AutopilotState(begun=BEGUN, ended=ended), VERDICT)
    assert line.startswith("better: KeepAlive On: rate better +23% (+18 to +29%)")
    assert "p99" in line and "web1 memory worse +12%" in line and "CPU" not in line
    assert line.endswith("0 evaluations, 6 rounds, 9:00; not applied, the original values are active")


def test_plan_starts_with_server_limits() -> None:
    first, second, third = plan_lines(BEGUN)
    assert first == "bottleneck: web1: all CPUs are busy (97% busy)"
    assert second == "maximize rate; budget 11:00 including the proof; seed 1"
    assert third == "  KeepAlive: On, Off (now Off)"
