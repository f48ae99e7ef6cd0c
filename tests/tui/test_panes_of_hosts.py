"""Lists below the metrics of a host: processes, tails, and all metrics in the groups of sar."""

from msgspec.structs import replace
from rich.cells import cell_len

from cockpit.model.events import AccessCounts
from cockpit.model.histogram import Histogram
from cockpit.model.host.state import TailLine, TailPane
from cockpit.tui.draw_context import SAR, DrawContext, View
from cockpit.tui.hosts.host_pane import host_pane
from cockpit.tui.hosts.panes import HostPanes, host_line
from cockpit.tui.hosts.tails import as_printed, brief_tail, draw_tail
from tests.data import data_of
from tests.tui.driving import context_of, main, plain, press, reset_screen, running_app, text_of
from tests.tui.host_details import detail, detail_context, with_host
from tests.tui.scenario import Scenario
from tests.tui.topology import topology

DATA = data_of(__file__)

EVENTS = Scenario().events(30.6)


def processes(**view: object) -> list[str]:
    """Return the PIDs in the order of the table, by default sorted by PID."""
    context = context_of(EVENTS, **{"order": "pid", "folded": False, **view})
    return [line[1:].split()[0] for line in detail(context, 110, 40)[1:] if line[1:].split()[:1]]


def test_sort_order_is_marked_in_column_and_reversible() -> None:
    for order, title in DATA["sort_order_is_marked_in_column_and_reversible_cases"]:
        for width in (49, 110):
            assert title in detail(context_of(EVENTS, order=order), width)[0], "the sorted column is always shown"
        reversed_title = {"▴": "▾", "▾": "▴"}[title[0]] + title[1:]
        assert reversed_title in detail(context_of(EVENTS, order=order, reverse_order=True))[0]
    assert processes(reverse_order=True) == processes()[::-1]
    assert processes(order="age")[0] == processes()[0], "the parent is the oldest"


def test_filter_matches_pid_and_command_and_shows_count() -> None:
    all_pids = processes()
    assert processes(filter=all_pids[3]) == [all_pids[3]]
    assert len(processes(filter="DEFUNCT")) == 1
    assert f"/defunct 1 of {len(all_pids)}" in detail(context_of(EVENTS, filter="defunct"))[0]
    assert f"none of {len(all_pids)} has “nginx”" in detail(context_of(EVENTS, filter="nginx"))[1]
    assert "no process named apache2" in detail(with_host(context_of(EVENTS), "web1", processes=()))[1]


def test_selected_process_stays_visible_with_details() -> None:
    context = context_of(EVENTS)
    row = context.hosts[0].processes[-1]
    chosen = (row.process.pid, row.process.start)
    for order in ("pid", "cpu", "age"):
        view = View(order=order, process=chosen, list_entered=True, folded=False)  # type: ignore[arg-type]
        lines = detail(DrawContext(state=context.state, view=view), 100, 13)
        assert len([line for line in lines if str(row.process.pid) in line]) == 2, "the row and the details"
        assert any(f"PID {row.process.pid}  parent 2010  threads 1" in line for line in lines)


def test_identical_processes_are_folded() -> None:
    context = context_of(EVENTS)
    rows = context.hosts[0].processes
    command = "/usr/sbin/apache2 -k start"
    workers = [row for row in rows if row.process.command == command and row.process.user != "root"]
    lines = detail(context, 118, 40)
    [fold] = [line for line in lines if f"×{len(workers)}" in line]
    assert "www-data" in fold
    assert f"{min(row.cpu for row in workers):.0f}–{max(row.cpu for row in workers):.0f}" in fold
    assert fold.endswith("/usr/sbin/apache2 -k start")
    assert len(lines) - 1 == len(rows) - len(workers) + 1
    assert len(detail(context_of(EVENTS, folded=False), 118, 40)) - 1 == len(rows)
    view = View(process=(workers[-1].process.pid, workers[-1].process.start), list_entered=True)
    text = "\n".join(detail(DrawContext(state=context.state, view=view), 118, 20))
    assert f"{len(workers)} identical processes, z: show each" in text
    four = [replace(row, process=replace(rows[0].process, pid=pid)) for pid, row in enumerate(rows[:4], 1)]
    for changes in ({"ppid": 1}, {"user": "other"}, {"command": "sleep"}):
        mixed = [*four[:3], replace(four[3], process=replace(four[3].process, **changes))]
        lines = detail(with_host(context, "web1", processes=mixed), 118, 40)
        assert len(lines) == 1 + 2
        assert sum("×3" in line for line in lines) == 1
    assert len(detail(with_host(context, "web1", processes=four[:2]), 118, 40)) == 1 + 2, "two processes are not folded"


