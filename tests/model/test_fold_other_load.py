"""Other load of a host: busy time minus the processes known to run on its machine."""

import re

import pytest
from msgspec.structs import replace

from cockpit.analysis.warnings import run_warnings
from cockpit.analysis.words.warnings import warning_words
from cockpit.metrics.results import run_result
from cockpit.metrics.values import metric_value
from cockpit.model import events as ev
from cockpit.model.fold.fold import fold_all
from cockpit.model.generators import CpuTimes, GeneratorSample
from cockpit.model.host.samples import CpuCounters, HostConfig, HostFacts, ProcessCounters
from cockpit.model.load.plan import LoadPlan
from cockpit.model.state import State
from cockpit.report.run import run_text
from tests.model.hosts import reading

BOOT = "b1"
HZ = 100
# Clock ticks per second of the host: 30 in programs, 10 of them nice, 5 stolen, 20 in interrupts, on two CPUs.
PER_SECOND = CpuCounters(15, 10, 5, 145, 0, 5, 15, 5)


def start(*names: str, boot: str = "", processes: tuple[str, ...] = ("apache2",)) -> list[ev.AnyEvent]:
    hosts = tuple(HostConfig(name=name, processes=processes) for name in names)
    facts = HostFacts(hostname="x", kernel="6.1", cpus=2, hz=HZ, page=4096, boot=BOOT)
    started = ev.SessionStarted(t=0, wall=0, version="0", name="x", hosts=hosts, boot=boot)
    return [started, *(ev.HostChanged(t=0, host=name, condition="up", facts=facts) for name in names)]


def sample(
    t: float, used: int, host: str = "web1", pid: int = 7, begun: int = 10, probe: float = 0.0, **changed: object
) -> ev.HostSample:
    """A sample `t` seconds after the start, with `used` clock ticks of CPU in the watched processes."""
    process = ProcessCounters(pid, 1, begun, "S", "apache2", 0, 0, 1, 0, 0, 0, "apache2")
    values: dict[str, object] = {
        "cpu": CpuCounters(*(round(t * getattr(PER_SECOND, name)) for name in PER_SECOND.__struct_fields__)),
        "processes": (process,),
        "processes_cpu": used,
        "probe_cpu": probe,
    }
    return ev.HostSample(t=t, host=host, round_trip=0.0, reading=replace(reading(t), **(values | changed)))


def generator(t: float, own: float, boot_times: float = 0.0) -> GeneratorSample:
    return GeneratorSample(
        t=t, cpus=2, times=CpuTimes(user=boot_times, nice=0, system=0, idle=2 * t - boot_times), own=own
    )


def others(events: list[ev.AnyEvent], host: str = "web1") -> list[float | None]:
    return [point.other for point in fold_all(events).hosts[host].points]


def test_offline_cpu_is_no_other_load() -> None:
    """An offline CPU has no line, or counters that stand still."""
    off, still = CpuCounters(*[0] * 8), CpuCounters(5, 0, 0, 900, 0, 0, 0, 0)

    def idle(ticks: int) -> CpuCounters:
        return CpuCounters(0, 0, 0, ticks, 0, 0, 0, 0)

    samples = [sample(at, 0, cpu=idle(200 * at), cores=(idle(100 * at), off, idle(100 * at), still)) for at in (1, 2)]
    assert others([*start("web1"), *samples]) == [None, 0.0]


def test_other_load_is_busy_time_minus_watched_and_probe() -> None:
    found = others([*start("web1"), sample(1, 50), sample(2, 65, probe=0.02)])
    # 35 ticks of 200, minus 15 and 2; interrupts belong to no process.
    assert found == [None, 9.0]
    # The kernel charged programs with twice the CPU time that they used.
    twice = CpuCounters(60, 0, 10, 145, 0, 5, 15, 0)

    def counters(t: float) -> CpuCounters:
        return CpuCounters(*(round(t * getattr(twice, name)) for name in twice.__struct_fields__))

    found = others([*start("web1"), sample(1, 50, cpu=counters(1)), sample(2, 65, cpu=counters(2))])
    assert found[-1] == pytest.approx(10.0)


