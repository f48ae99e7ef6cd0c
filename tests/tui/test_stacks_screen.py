"""The CPU profile of a segment: its icicle, its table, keys and clicks, odd names, and reasons for its absence."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
from msgspec.structs import replace
from rich.cells import cell_len
from textual.pilot import Pilot

from cockpit.analysis.stacks.call_tree import CallTree
from cockpit.analysis.stacks.merging import by_function, segment_stacks
from cockpit.analysis.stacks.profiles import StackProfile, stack_profile
from cockpit.model import events as ev
from cockpit.model.fold.fold import fold_all
from cockpit.model.stacks import ProfilerChanged, StackSlice
from cockpit.model.state import State
from cockpit.recording.reader import Recording
from cockpit.tui.runs.icicle import StacksView, icicle, moved, zoomed_out
from cockpit.tui.runs.stacks_screen import StacksPane, StacksScreen
from cockpit.tui.terminal.styled_line import Line, length
from tests.analysis.profiled import FORKING, HOSTILE, SERVING, counted, profiled
from tests.report.test_compare import recorded
from tests.tui.driving import context_of, main, plain, press, running_app, text_of, until
from tests.tui.screens import RECORDINGS, replayed_app
from tests.tui.test_clicks import click

DIFFERENCE = CallTree(SERVING, {**SERVING, **FORKING}, ratio=0.62)


@cache
def real() -> tuple[State, StackProfile]:
    """Return a recorded session of Apache, which forks for each connection and then does not, and its last profile."""
    with Recording(RECORDINGS / "profiled.cockpit") as recording:
        state = fold_all(recording.events())
    before, after = state.segments
    profile = stack_profile(state, "web1", after, before)
    assert profile is not None
    return state, profile


def row_of(lines: Sequence[Line], text: str) -> tuple[str, str]:
    """Return the first piece with a text, and its role."""
    return next(piece for line in lines for piece in line if text in piece[0])


@pytest.mark.parametrize("width", [120, 80, 30])
@pytest.mark.parametrize(
    "tree", [DIFFERENCE, CallTree(SERVING), CallTree(HOSTILE), real()[1].tree], ids=["both", "one", "hostile", "real"]
)
def test_boxes_are_as_wide_as_their_cpu(tree: CallTree, width: int) -> None:
    drawn = icicle(tree, StacksView(1), width, 30)
    assert length(drawn.lines[0]) == width
    for line, row in zip(drawn.lines, drawn.rows, strict=False):
        assert length(line) <= width
        for box in row:
            share = tree.weight(box.node) / tree.weight(tree.root)
            assert abs((box.end - box.start) - share * width) <= 1
    for spot in drawn.spots:
        depth, at = map(int, spot.arguments)
        assert (spot.start, spot.end) == drawn.rows[depth][at][:2]


def test_changes_of_real_stacks_add_up_to_that_of_all() -> None:
    state, profile = real()
    tree = profile.tree
    assert profile.tested and profile.samples > 1_000
    assert tree.change(tree.root).points == pytest.approx(tree.percent(tree.root) - 100)
    assert sum(row.own_change.points for row in profile.functions) == pytest.approx(tree.change(tree.root).points)
    assert sum(row.own for row in profile.functions) == pytest.approx(tree.percent(tree.root))
    gone = {row.frame: row for row in profile.functions}["copy_process_[k]"]
    assert gone.total_change.points < -5 and gone.total_change.clear and gone.total < 0.5
    for segment in state.segments:
        stacks = segment_stacks(state, "web1", segment)
        hottest = max(by_function(stacks).items(), key=lambda item: (item[1].own, item[0]))
        shown = stack_profile(state, "web1", segment)
        assert shown is not None
        assert shown.functions[0].own == pytest.approx(100 * hottest[1].own / sum(stacks.values()))


@pytest.mark.parametrize("size", [(120, 40), (80, 24)])
async def test_real_stacks_are_drawn_and_walked_to_the_innermost_function(size: tuple[int, int]) -> None:
    async with replayed_app(RECORDINGS / "profiled.cockpit", size=size) as (pilot, _):
        await press(pilot, "H", *["down"] * 60)
        pane = pane_of(pilot)
        assert pane.profile is not None and "changes not tested" not in text_of(pane)
        boxes = [box for row in pane.rows for box in row if box.node is pane.profile.tree.at(pane.view.selected)]
        assert len(boxes) == 1 and boxes[0].end - boxes[0].start < size[0] / 2, "callees that have room for a cell"
        assert text_of(pane).splitlines()[1].startswith(pane.view.selected[-1])
        await press(pilot, "slash", *"clone", "enter")
        assert "/clone" in text_of(pane)
        await press(pilot, "escape", "w")
        row = next(line for line in text_of(pane).splitlines() if "request.proc" in line)
        assert float(row.split()[1]) > 1 > float(row.split()[2]), "processes that were forked per request"


def test_a_difference_has_signs_and_colours_where_it_is_large() -> None:
    lines = icicle(DIFFERENCE, StacksView(1, selected=("apache2",)), 120, 30).lines
    assert row_of(lines, " fork")[0].strip("▏ ").startswith("−20.") and row_of(lines, " fork")[1] == "better"
    assert row_of(lines, "main")[1] == "less", "a part of it changed"
    assert row_of(lines, "writev")[1].startswith("on_heat")
    assert row_of(lines, "apache2")[1] == "focus"
    worse = CallTree({**SERVING, **FORKING}, SERVING)
    assert row_of(icicle(worse, StacksView(1), 120, 30).lines, " fork")[0].strip("▏").startswith("+20.")
    found = icicle(DIFFERENCE, StacksView(1, search="FORK"), 120, 30).lines
    assert row_of(found, " fork")[1] == "match" and "▸" in row_of(found, " fork")[0]


def test_moves_follow_callers_callees_and_neighbours() -> None:
    view, steps = StacksView(1), [(0, 1)] * 8 + [(1, 0), (0, 1), (1, 0), (-1, 0), (0, -1), (-1, 0), (-1, 0)]
    frames = []
    for x, y in steps:
        view = moved(DIFFERENCE, view, icicle(DIFFERENCE, view, 120, 30).rows, x, y)
        frames.append(view.selected[-1] if view.selected else "all")
    assert frames[:8] == [
        *("apache2", "_start", "main", "ap_run_mpm", "[mod_mpm_prefork.so]", "make_child", "child_main"),
        "ap_process_http_connection",
    ]
    assert frames[8:] == [
        *("apr_socket_accept", "accept4", "mmap64", "accept4", "apr_socket_accept"),
        *("ap_process_http_connection", "ap_process_http_connection"),
    ]


def test_zooming_out_skips_callers_of_the_same_width() -> None:
    path = ("apache2", "_start", "main", "ap_run_mpm", "[mod_mpm_prefork.so]", "make_child")
    view = StacksView(1, top=(*path, "fork", "__libc_fork"), selected=(*path, "fork", "__libc_fork"))
    drawn = icicle(DIFFERENCE, view, 80, 20)
    assert "… → make_child → fork → __libc_fork" in plain(drawn.lines)[0] and length(drawn.lines[0]) == 80
    assert moved(DIFFERENCE, view, drawn.rows, 0, -1).top == (*path, "fork"), "above the top"
    view = zoomed_out(DIFFERENCE, view)
    assert view.top == path, "the callers up to make_child have the same width"
    assert zoomed_out(DIFFERENCE, view).top == ()
    assert icicle(DIFFERENCE, view._replace(top=("gone",)), 80, 20).rows[0][0].node is DIFFERENCE.root


def lines_of(events: Sequence[ev.AnyEvent], size: tuple[int, int], **view: object) -> list[str]:
    pane = StacksPane(2)
    pane.view = StacksView(2, **view)  # type: ignore[arg-type]
    return plain(pane.draw(context_of(events), *size))


@pytest.mark.parametrize("size", [(120, 40), (80, 24), (40, 12)])
@pytest.mark.parametrize("difference", [True, False])
def test_hostile_names_are_drawn_as_text(size: tuple[int, int], difference: bool) -> None:
    lines = lines_of(profiled(hostile=True), size, difference=difference)
    assert len(lines) == size[1] and max(map(cell_len, lines)) <= size[0]
    assert size == (40, 12) or any("[link=http://x/]here" in line for line in lines), "markup is text"
    pane, deep = StacksPane(2), tuple(f"f{depth}" for depth in range(115))
    pane.view = StacksView(2, difference=False, selected=("php-fpm", *deep), top=("php-fpm", "f0"))
    lines = plain(pane.draw(context_of(profiled(hostile=True)), *size))
    assert any("f114 " in line for line in lines[2:]), "the selected box of a deep stack is visible"


def test_reasons_for_a_missing_profile() -> None:
    without = [event for event in profiled() if not isinstance(event, StackSlice | ProfilerChanged)]
    assert any("--profile" in line for line in lines_of(without, (80, 24)))
    assert any("No complete slice" in line for line in lines_of([*without, running("running")], (80, 24)))
    failed = lines_of(
        [*without, running("failed", "perf: not permitted; sysctl kernel.perf_event_paranoid=1")], (80, 24)
    )
    assert any("sysctl kernel.perf_event_paranoid=1" in line for line in failed)
    nobody = [event for event in without if not isinstance(event, ev.SessionStarted)]
    assert any(
        "[[host]]" in line
        for line in lines_of([ev.SessionStarted(t=0, wall=1e9, version="0", name="a"), *nobody], (80, 24))
    )


@pytest.mark.parametrize("size", [(120, 40), (80, 24)])
def test_profiler_of_a_language_is_named_below_a_profile_without_its_functions(size: tuple[int, int]) -> None:
    native = running("stopped", "no functions of Python: \x1b[2J py-spy is not on the PATH there")
    *above, hint, _ = lines_of([*profiled(), native], size)
    assert hint.rstrip() == "no functions of Python: ·[2J py-spy is not on the PATH there"
    assert len(above) == size[1] - 2 and len(lines_of(profiled(), size)) == size[1]
    spied = [replace(event, source="py-spy") if isinstance(event, StackSlice) else event for event in profiled()]
    assert any("% of the baseline's CPU and run-queue wait/request" in line for line in lines_of(spied, (120, 40)))
    assert any("49 Hz by py-spy, profiler 0.31% of a core" in line for line in lines_of(spied, (120, 40)))
    mixed = [*profiled()[:-1], *(event for event in spied[-1:])]
    assert not any("vs 1" in line for line in lines_of(mixed, (120, 40))), "slices of another profiler"


async def test_counters_of_the_kernel_are_beside_the_baseline() -> None:
    async with running_app(counted()) as (pilot, source):
        await press(pilot, "H")
        pane = pane_of(pilot)
        assert "No CPU profile of this segment. O switches profiling on" in text_of(pane)
        row = next(line for line in text_of(pane).splitlines() if "request.cswch" in line)
        assert row.split()[3] == "÷1.99" and "context switches of the watched processes" in row
        source.controls.extent = (0.0, 600.0)
        await press(pilot, "b")
        assert "O switches profiling on" not in text_of(pane), "a replay"
        row = next(line for line in text_of(pane).splitlines() if "request.cswch" in line)
        assert row.split()[1] == "–"
    async with running_app(profiled()) as (pilot, _):
        await press(pilot, "H", "w")
        assert "copy_page_range" not in text_of(pane_of(pilot))
        await press(pilot, "w")
        assert "copy_page_range" in text_of(pane_of(pilot))


def running(condition: str, detail: str = "") -> ProfilerChanged:
    return ProfilerChanged(t=119.0, host="web1", condition=condition, detail=detail)  # type: ignore[arg-type]


def pane_of(pilot: Pilot[object]) -> StacksPane:
    assert isinstance(pilot.app.screen, StacksScreen)
    return pilot.app.screen.query_one(StacksPane)


async def test_live_profile_grows_and_is_searched_and_clicked() -> None:
    events = profiled()
    first = [event for event in events if event.t <= 91]
    async with running_app(first) as (pilot, source):
        await press(pilot, "H")
        pane = pane_of(pilot)
        assert "segment 2 vs 1" in text_of(pane) and "654 samples" in text_of(pane)
        assert "changes not tested" in text_of(pane), "only three slices"
        source.push(*events[len(first) :])
        await until(pilot, lambda: "1,308 samples" in text_of(pane))
        assert "changes not tested" not in text_of(pane)
        await press(pilot, "slash", *"LIBC", "enter")
        assert pane.view.search == "LIBC" and "/LIBC 0.0% −20.2" in text_of(pane)
        await press(pilot, "escape")
        await click(pilot, pane, "−20.2 fork")
        assert pane.view.selected[-1] == "fork" and text_of(pane).splitlines()[1].startswith(
            "fork  0.0%, itself 0.0%  −20"
        )
        await click(pilot, pane, "−20.2 fork")
        assert pane.view.top[-1] == "fork"
        await click(pilot, pane, "unmap_vmas_[k] ")
        assert pane.view.search == "unmap_vmas_[k]"
        await press(pilot, "escape", "escape")
        assert (pane.view.search, pane.view.top) == ("", ())
        await press(pilot, "escape")
        assert pilot.app.screen is main(pilot.app)


async def test_replay_shows_the_profile_of_the_segment_under_the_cursor(tmp_path: Path) -> None:
    path = recorded(tmp_path / "a.cockpit", list(profiled()))
    async with replayed_app(path, size=(80, 24)) as (pilot, _):
        await press(pilot, "up", "H")
        pane = pane_of(pilot)
        assert "segment 1: baseline" in text_of(pane) and "1,632 samples" in text_of(pane)
        await press(pilot, "right_square_bracket")
        assert "segment 2 vs 1" in text_of(pane)
        await press(pilot, "b")
        assert "vs 1" not in text_of(pane) and "self ±" not in text_of(pane)
        await press(pilot, "pagedown")
        assert f"functions {pane.table.page + 1}–" in text_of(pane)
    async with replayed_app(path, t=69.0) as (pilot, _):
        await press(pilot, "H")
        assert "No complete slice" in text_of(pane_of(pilot)), "seeking back"