def test_columns_depend_on_width_and_hidden_processes_are_reported() -> None:
    context = context_of(EVENTS)
    assert {"USER", "THR", "PSS"} <= set(detail(context, 118)[0].split())
    assert {"PSS"} == {"USER", "THR", "PSS"} & set(detail(context, 80)[0].split())
    unknown = [replace(row, process=replace(row.process, user="", pss=None)) for row in context.hosts[0].processes[:1]]
    [line] = detail(with_host(context, "web1", processes=unknown), 118)[1:2]
    assert line.split().count("–") == 2
    context = context_of(EVENTS)
    sample = context.hosts[0].sample
    context = with_host(context, "web1", sample=replace(sample, reading=replace(sample.reading, hidden=True)))
    assert "hidden by hidepid" in "\n".join(plain(host_pane(context.hosts[0], context, 80, 20).lines))
    assert "hidden (hidepid)" in plain([host_line(context.hosts[0], context, 80)])[0]


def test_tail_shows_newest_lines_sanitized_and_cut() -> None:
    lines = detail(detail_context("tail"), width=110, height=8)
    assert "tail -F /var/log/apache2/error.log" in lines[0]
    assert "skipped 120 lines" in lines[0]
    assert lines[-1] == "[mpm_prefork:notice]    [pid 2011] AH00171: Graceful restart requested·, second 59"
    assert "設定ファイル" in lines[-2]
    assert "AH00959: disabling" in lines[-3], "without colours"
    for raw, shown in DATA["tail_shows_newest_lines_sanitized_and_cut_cases"]:
        assert as_printed(raw) == shown
    assert tail_lines(tail_of("x" * 1_000_000), 40, 3)[1] == "x" * 39 + "…"


def test_brief_tail_starts_with_time_of_day_and_wraps() -> None:
    for raw, shown in (
        ("[Sun Nov 22 03:13:30.676976 2026] [core:notice] AH1", ["03:13:30 [core:notice] AH1"]),
        ('10.0.0.1 - - [21/Nov/2026:21:32:15 +0000] "GET /"', ['21:32:15 10.0.0.1 "GET /"']),
        ("2026/11/22 03:13:30 [error] 7#7: x", ["03:13:30 [error] 7#7: x"]),
        ("2026-11-22T03:13:30.12Z ready", ["03:13:30 ready"]),
        ("Nov 22 03:13:30 web1 sshd[1]: x", ["03:13:30 web1 sshd[1]: x"]),
        ("21-Nov-2026 21:31:56.815 INFO x", ["21:31:56 INFO x"]),
        ("no time", ["no time"]),
        (
            "21-Nov-2026 21:31:56.815 INFO " + "x" * 60,
            ["21:31:56 INFO " + "x" * 26, " " * 9 + "x" * 31, " " * 9 + "xxx"],
        ),
        (
            "a long message, no time, " + "y" * 24 + " z" * 40,
            [
                "a long message, no time,",
                " " * 9 + "y" * 24 + " z z z",
                " " * 9 + "z " * 15 + "…",
            ],
        ),
    ):
        assert [line.text for line in brief_tail(tail_of(raw), 40, 3).lines] == shown