def test_generator_on_same_machine_is_subtracted() -> None:
    events = [
        *start("web1", boot=BOOT),
        *(generator(t, 0.1 * t) for t in (0.5, 1.5, 2.5)),
        sample(3, 50),
        generator(3.5, 0.35),
        sample(4, 60),
    ]
    assert others(events)[-1] == pytest.approx(7.5)
    point = fold_all(events).hosts["web1"].points[-1]
    assert (point.servers, point.generator, point.other) == (5.0, 5.0, 7.5)
    elsewhere = [*start("web1", boot="b2"), *events[2:]]
    assert others(elsewhere)[-1] == pytest.approx(12.5)
    point = fold_all(elsewhere).hosts["web1"].points[-1]
    assert (point.servers, point.generator) == (5.0, None)
    state = fold_all([*start(), generator(1, 0.5, 1.0), generator(3, 0.9, 2.4)])
    assert isinstance(state, State) and state.generator is not None
    # 1.4 s busy of 4, minus 0.4 s of the generator.
    assert (state.generator.other, state.generator.idle) == (25.0, 65.0)


def test_hosts_on_same_machine_are_subtracted_from_each_other() -> None:
    rounds = [
        event
        for t in range(1, 6)
        for event in (sample(t, 10 * t, "web1"), sample(t + 0.4, round(4 * (t + 0.4)), "app1", begun=11))
    ]
    events = [*start("web1", "app1"), *rounds]
    # 35 ticks of 200, minus 10 and 4.
    assert others(events)[-1] == pytest.approx(10.5, abs=0.3)
    assert others(events, "app1")[-1] == pytest.approx(10.5, abs=0.3)
    rounds = [
        event for t in range(1, 6) for event in (sample(t, 10 * t, "web1"), sample(t + 0.4, 10 * t + 4, "app1", pid=1))
    ]
    events = [*start("web1", "app1"), *rounds]
    assert others(events)[-1] == pytest.approx(12.5, abs=0.3)


def test_servers_that_started_a_process_in_the_same_tick_are_both_known() -> None:
    def workers(t: float, used: int, host: str, *begun: int) -> ev.HostSample:
        rows = [ProcessCounters(at, 1, at, "S", "apache2", 0, 0, 1, 0, 0, 0, "apache2") for at in begun]
        return sample(t, used, host, processes=tuple(rows))

    rounds = [
        event
        for t in range(1, 6)
        for event in (
            workers(t, 10 * t, "web1", 10, 11, 12),
            workers(t + 0.4, round(4 * (t + 0.4)), "app1", 12, 20, 21),
        )
    ]
    assert others([*start("web1", "app1"), *rounds])[-1] == pytest.approx(10.5, abs=0.3)


def test_burst_on_other_host_is_extrapolated_and_corrected() -> None:
    """web1 is sampled before app1, so that app1's burst in the second second is attributed late."""
    worked = {1.4: 0, 2.4: 150, 3.4: 150, 4.4: 150}

    def busy(t: float) -> CpuCounters:
        burst = min(max(t - 1.4, 0), 1) * 150
        return CpuCounters(round(burst), 0, 0, round(200 * t - burst), 0, 0, 0, 0)

    events = [*start("web1", "app1")]
    for (t, used), at in zip(worked.items(), (1, 2, 3, 4), strict=True):
        events += [sample(at, 0, cpu=busy(at)), sample(t, used, "app1", begun=11, cpu=busy(t))]
    found = others([*events, sample(5, 0, cpu=busy(5))])
    assert found[1:] == [45.0, -90.0, 45.0, 0.0]


def test_other_load_is_a_run_metric() -> None:
    plan = LoadPlan(url="http://a/", requests=1)
    run = [ev.RunStarted(t=1, run=1, plan=plan), *(sample(t, 15 * t) for t in range(2, 6)), sample(6, 90 - 10)]
    state = fold_all([*start("web1"), sample(1, 15), *run, ev.RunEnded(t=6, run=1, reason="completed"), sample(7, 95)])
    result = run_result(state, 1)
    # 10% in four of five seconds; in the last second the watched processes used less.
    assert metric_value(result, "web1.cpu.other") == pytest.approx(11.0)
    table = run_text(result)
    assert (
        warning_words(run_warnings(result)[0])
        == "other programs took 11% of the CPU of web1, with %steal; if they serve the load, watch them"
    )
    assert re.search(r"\n  cpu .*%others 11.0%", table)


@pytest.mark.parametrize(
    "events",
    [
        [*start("web1", processes=()), sample(1, 0), sample(2, 0)],
        [*start("web1"), sample(1, 0, processes=()), sample(2, 0, processes=())],
        [*start("web1"), sample(1, 0, hidden=True), sample(2, 0, hidden=True)],
        [*start("web1"), sample(1, 50), sample(2, 3)],
    ],
    ids=["nothing is watched", "no process was seen", "processes are hidden", "the probe started again"],
)
def test_other_load_is_unknown_if_server_is_not_measured(events: list[ev.AnyEvent]) -> None:
    assert others(events)[-1] is None
