"""Process table of a host: sort orders, filter, folded lines."""

from __future__ import annotations

from msgspec.structs import replace

from cockpit.tui.draw_context import DrawContext, View
from cockpit.tui.hosts.host_pane import host_pane
from cockpit.tui.hosts.panes import host_line
from tests.tui.driving import context_of, plain
from tests.tui.host_details import detail, with_host
from tests.tui.scenario import Scenario


def processes(**view: object) -> list[str]:
    """Return the PIDs in the order of the table, by default sorted by PID."""
    context = context_of(Scenario().events(30.6), **{"order": "pid", "folded": False, **view})  # type: ignore[arg-type]
    return [line[1:].split()[0] for line in detail(context, 110, 40)[1:] if line[1:].split()[:1]]


def test_sort_order_is_marked_in_column_and_reversible() -> None:
    for order, sign in (
        ("pid", "▴PID"),
        ("cpu", "▾%CPU"),
        ("rss", "▾RSS"),
        ("unshared", "▾RSS−SHR"),
        ("age", "▾AGE"),
        ("start", "▴START"),
        ("command", "▴COMMAND"),
    ):
        for width in (49, 110):
            head = detail(context_of(Scenario().events(30.6), order=order), width)[0]
            assert sign in head, "the sorted column is shown at any width"
        turned = detail(context_of(Scenario().events(30.6), order=order, reverse_order=True))[0]
        assert {"▴": "▾", "▾": "▴"}[sign[0]] + sign[1:] in turned
    assert processes(reverse_order=True) == processes()[::-1]
    assert processes(order="age")[0] == processes()[0], "the parent is the oldest"


def test_filter_matches_pid_and_command_and_shows_count() -> None:
    all_pids = processes()
    wanted = all_pids[3]
    assert processes(filter=wanted) == [wanted]
    assert len(processes(filter="DEFUNCT")) == 1
    head = detail(context_of(Scenario().events(30.6), filter="defunct"))[0]
    assert f"/defunct 1 of {len(all_pids)}" in head
    unmatched = detail(context_of(Scenario().events(30.6), filter="nginx"))
    assert f"none of {len(all_pids)} has “nginx”" in unmatched[1]


def test_missing_process_is_reported() -> None:
    context = context_of(Scenario().events(30.6))
    assert "no process named apache2" in detail(with_host(context, "web1", processes=()))[1]


def test_selected_process_stays_visible_with_details() -> None:
    context = context_of(Scenario().events(30.6))
    row = context.hosts[0].processes[-1]
    chosen = (row.process.pid, row.process.start)
    for order in ("pid", "cpu", "age"):
        view = View(order=order, process=chosen, list_entered=True, folded=False)  # type: ignore[arg-type]
        lines = detail(DrawContext(state=context.state, view=view), 100, 13)
        assert len([line for line in lines if str(row.process.pid) in line]) == 2, "the row and the details"
        assert any(f"PID {row.process.pid}  parent 2010  threads 1" in line for line in lines)


def test_identical_processes_are_folded() -> None:
    context = context_of(Scenario().events(30.6))
    rows = context.hosts[0].processes
    command = "/usr/sbin/apache2 -k start"
    workers = [row for row in rows if row.process.command == command and row.process.user != "root"]
    lines = detail(context, 118, 40)
    [fold] = [line for line in lines if f"×{len(workers)}" in line]
    assert "www-data" in fold
    assert f"{min(row.cpu for row in workers):.0f}–{max(row.cpu for row in workers):.0f}" in fold
    assert fold.endswith("/usr/sbin/apache2 -k start")
    assert len(lines) - 1 == len(rows) - len(workers) + 1
    assert len(detail(context_of(Scenario().events(30.6), folded=False), 118, 40)) - 1 == len(rows)
    chosen = (workers[-1].process.pid, workers[-1].process.start)
    view = View(process=chosen, list_entered=True)
    text = "\n".join(detail(DrawContext(state=context.state, view=view), 118, 20))
    assert f"{len(workers)} identical processes, z: show each" in text


def test_different_parent_user_or_command_is_not_folded() -> None:
    context = context_of(Scenario().events(30.6))
    rows = context.hosts[0].processes[:4]
    different = ({"ppid": 1}, {"user": "other"}, {"command": "sleep"})
    four = [replace(row, process=replace(rows[0].process, pid=pid)) for pid, row in enumerate(rows, 1)]
    for changes in different:
        mixed = [*four[:3], replace(four[3], process=replace(four[3].process, **changes))]
        lines = detail(with_host(context, "web1", processes=mixed), 118, 40)
        assert len(lines) == 1 + 2
        assert sum("×3" in line for line in lines) == 1
    assert len(detail(with_host(context, "web1", processes=four[:2]), 118, 40)) == 1 + 2, "two processes are not folded"


def test_user_threads_and_pss_columns_depend_on_width() -> None:
    context = context_of(Scenario().events(30.6))
    assert {"USER", "THR", "PSS"} <= set(detail(context, 118)[0].split())
    assert {"PSS"} == {"USER", "THR", "PSS"} & set(detail(context, 80)[0].split())
    unknown = [replace(row, process=replace(row.process, user="", pss=None)) for row in context.hosts[0].processes[:1]]
    [line] = detail(with_host(context, "web1", processes=unknown), 118)[1:2]
    assert line.split().count("–") == 2


def test_hidden_processes_are_reported() -> None:
    context = context_of(Scenario().events(30.6))
    sample = context.hosts[0].sample
    assert sample is not None
    hidden = replace(sample, reading=replace(sample.reading, hidden=True))
    context = with_host(context, "web1", sample=hidden)
    assert "hidden by hidepid" in "\n".join(plain(host_pane(context.hosts[0], context, 80, 20).lines))
    assert "hidden (hidepid)" in plain([host_line(context.hosts[0], context, 80)])[0]