def tail_of(*texts: str, **values: object) -> TailPane:
    lines = tuple(TailLine(float(at), text) for at, text in enumerate(texts))
    return TailPane(command="vmstat 1", lines=lines, condition="running", **values)  # type: ignore[arg-type]


def tail_lines(
    current: TailPane, width: int = 60, height: int = 6, scroll: int = 0, paused: TailPane | None = None
) -> list[str]:
    return plain(draw_tail(current, scroll, paused, width, height).lines)


def test_scrolled_tail_is_paused_and_counts_newer_lines() -> None:
    paused = tail_of(*(f"line {n}" for n in range(20)))
    current = tail_of(*(f"line {n}" for n in range(32)))
    lines = tail_lines(current, scroll=5, paused=paused)
    assert "paused at 00:00:19, 12 newer" in lines[0]
    assert lines[1:] == [f"line {n}" for n in range(10, 15)]
    assert draw_tail(current, 5, paused, 60, 6).most == 15
    assert tail_lines(current, scroll=99, paused=paused)[1] == "line 0"
    beyond = TailPane(command="vmstat 1", lines=tuple(TailLine(100.0 + n, "new") for n in range(30)))
    assert "30+ newer" in tail_lines(beyond, scroll=1, paused=tail_of("old"))[0], "at least those in the buffer"


def test_empty_tail_shows_reason_and_tails_are_below_host() -> None:
    for tail, expected in (
        (TailPane(command="x"), "not running yet"),
        (TailPane(command="x", condition="running"), "no lines yet"),
        (TailPane(command="x", condition="ended", detail="exit 127: not found"), "ended: exit 127: not found"),
    ):
        assert expected in "\n".join(tail_lines(tail))
    context = context_of(topology())
    text = "\n".join(plain(host_pane(context.hosts[0], context, 100, 40).lines))
    assert "─ tail -F" in text
    assert "─ sar -b 1" in text
    chosen = detail_context("tail", 1)
    text = "\n".join(plain(host_pane(chosen.hosts[0], chosen, 100, 40).lines))
    assert text.count("─ sar -b 1") == 1


def counts(t: float, statuses: dict[int, int], **values: object) -> AccessCounts:
    lines = sum(statuses.values())
    return AccessCounts(t=t, host="web1", tail=0, seconds=1.0, **{"lines": lines, "statuses": statuses, **values})  # type: ignore[arg-type]


def test_access_log_rates_are_above_lines() -> None:
    seconds = (
        counts(1, {200: 2990, 404: 6}, lookups=3000, hits=2900),
        counts(2, {200: 3010, 502: 2}, lookups=3000, hits=3000, latency=Histogram.of([3_000_000] * 99 + [90_000_000])),
    )
    log = tail_of("one", "two", counts=seconds, skipped=6000)
    lines = tail_lines(log, 100, 5)
    assert "skipped" not in lines[0]
    assert lines[1] == "3k req/s  hits 98.3%  502 1/s  p50 3.0 ms  p99 3.0 ms  200 3k/s  404 3/s"
    assert lines[2:4] == ["one", "two"]
    assert tail_lines(log, 30, 5)[1] == "3k req/s  hits 98.3%  502 1/s"
    assert tail_lines(tail_of("one", counts=(counts(1, {}, lines=1200),)))[1] == "1.2k lines/s", "no access log"
    fast = tail_of("one", counts=(counts(1, {200: 5}, latency=Histogram.of([0] * 5)),))
    assert "p50 < 1 ms  p99 < 1 ms" in tail_lines(fast, 80)[1], "below the resolution of the log"


TWO_HOSTS = topology(30.7)


def sar_context(until: float = 30.7) -> DrawContext:
    return context_of(topology(until), metrics=True, room="alone")


def sar_lines(context: DrawContext, width: int = 118, height: int = 200) -> list[str]:
    return plain(host_pane(context.host, context, width, height).lines)


