"""Details below a host's metrics, drawn from states with many items of each kind."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace
from rich.cells import cell_len

from cockpit.model import events as ev
from cockpit.model.host_state import CpuShare, DiskRates, HostState, NetRates, StatusPane
from cockpit.model.hosts import HostConfig
from cockpit.model.metrics import host_metrics
from cockpit.tui.draw_context import PROCESSES, Detail, DrawContext, View, details_of
from cockpit.tui.hosts.host_pane import condition, host_pane, processes_line
from cockpit.tui.hosts.panes import HostLines, HostPanes, host_line
from cockpit.tui.runs.table import Runs
from tests.tui.driving import context_of, plain
from tests.tui.host_details import detail, detail_context, with_host
from tests.tui.scenario import FACTS, Scenario, session_started
from tests.tui.topology import APP, WEB, topology

HALF = CpuShare(user=30.0, nice=1.5, system=15.0, iowait=2.5, steal=1.0, idle=50.0)


def test_available_host_details_have_fixed_order() -> None:
    web, app = context_of(topology()).hosts
    kinds = [detail.kind for detail in details_of(web)]
    assert kinds == ["processes", "cores", "disks", "nets", "page", "tail", "tail"]
    assert Detail("tail", 1) not in details_of(app)
    assert details_of(HostState(config=HostConfig(name="bare")))[0] == Detail("cores")


def test_excluded_processes_of_other_servers_are_counted() -> None:
    web = context_of(topology()).hosts[0]
    assert web.sample is not None and web.point is not None
    for excluded, text in ((0, ""), (4, "4 of others excluded"), (None, "all servers of that name")):
        sample = replace(web.sample, reading=replace(web.sample.reading, excluded=excluded))
        line = "".join(plain(processes_line(replace(web, sample=sample), web.point, "", 200)))
        assert text in line and ("of that name" in line) == (excluded is None), line


def test_core_table_has_sar_columns_and_total_first() -> None:
    context = with_host(detail_context("cores"), "web1", cores=(HALF, None, HALF))
    lines = detail(context)
    assert lines[0].split() == ["CPU", "%user", "%nice", "%system", "%iowait", "%steal", "%idle"]
    assert lines[1].startswith("all")
    assert lines[2].split()[:7] == ["0", "30.0", "1.5", "15.0", "2.5", "1.0", "50.0"]
    assert "█" in lines[2], "bar of the CPU usage"
    assert "no data" in lines[3]


def test_core_table_scrolls_and_shows_visible_range() -> None:
    context = with_host(detail_context("cores", list_entered=True, scroll=40), "web1", cores=(HALF,) * 64)
    lines = detail(context, height=11)
    assert "41–50 of 65" in lines[0]
    assert lines[1].split()[0] == "39", "the first row is the total"
    beyond = with_host(detail_context("cores", list_entered=True, scroll=400), "web1", cores=(HALF,) * 64)
    assert detail(beyond, height=11)[-1].split()[0] == "63"


def test_disk_and_interface_tables_have_sar_columns() -> None:
    disk = DiskRates("nvme0n1", 12.0, 96.5, 1203.0, 0.0, 34.0, 1.2, 0.8, 99.0)
    lines = detail(with_host(detail_context("disks"), "web1", disks=(disk,)))
    assert lines[0].split() == ["DEV", "tps", "rkB/s", "wkB/s", "dkB/s", "areq-sz", "aqu-sz", "await", "%util"]
    assert lines[1].split() == ["nvme0n1", "12", "96.5", "1.2k", "0", "34", "1.2", "0.8", "99"]
    idle = replace(disk, name="loop3", tps=0.0)
    lines = detail(with_host(detail_context("disks"), "web1", disks=(disk, idle, replace(idle, name="loop4"))))
    assert "loop3" not in "\n".join(lines)
    assert lines[2] == "2 loop devices without I/O"
    net = NetRates("eth0", 9.0, 8.0, 1234.0, 99.0, errors=0.0, drops=3.0)
    lines = detail(with_host(detail_context("nets"), "web1", nets=(net,)))
    assert lines[0].split() == ["IFACE", "rxpck/s", "txpck/s", "rxkB/s", "txkB/s", "err/s", "drop/s"]
    assert lines[1].split() == ["eth0", "9", "8", "1.23k", "99", "0", "3"]


@pytest.mark.parametrize("kind", ["cores", "disks", "nets", "page", "tail", "averages"])
@pytest.mark.parametrize("width", [20, 49, 120])
def test_host_without_data_shows_no_metrics(kind: str, width: int) -> None:
    """Expect neither zeros nor a traceback before the first sample."""
    context = context_of(topology(0.3), details={"web1": Detail(kind)}, averages=kind == "averages")  # type: ignore[arg-type]
    drawn = "\n".join(plain(host_pane(context.hosts[0], context, width, 20).lines))
    assert "0.0 " not in drawn
    assert "waiting for data" in drawn


def test_host_pane_shows_interface_total() -> None:
    context = context_of(topology(30.7))
    host = context.hosts[0]
    assert host.point is not None
    net = NetRates("", 9120.0, 8800.0, 1203.0, 8411.0)
    points = (*host.points[:-1], replace(host.point, net=None))
    context = with_host(context, "web1", points=points)
    assert "net  waiting for data" in "\n".join(plain(host_pane(context.hosts[0], context, 80, 20).lines))
    points = (*host.points[:-1], replace(host.point, net=net))
    context = with_host(context, "web1", points=points)
    wide = "\n".join(plain(host_pane(context.hosts[0], context, 80, 20).lines))
    assert "net  rxkB/s 1.2k  txkB/s 8.41k  rxpck/s 9.12k  txpck/s 8.8k" in wide
    dropping = replace(net, drops=2.0)
    context = with_host(context, "web1", points=(*points[:-1], replace(points[-1], net=dropping)))
    assert "err/s 0 drop/s 2" in "\n".join(plain(host_pane(context.hosts[0], context, 80, 20).lines))


@pytest.mark.parametrize(
    ("group", "line"),
    [
        (
            {"cpu": 28.12, "quota": 30.0, "throttled": 12.4, "kbmemory": 122_880.0, "kblimit": 524_288.0},
            "cgrp %cpu 28.1 of 30  throttled 12%  mem 120M of 512M",
        ),
        ({"cpu": 28.12, "throttled": 0.0, "kbmemory": 122_880.0}, "cgrp %cpu 28.1  mem 120M"),
        ({"quota": 150.0}, "cgrp %cpu – of 150"),
    ],
)
def test_host_pane_shows_server_cgroup(group: dict[str, float], line: str) -> None:
    context = context_of(topology(30.7))
    assert "cgrp" not in "\n".join(plain(host_pane(context.hosts[0], context, 80, 20).lines))
    context = with_host(context, "web1", sar={f"cgroup.{name}": value for name, value in group.items()})
    assert line in [drawn.strip() for drawn in plain(host_pane(context.hosts[0], context, 80, 20).lines)]


def test_cpu_of_other_programs_is_mean_of_last_samples() -> None:
    context = context_of(topology(30.7))
    points = context.hosts[0].points

    def load_line(*others: float | None) -> str:
        known = tuple(replace(point, other=other) for point, other in zip(points[-len(others) :], others, strict=True))
        changed = with_host(context, "web1", points=(*points[: -len(others)], *known))
        lines = plain(host_pane(changed.hosts[0], changed, 56, 20).lines)
        return next(line for line in lines if line.startswith("load"))

    assert "  others 10%  run " in load_line(90.0, 10.0, 14.0, -1.0, 13.0, 14.0)
    assert "  others 0%  run " in load_line(-3.0, -1.0), "samples deviate by a few points in both directions"
    assert "others" not in load_line(None), "not measured"


def test_cpu_shares_are_shown_with_trends() -> None:
    context = context_of(topology(30.7))
    points = context.hosts[0].points

    def line(width: int, lite: bool = False, **shares: float | None) -> str:
        known = tuple(replace(point, **shares) for point in points)
        changed = with_host(context, "web1", points=known)
        lines = plain(host_pane(changed.hosts[0], with_lite(changed, lite), width, 20).lines)
        return next((found for found in lines if found.startswith("by  ")), "")

    shares = {"servers": 50.0, "generator": 12.4, "other": -3.0}
    assert re.fullmatch(r"by   servers ▄+ +50% generator ▁+ +12% others ▁+ +0%", line(118, **shares))
    assert "generator" not in line(50, servers=50.0, generator=None, other=3.0)
    assert not line(118, servers=None, generator=None, other=None), "not measured"
    assert "▄" not in line(118, lite=True, **shares)


def with_lite(context: DrawContext, lite: bool) -> DrawContext:
    return DrawContext(state=context.state, view=context.view, mode=context.mode, lite=lite)


def test_status_page_shows_scoreboard_counts_and_rates() -> None:
    context = detail_context("page")
    pane = context.hosts[0].pages[0]
    pages = (replace(pane, rates={"Total Accesses": 37.0}),)
    lines = detail(with_host(context, "web1", pages=pages, seen=60.0), width=60)
    assert lines[0].startswith("apache  http://127.0.0.1/server-status?auto")
    text = "\n".join(lines)
    assert "20 waiting" in text
    assert "129 open slot" in text
    assert "W" + "_" * 20 in text
    row = next(line for line in lines if line.startswith("Total Accesses"))
    assert row.split() == ["Total", "Accesses", "2183", "37/s"]


def test_unreadable_status_page_shows_reason_and_last_values() -> None:
    context = detail_context("page")
    pane = replace(context.hosts[0].pages[0], detail="403 Forbidden\x1b[2J")
    text = "\n".join(detail(with_host(context, "web1", pages=(pane,))))
    assert "403 Forbidden·[2J" in text
    assert "IdleWorkers" in text
    never = StatusPane(page=pane.page, detail="connection refused")
    text = "\n".join(detail(with_host(context, "web1", pages=(never,))))
    assert "connection refused" in text
    assert "not read yet" not in text


def test_segment_averages_replace_host_details() -> None:
    context = context_of(topology(), averages=True)
    for host in context.hosts:
        text = "\n".join(plain(host_pane(host, context, 50, 30).lines))
        assert "averages of segment 1  baseline" in text
        for title in ("user ", "iowait ", "idle ", "tps ", "bwrtn/s ", "used ", "rss−shr "):
            assert title in text
    averages = averages_of(context, "app1")
    assert averages["cpu.user"] > 50
    lines = plain(host_pane(context.hosts[1], context, 50, 120).lines)
    assert any(line.split()[:3] == ["cpu", "user", f"{averages['cpu.user']:.1f}"] for line in lines)
    below = lines[next(at for at, line in enumerate(lines) if line.startswith("averages")) :]
    names = [line.split()[0] for line in below if line.strip()]
    after = names[names.index("io") :]
    assert after.index("start") < after.index("end") < after.index("net") < after.index("disk") < after.index("vda")
    assert "nvme1n1" not in names, "idle disks are omitted"


def averages_of(context: DrawContext, name: str) -> dict[str, float]:
    """Return a host's averages over the first segment."""
    return host_metrics(context.state.segments[0].hosts[name])


