"""Details below a host's metrics, drawn from states with many items of each kind."""

import re
from dataclasses import replace as replace_context

import pytest
from msgspec.structs import replace
from rich.cells import cell_len

from cockpit.metrics.values import host_metrics
from cockpit.model import events as ev
from cockpit.model.host.samples import HostConfig
from cockpit.model.host.state import CpuShare, DiskRates, HostState, NetRates, StatusPane
from cockpit.tui.draw_context import PROCESSES, Detail, DrawContext, details_of
from cockpit.tui.hosts.history import history_lines
from cockpit.tui.hosts.host_pane import condition, host_pane, processes_line
from cockpit.tui.hosts.host_pane import title as host_title
from cockpit.tui.hosts.panes import HostLines, HostPanes, host_line
from cockpit.tui.key_names import no_load_words
from cockpit.tui.runs.table import Runs
from tests.tui.driving import context_of, plain
from tests.tui.host_details import detail, detail_context, with_host
from tests.tui.scenario import FACTS, Scenario, session_started
from tests.tui.topology import APP, WEB, topology

NET = NetRates("", 9120.0, 8800.0, 1203.0, 8411.0)
SHARES = {"servers": 50.0, "generator": 12.4, "other": -3.0}
HALF = CpuShare(user=30.0, nice=1.5, system=15.0, iowait=2.5, steal=1.0, idle=50.0)


def pane(context: DrawContext, width: int = 80, height: int = 20, host: int = 0) -> list[str]:
    return plain(host_pane(context.hosts[host], context, width, height).lines)


def pane_line(context: DrawContext, start: str, width: int = 80) -> str:
    """Return the line of the first host that starts so; "": there is none."""
    return next((line for line in pane(context, width, 40) if line.startswith(start)), "")


def with_points(context: DrawContext, *values: dict[str, object]) -> DrawContext:
    """Return the context with these values in the last points of web1."""
    points = context.hosts[0].points
    changed = [replace(point, **each) for point, each in zip(points[-len(values) :], values, strict=True)]
    return with_host(context, "web1", points=(*points[: -len(values)], *changed))


def test_available_host_details_have_fixed_order() -> None:
    web, app = context_of(topology()).hosts
    assert [host.config for host in (web, app)] == [WEB, APP]
    assert context_of(topology()).detail(web) == PROCESSES
    kinds = [detail.kind for detail in details_of(web)]
    assert kinds == ["processes", "cores", "disks", "nets", "page", "tail", "tail"]
    assert Detail("tail", 1) not in details_of(app)
    assert details_of(HostState(config=HostConfig(name="bare")))[0] == Detail("cores")
    web = context_of(topology()).hosts[0]
    assert web.sample is not None and web.point is not None
    for excluded, text in ((0, ""), (4, "4 of others excluded"), (None, "all servers of that name")):
        sample = replace(web.sample, reading=replace(web.sample.reading, excluded=excluded))
        line = "".join(plain(processes_line(replace(web, sample=sample), web.point, "", 200)))
        assert text in line and ("of that name" in line) == (excluded is None), line


def test_core_table_has_sar_columns_and_total_first() -> None:
    lines = detail(with_host(detail_context("cores"), "web1", cores=(HALF, None, HALF)))
    assert lines[0].split() == ["CPU", "%user", "%nice", "%system", "%iowait", "%steal", "%idle"]
    assert lines[1].startswith("all")
    assert lines[2].split()[:7] == ["0", "30.0", "1.5", "15.0", "2.5", "1.0", "50.0"]
    assert "█" in lines[2], "bar of the CPU usage"
    assert "no data" in lines[3]


@pytest.mark.parametrize(("scroll", "first", "last"), [(40, "39", "48"), (400, "54", "63")])
def test_core_table_scrolls_and_shows_visible_range(scroll: int, first: str, last: str) -> None:
    context = with_host(detail_context("cores", list_entered=True, scroll=scroll), "web1", cores=(HALF,) * 64)
    lines = detail(context, height=11)
    assert f"{int(first) + 2}–{int(last) + 2} of 65" in lines[0], "the first row is the total"
    assert (lines[1].split()[0], lines[-1].split()[0]) == (first, last)


def test_disk_and_interface_tables_have_sar_columns() -> None:
    disk = DiskRates("nvme0n1", 12.0, 96.5, 1203.0, 0.0, 34.0, 1.2, 0.8, 99.0)
    idle = [replace(disk, name=f"loop{number}", tps=0.0) for number in (3, 4)]
    lines = detail(with_host(detail_context("disks"), "web1", disks=(disk, *idle)))
    assert lines[0].split() == ["DEV", "tps", "rkB/s", "wkB/s", "dkB/s", "areq-sz", "aqu-sz", "await", "%util"]
    assert lines[1].split() == ["nvme0n1", "12", "96.5", "1.2k", "0", "34", "1.2", "0.8", "99.0"]
    assert lines[2:] == ["2 loop devices without I/O"]
    net = NetRates("eth0", 9.0, 8.0, 1234.0, 99.0, errors=0.0, drops=3.0)
    lines = detail(with_host(detail_context("nets"), "web1", nets=(net,)))
    assert lines[0].split() == ["IFACE", "rxpck/s", "txpck/s", "rxkB/s", "txkB/s", "err/s", "drop/s"]
    assert lines[1].split() == ["eth0", "9", "8", "1.23k", "99", "0", "3"]


