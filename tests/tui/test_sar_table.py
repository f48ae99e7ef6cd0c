"""SAR table: all metrics of a host in the groups of sar, at any size; unknown metrics have no number."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from rich.cells import cell_len

from cockpit.tui.draw_context import SAR, DrawContext
from cockpit.tui.hosts.host_pane import host_pane
from cockpit.tui.hosts.panes import HostPanes
from tests.tui.driving import context_of, main, plain, press, running_app, text_of, wait_for_events, wait_idle
from tests.tui.host_details import with_host
from tests.tui.scenario import Scenario
from tests.tui.scripted import scripted_app
from tests.tui.topology import topology


def table(width: int, height: int = 200, **view: object) -> list[str]:
    return lines_of(context_of(topology(30.7), metrics=True, room="alone", **view), width, height)


def lines_of(context: DrawContext, width: int, height: int = 200) -> list[str]:
    assert context.host is not None
    return plain(host_pane(context.host, context, width, height).lines)


def row(lines: list[str], title: str) -> list[str]:
    """Return now, mean and maximum of a metric."""
    [line] = [line[line.index(f"{title} ") :] for line in lines if f" {title} " in f" {line}"]
    return line.split()[1:4]


@pytest.mark.parametrize(("width", "columns"), [(38, 1), (78, 2), (118, 3), (198, 5)])
def test_every_metric_appears_once_in_fitting_columns(width: int, columns: int) -> None:
    lines = table(width)
    assert lines[2].split() == ["now", "mean", "max"] * columns
    assert all(cell_len(line) <= width for line in lines)
    cells = " ".join(lines).split()
    for title in (
        "pgscank/s",
        "pswpout/s",
        "kbswpcad",
        "cswch/s",
        "runq-sz",
        "tcp-tw",
        "passive/s",
        "retrans/s",
        "%smem",
    ):
        assert cells.count(title) == 1


async def test_sar_table_fits_120_by_40() -> None:
    async with running_app(topology(30.7), size=(120, 40)) as (pilot, _):
        await press(pilot, "a")
        await wait_idle(pilot)
        assert main(pilot.app).query_one(HostPanes).drawn.most == 0


def test_table_shows_now_mean_and_maximum_of_segment() -> None:
    context = context_of(topology(30.7), metrics=True, room="alone")
    host, segment = context.host, context.segment
    assert host is not None
    assert segment is not None
    window = segment.hosts[host.config.name]
    lines = lines_of(context, 118)
    assert f"mean and max of segment {segment.number}" in "\n".join(lines)
    now, mean, highest = (float(cell) for cell in row(lines, "tcp-tw"))
    assert highest >= mean > 0
    assert now == host.sar["sockets.tcp_tw"]
    assert highest == window.highest["sockets.tcp_tw"]
    assert row(lines, "total") == ["3.8G"] * 3


def test_unknown_metric_is_not_zero() -> None:
    lines = table(118)
    assert row(lines, "%smem") == ["–", "–", "–"]
    assert row(lines, "pgscank/s") == ["0", "0", "0"]


def test_server_cgroup_has_own_block() -> None:
    context = context_of(topology(30.7), metrics=True, room="alone")
    assert "cgroup of the server" not in "\n".join(lines_of(context, 118))
    lines = lines_of(with_host(context, "web1", sar={"cgroup.cpu": 28.14, "cgroup.kbmemory": 2048.0}), 118)
    assert "cgroup of the server" in "\n".join(lines)
    assert row(lines, "%cpu") == ["28.1", "–", "–"] and row(lines, "kbmemory") == ["2.0M", "–", "–"]
    assert row(lines, "%quota") == ["–", "–", "–"]


def test_accept_queue_of_target_port_shows_limit() -> None:
    lines = table(118)
    assert any(":80 of 511" in line for line in lines)
    assert not any(":22 of" in line for line in lines), "always empty, and not the port of the target"
    context = context_of(topology(30.7), metrics=True, room="alone")
    assert context.host is not None
    sample = context.host.sample
    assert sample is not None
    without = replace(context.host, sample=replace(sample, reading=replace(sample.reading, accept={}, backlog={})))
    assert not any(":80" in line for line in plain(host_pane(without, context, 118, 200).lines))


def test_no_numbers_before_first_sample() -> None:
    context = context_of(topology(0.3), metrics=True, room="alone")
    text = "\n".join(lines_of(context, 118))
    assert "waiting for data" in text
    assert "now" not in text


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 50), (60, 15)])
async def test_a_toggles_full_screen_sar_table(size: tuple[int, int]) -> None:
    async with running_app(topology(30.7), size=size) as (pilot, _):
        before = main(pilot.app).view
        await press(pilot, "a")
        await wait_idle(pilot)
        view = main(pilot.app).view
        assert (view.metrics, view.room) == (True, "alone")
        drawn = main(pilot.app).query_one(HostPanes)
        assert "sar -u" in text_of(drawn)
        first = text_of(drawn)
        await press(pilot, "pagedown")
        assert (text_of(drawn) != first) == (drawn.drawn.most > 0)
        await press(pilot, "tab")
        assert "app1" in text_of(drawn)
        assert "sar -u" in text_of(drawn)
        await press(pilot, "shift+tab", "a")
        assert main(pilot.app).view == before


async def test_other_host_keys_close_sar_table() -> None:
    async with running_app(topology(30.7), size=(120, 40)) as (pilot, _):
        screen = main(pilot.app)
        for key in ("w", "p", "escape"):
            await press(pilot, "a")
            context = screen.context()
            assert context.host is not None
            assert context.detail(context.host) == SAR
            await press(pilot, key)
            assert not screen.view.metrics
            await press(pilot, "escape", "escape")


async def test_sar_table_does_not_open_without_host() -> None:
    events = Scenario(0).events(8)
    app, source = scripted_app(events)
    async with app.run_test(size=(120, 40)) as pilot:
        await wait_for_events(pilot, source, len(events))
        await press(pilot, "a")
        assert not main(app).view.metrics