def test_averages_without_samples_or_runs_show_reason() -> None:
    context = context_of(Scenario(2).events(8), averages=True)
    segment = replace(context.state.segments[0], hosts={})
    without = DrawContext(state=replace(context.state, segments=(segment,)), view=context.view)
    assert "fewer than two samples" in "\n".join(detail(without))
    before = DrawContext(state=replace(context.state, segments=()), view=context.view)
    assert "No runs yet" in "\n".join(detail(before))


def test_changed_sample_interval_is_shown() -> None:
    context = context_of(Scenario().events(30.6))
    sample = context.hosts[0].sample
    assert sample is not None
    assert "every" not in plain(host_pane(context.hosts[0], context, 100, 20).lines)[0]
    slow = with_host(context, "web1", sample=replace(sample, interval=4.0))
    assert "every 4.0 s · 0.0 s ago · probe 3 ms · rtt 4 ms" in plain(host_pane(slow.hosts[0], slow, 100, 20).lines)[0]


@pytest.mark.parametrize(
    ("name", "detail", "expected"),
    [
        ("asking", "passphrase of id_ed25519", " ASKING  passphrase of id_ed25519"),
        ("asking", "", " ASKING  waiting for your answer"),
        ("slow", "", " SLOW  3 s"),
        ("slow", "its answer is overdue", " SLOW  3 s: its answer is overdue"),
        ("lost", "timed out", " LOST  0 s ago: timed out"),
        ("refused", "its key has changed", " REFUSED  its key has changed"),
    ],
)
def test_host_condition_is_shown_in_words(name: ev.HostCondition, detail: str, expected: str) -> None:
    events = [*Scenario().events(30.6), ev.HostChanged(t=33.5, host="web1", condition=name, detail=detail)]
    context = context_of(events)
    lines = plain(condition(context.hosts[0], context, 60))
    assert lines[0] == expected
    assert expected.strip() in plain([host_line(context.hosts[0], context, 80)])[0]