@pytest.mark.parametrize("kind", ["cores", "disks", "nets", "page", "tail"])
def test_host_without_data_shows_no_metrics(kind: str) -> None:
    """Expect neither zeros nor a traceback before the first sample."""
    context = context_of(topology(0.3), details={"web1": Detail(kind)})  # type: ignore[arg-type]
    for width in (20, 49, 120):
        drawn = "\n".join(pane(context, width))
        assert "0.0 " not in drawn
        assert "waiting for data" in drawn


def test_newest_values_of_host_have_line() -> None:
    for values, start, line in (
        ({"net": None}, "txkB/s", ""),
        ({"net": NET}, "txkB/s", r"txkB/s +8.41k +▇+"),
        (SHARES, " servers", r"servers +50% +▄+"),
        (SHARES, " gen", r"gen +12% +▁+"),
        ({"generator": None}, " gen", ""),
        ({"accept": 17}, "accept q.", r"accept q. +17 +▇+"),
    ):
        context = context_of(topology(30.7))
        changed = with_points(context, *[values] * len(context.hosts[0].points))
        assert re.fullmatch(line, pane_line(changed, start).strip())
        assert not re.search("[▁▄█]", pane_line(replace_context(changed, lite=True), start))


def test_history_shares_the_charts_time_axis_and_markers() -> None:
    context = context_of(Scenario().events(60.0), cursor=20.0)
    window = context.axis
    (marker,) = context.state.markers
    lines = [line for _, line in history_lines(context.hosts[0], context, "", 80)]
    for line in lines:
        blocks = line[3:]

        def window_cell(t: float, cells: int = len(blocks)) -> int:
            return int((t - window.first) / (window.end - window.first) * cells)

        assert [role in ("mark", "marked") for _, role in blocks].index(True) == window_cell(marker.t)
        assert [role for _, role in blocks].index("focus") == window_cell(20.0)
        assert {char for char, _ in blocks[window_cell(context.now) + 1 :]} <= {" "}


def test_hosts_are_drawn_in_a_single_column() -> None:
    """A terminal is narrowed before the panes of hosts are hidden."""
    for width in (1, 2, 3):
        assert len(HostPanes().draw(context_of(Scenario(2).events(60.0)), width, 20)) == 20


def test_host_pane_shows_lost_packets() -> None:
    dropping = with_points(context_of(topology(30.7)), {"net": replace(NET, drops=2.0)})
    assert "err/s 0  drop/s 2" in "\n".join(pane(dropping))


def test_host_pane_shows_server_cgroup() -> None:
    for group, line in (
        (
            {"cpu": 28.12, "quota": 30.0, "throttled": 12.4, "kbmemory": 122_880.0, "kblimit": 524_288.0},
            "cgrp %cpu 28.1 of 30  throttled 12%  mem 120M of 512M",
        ),
        ({"cpu": 28.12, "throttled": 0.0, "kbmemory": 122_880.0}, "cgrp %cpu 28.1  mem 120M"),
        ({"quota": 150.0}, "cgrp %cpu – of 150"),
        ({}, ""),
    ):
        sar = {f"cgroup.{name}": value for name, value in group.items()}
        assert pane_line(with_host(context_of(topology(30.7)), "web1", sar=sar), "cgrp").strip() == line


def test_cpu_of_other_programs_is_mean_of_last_samples() -> None:
    for others, text in (
        ((90.0, 10.0, 14.0, -1.0, 13.0, 14.0), "10%"),
        # Samples deviate by a few points in both directions.
        ((None, None, None, -3.0, -1.0), "0%"),
        ((None,) * 5, ""),
    ):
        changed = with_points(context_of(topology(30.7)), *({"other": other} for other in others))
        assert [*pane_line(changed, " others", 56).split(), "", ""][1] == text


def test_status_page_shows_counts_rates_and_reason() -> None:
    context = detail_context("page")
    pages = (replace(context.hosts[0].pages[0], rates={"Total Accesses": 37.0}),)
    lines = detail(with_host(context, "web1", pages=pages, seen=60.0), width=60)
    assert lines[0].startswith("apache  http://127.0.0.1/server-status?auto")
    text = "\n".join(lines)
    for part in ("20 waiting", "129 open slot", "W" + "_" * 20):
        assert part in text
    row = next(line for line in lines if line.startswith("Total Accesses"))
    assert row.split() == ["Total", "Accesses", "2183", "37/s"]
    context = detail_context("page")
    page = context.hosts[0].pages[0]
    text = "\n".join(detail(with_host(context, "web1", pages=(replace(page, detail="403 Forbidden\x1b[2J"),))))
    assert "403 Forbidden·[2J" in text
    assert "IdleWorkers" in text
    never = StatusPane(page=page.page, detail="connection refused")
    text = "\n".join(detail(with_host(context, "web1", pages=(never,))))
    assert "connection refused" in text
    assert "not read yet" not in text