def metric_row(lines: list[str], title: str) -> list[str]:
    """Return now, mean and maximum of a metric."""
    [line] = [line[line.index(f"{title} ") :] for line in lines if f" {title} " in f" {line}"]
    return line.split()[1:4]


def test_every_metric_appears_once_in_fitting_columns() -> None:
    titles = ["pgscank/s", "pswpout/s", "kbswpcad", "cswch/s", "runq-sz", "tcp-tw", "passive/s", "retrans/s", "%smem"]
    for width, columns in ((38, 1), (78, 2), (118, 3), (198, 5)):
        lines = sar_lines(sar_context(), width)
        assert lines[2].split() == ["now", "mean", "max"] * columns
        assert all(cell_len(line) <= width for line in lines)
        cells = " ".join(lines).split()
        assert [cells.count(title) for title in titles] == [1] * len(titles)


def test_table_shows_now_mean_and_maximum_of_segment() -> None:
    context = sar_context()
    host, segment = context.host, context.segment
    lines = sar_lines(context)
    assert f"mean and max of segment {segment.number}" in "\n".join(lines)
    now, mean, highest = (float(cell) for cell in metric_row(lines, "tcp-tw"))
    assert highest >= mean > 0
    assert now == host.sar["sockets.tcp_tw"]
    assert highest == segment.hosts[host.config.name].highest["sockets.tcp_tw"]
    assert metric_row(lines, "total") == ["3.8G"] * 3
    assert metric_row(lines, "%smem") == ["–", "–", "–"], "an unknown metric is not zero"
    assert metric_row(lines, "pgscank/s") == ["0", "0", "0"]


def test_sar_table_has_blocks_of_cgroup_and_accept_queue() -> None:
    context = sar_context()
    assert "cgroup of the server" not in "\n".join(sar_lines(context))
    lines = sar_lines(with_host(context, "web1", sar={"cgroup.cpu": 28.14, "cgroup.kbmemory": 2048.0}))
    assert "cgroup of the server" in "\n".join(lines)
    assert metric_row(lines, "%cpu") == ["28.1", "–", "–"] and metric_row(lines, "kbmemory") == ["2.0M", "–", "–"]
    assert metric_row(lines, "%quota") == ["–", "–", "–"]
    context = sar_context()
    lines = sar_lines(context)
    assert any(":80 of 511" in line for line in lines)
    assert not any(":22 of" in line for line in lines), "always empty, and not the port of the target"
    sample = context.host.sample
    without = replace(sample, reading=replace(sample.reading, accept={}, backlog={}))
    assert not any(":80" in line for line in sar_lines(with_host(context, "web1", sample=without)))
    text = "\n".join(sar_lines(sar_context(0.3)))
    assert "waiting for data" in text
    assert "now" not in text


async def test_a_toggles_full_screen_sar_table() -> None:
    async with running_app(TWO_HOSTS) as (pilot, _):
        screen = main(pilot.app)
        panes = screen.query_one(HostPanes)
        for size in ((80, 24), (120, 40), (200, 50), (60, 15)):
            await pilot.resize_terminal(*size)
            await reset_screen(pilot)
            before = screen.view
            await press(pilot, "a")
            assert (screen.view.metrics, screen.view.room) == (True, "alone")
            first = text_of(panes)
            assert "sar -u" in first
            assert size != (120, 40) or panes.drawn.most <= 1, "nearly all lines fit 120x40"
            await press(pilot, "pagedown")
            assert (text_of(panes) != first) == (panes.drawn.most > 0)
            await press(pilot, "tab")
            assert "app1" in text_of(panes)
            assert "sar -u" in text_of(panes)
            await press(pilot, "shift+tab", "a")
            assert screen.view == before
        for key in ("p", "escape", "q"):
            await press(pilot, "a")
            context = screen.context()
            assert context.detail(context.host) == SAR
            await press(pilot, key)
            assert not screen.view.metrics
            await press(pilot, "escape", "escape")