def test_long_refusal_is_wrapped() -> None:
    line = "the host key has changed: " + " ".join(f"word{n}" for n in range(20)) + " ssh-keygen -R web1"
    context = context_of([session_started(), ev.HostChanged(t=1.0, host="web1", condition="refused", detail=line)])
    lines = plain(condition(context.hosts[0], context, 49))
    assert all(cell_len(text) <= 49 for text in lines)
    assert "ssh-keygen -R web1" in " ".join(" ".join(lines).split())


def test_two_hosts_are_side_by_side_or_stacked_by_width() -> None:
    context = context_of(topology(30.7))
    lines = plain(HostPanes().draw(context, 106, 47))
    assert "web1" in lines[0]
    assert "app1" in lines[0]
    assert "apache2" in lines[7]
    assert "java" in lines[7]
    assert {line.index(" │ ") for line in lines if "設" not in line} == {lines[0].index(" │ ")}
    stacked = plain(HostPanes().draw(context, 49, 38))
    assert "app1" not in stacked[0]
    assert any("app1" in line for line in stacked)


def test_wide_characters_keep_columns_aligned() -> None:
    names = ("ウェブサーバー東京", "db", "とても長い名前のアプリケーションサーバー")
    configs = tuple(HostConfig(name=name, processes=("アパッチ",)) for name in names)
    started = replace(session_started(), hosts=configs)
    server = [event for event in Scenario().events(20) if isinstance(event, ev.HostSample)]
    ups = [ev.HostChanged(t=0.3, host=name, condition="up", facts=FACTS) for name in names]
    context = context_of([started, *ups, *(replace(event, host=name) for event in server for name in names)])
    lines = plain(HostLines().draw(context, 120, 3))
    assert {cell_len(line[: line.index("cpu")]) for line in lines} == {19}
    assert {cell_len(line[: line.index("avail")]) for line in lines} == {cell_len(lines[0][: lines[0].index("avail")])}
    panes = HostPanes().draw(context, 150, 30)
    borders = [[cell_len(line[:at]) for at, char in enumerate(line) if char == "│"] for line in plain(panes)]
    assert {tuple(found) for found in borders} == {tuple(borders[0])}