def averages_of(context: DrawContext, name: str) -> dict[str, float]:
    """Return a host's averages over the first segment."""
    return host_metrics(context.state.segments[0].hosts[name])


def test_empty_panes_of_a_replay_name_what_is_missing() -> None:
    connecting = ev.HostChanged(t=0.1, host="web1", condition="connecting")
    for events, load, host in (
        ([], "Loading the recording …", ""),
        (
            [session_started(), connecting],
            "No load up to here. Press ] for the next run or change.",
            "waiting for its first sample",
        ),
    ):
        context = replace_context(context_of(events), extent=(0.0, 60.0))
        shown = "\n".join(pane(context, 60) if context.hosts else ())
        assert no_load_words(context) == load and host in shown and "start the load" not in shown


def test_changed_sample_interval_is_shown() -> None:
    context = context_of(Scenario().events(30.6))
    sample = context.hosts[0].sample
    assert "every" not in pane(context, 100)[0]
    slow = with_host(context, "web1", sample=replace(sample, interval=4.0))
    assert "every 4.0 s · probe 3 ms · rtt 4 ms" in pane(slow, 100)[0]


@pytest.mark.parametrize(
    ("name", "detail", "expected"),
    [
        ("asking", "passphrase of id_ed25519", "ASKING  passphrase of id_ed25519"),
        ("asking", "", "ASKING  waiting for your answer"),
        ("slow", "", "SLOW  3 s"),
        ("slow", "its answer is overdue", "SLOW  3 s: its answer is overdue"),
        ("lost", "timed out", "LOST  0 s ago: timed out"),
        ("refused", "its key has changed", "REFUSED  its key has changed"),
    ],
)
def test_host_condition_is_shown_in_words(name: ev.HostCondition, detail: str, expected: str) -> None:
    events = [*Scenario().events(30.6), ev.HostChanged(t=33.5, host="web1", condition=name, detail=detail)]
    context = context_of(events)
    word, _, details = expected.partition("  ")
    assert plain(condition(context.hosts[0], context, 60))[0] == details
    assert f" {word} " in plain([host_title(context.hosts[0], context, 60)])[0]
    assert expected in plain([host_line(context.hosts[0], context, 80)])[0]


def test_long_refusal_is_wrapped() -> None:
    line = "the host key has changed: " + " ".join(f"word{n}" for n in range(20)) + " ssh-keygen -R web1"
    context = context_of([session_started(), ev.HostChanged(t=1.0, host="web1", condition="refused", detail=line)])
    lines = plain(condition(context.hosts[0], context, 49))
    assert all(cell_len(text) <= 49 for text in lines)
    assert "ssh-keygen -R web1" in " ".join(" ".join(lines).split())


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
    panes = plain(HostPanes().draw(context, 150, 30))
    borders = [tuple(cell_len(line[:at]) for at, char in enumerate(line) if char in "│╭╮├┤╰╯") for line in panes]
    assert set(borders) == {borders[0]}


def test_host_list_shows_selected_host_and_count_of_hidden() -> None:
    context = context_of(Scenario(12).events(3), host=8)
    lines, panes = plain(HostLines().draw(context, 80, 8)), plain(HostPanes().draw(context, 51, 11))
    assert len(lines) == 8
    assert any(line.startswith("▸web9") for line in lines)
    assert "5 more hosts" in lines[-1]
    assert len(panes) <= 11
    assert any("▸ web9" in line for line in panes)
    assert "more hosts: Tab" in panes[-2]


def test_runs_table_shows_server_cpu_and_more_if_wide() -> None:
    context = context_of(topology())
    narrow, wide = (plain(Runs().draw(context, width, 10)) for width in (86, 130))
    assert "%busy: web1/app1" in narrow[0]
    at = narrow[1].index("%busy") + len("%busy")
    web, app = (100 - averages_of(context, name)["cpu.idle"] for name in ("web1", "app1"))
    assert web < 15 and app > 85
    assert narrow[2][:at].endswith(f" {web:.0f}/{app:.0f}")
    for title in ("spawns", "p50", "max", "iowait", "tps", "p99.9"):
        assert title in wide[1]
    assert "%busy: web3" in plain(Runs().draw(context_of(Scenario(8).events(40), host=2), 86, 10))[0]
    assert "%busy" not in "".join(plain(Runs().draw(context_of(Scenario(0).events(40)), 130, 10)))