def test_host_list_shows_selected_host_and_count_of_hidden() -> None:
    context = context_of(Scenario(12).events(3), host=8)
    lines = plain(HostLines().draw(context, 80, 8))
    assert len(lines) == 8
    assert any(line.startswith("▸web9") for line in lines)
    assert "5 more hosts" in lines[-1]
    panes = plain(HostPanes().draw(context, 49, 10))
    assert len(panes) <= 10
    assert any("▸ web9" in line for line in panes)
    assert "more hosts: Tab" in panes[-1]


def test_frozen_hosts_show_freeze_time() -> None:
    then, now = context_of(Scenario().events(20)), context_of(Scenario().events(30))
    context = DrawContext(state=now.state, view=View(frozen=then.state))
    drawn = plain(HostPanes().draw(context, 60, 20))
    assert "FROZEN at 00:00:20" in drawn[0]
    assert drawn[1:] == plain(HostPanes().draw(then, 60, 20))[1:]
    assert "FROZEN" in plain(HostLines().draw(context, 80, 1))[0]


def test_runs_table_shows_server_cpu_and_more_if_wide() -> None:
    context = context_of(topology())
    narrow = plain(Runs().draw(context, 86, 10))
    assert "cpu %: web1/app1" in narrow[0]
    at = narrow[1].index("cpu %") + len("cpu %")
    busy = [100 - averages_of(context, name)["cpu.idle"] for name in ("web1", "app1")]
    assert busy[0] < 15
    assert busy[1] > 85
    assert narrow[2][:at].endswith(f" {busy[0]:.0f}/{busy[1]:.0f}")
    wide = plain(Runs().draw(context, 130, 10))
    for title in ("spawns", "p50", "max", "iowait", "tps", "p99.9"):
        assert title in wide[1]
    many = plain(Runs().draw(context_of(Scenario(8).events(40), host=2), 86, 10))
    assert "cpu %: web3" in many[0]
    alone = plain(Runs().draw(context_of(Scenario(0).events(40)), 130, 10))
    assert "cpu %" not in "".join(alone)


def test_topology_has_web_and_app_hosts() -> None:
    context = context_of(topology())
    assert [host.config for host in context.hosts] == [WEB, APP]
    assert context.detail(context.hosts[0]) == PROCESSES
