"""CPU profiles in the report of a session: flame graphs, their differences, and tables of functions."""

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from cockpit.analysis.comparison import kernel_counters
from cockpit.model import events as ev
from cockpit.model.fold.fold import fold_all
from cockpit.model.host.samples import HostConfig
from cockpit.model.stacks import ProfilerChanged, StackSlice
from cockpit.report.session import session_markdown, session_page
from tests.analysis.profiled import counted, profiled, slice_of
from tests.browser import browser
from tests.report.test_page import outline


def test_page_has_a_flame_graph_of_each_segment_and_the_difference() -> None:
    page = session_page(fold_all(profiled()))
    assert page.count('class="flame"') == 3, "of both segments, and the difference"
    texts = outline(page).texts
    assert texts.count("unmap_vmas_[k]") >= 3 and "−20.2 fork" in texts
    assert "fork: 0.0%, itself 0.0%, −20.2 points" in texts, "tooltip"
    assert "1,632 samples at 49 Hz, profiler 0.31% of a core" in texts
    markdown = session_markdown(fold_all(profiled()))
    assert re.search(r"\| copy\\_page\\_range.* \| 0.0% \| 0.0% \| −17.6 \| −17.6 \|", markdown)


def test_page_names_the_profiler_and_its_limits() -> None:
    events = [replace(event, source="py-spy") if isinstance(event, StackSlice) else event for event in profiled()]
    native = ProfilerChanged(t=119.0, host="web1", condition="stopped", detail="no functions of <b>: py-spy is missing")
    texts = outline(session_page(fold_all([*events, native]))).texts
    assert "1,632 samples at 49 Hz by py-spy, profiler 0.31% of a core" in texts
    assert "CPU and run-queue wait by call stack" in texts
    assert "no functions of <b>: py-spy is missing" in texts


def test_hostile_names_are_escaped_and_the_size_is_bounded() -> None:
    state = fold_all(profiled(hostile=True))
    page = session_page(state)
    found = outline(page)
    assert "operator<<(std::ostream&, <script>alert(1)</script>)" in "".join(found.texts)
    assert "script" not in found.tags and len(page) < 400_000
    assert {"[red]not markup[/red]", "日本語のタイトル"} <= set(found.texts)


def test_segments_are_bounded_and_idle_servers_have_no_difference() -> None:
    hosts = (HostConfig(name="web1"), *(HostConfig(name=f"web{at}") for at in range(2, 8)))
    idle = [slice_of(5.0 * at, {}, host=host.name) for host in hosts[1:] for at in range(1, 24)]
    started, *events = profiled()
    assert isinstance(started, ev.SessionStarted)
    state = fold_all((replace(started, hosts=hosts), *events, *idle))
    page = session_page(state)
    assert page.count("the last 1 of 2 profiled segments") == 7
    assert page.count("0 samples at 49 Hz") == 6 and page.count("<figcaption>Difference to segment 1") == 1


def test_segments_without_samples_have_no_part() -> None:
    assert "CPU profiles" in session_page(fold_all(profiled()))
    state = fold_all(event for event in profiled() if not isinstance(event, StackSlice))
    assert "CPU profiles" not in session_page(state)


def test_verdict_is_followed_by_kernel_counters_of_both_sides() -> None:
    state = fold_all(counted())
    page = session_markdown(state)
    assert page.index("## Verdicts") < page.index("Kernel counters of web1") < page.index("## Timeline")
    assert "Kernel counters of web1" in outline(session_page(state)).texts
    values = {pair.name: (pair.before, pair.after) for pair in kernel_counters("web1", *state.segments)}
    assert values["processes.running"] == pytest.approx((50, 50))
    # A window ends with the first sample after its end.
    assert values["processes.waiting"] == pytest.approx((25, 0), abs=0.5)
    assert values["request.wait"] == pytest.approx((0.25e-3, 0), rel=0.02, abs=0.01e-3)
    assert values["processes.involuntary"] == pytest.approx((25, 4), abs=0.5)


@pytest.mark.parametrize("tree", [55, 60])
def test_times_are_unknown_if_exited_processes_used_more_cpu(tree: int) -> None:
    """Processes that lived between two samples are not in the times."""
    events = [
        replace(event, reading=replace(event.reading, processes_cpu=tree * int(event.t)))
        if isinstance(event, ev.HostSample)
        else event
        for event in counted()
    ]
    names = {pair.name for pair in kernel_counters("web1", None, fold_all(events).segments[0])}
    assert "request.run" in names
    assert ({"processes.running", "request.wait", "request.cswch"} <= names) is (tree == 55)


@pytest.mark.lab
def test_functions_are_searched_by_the_browser(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(session_page(fold_all(profiled())))
    ask = """(() => ({
      found: ['copy_page_range', 'clean_child_exit', 'no such function'].map(name => window.find(name)),
      widths: [...document.querySelectorAll('.flame')].map(flame => flame.getBoundingClientRect().width),
      boxes: [...document.querySelectorAll('.flame svg svg')].map(box => box.getBoundingClientRect().width),
    }))()"""
    with browser(tmp_path / "chromium") as chromium:
        result = chromium.open_page(tmp_path / "page.html", 1000, 900, ask)
    assert result.console == []
    assert result.value["found"] == [True, True, False]
    assert len(result.value["boxes"]) > 60 and min(result.value["boxes"]) > 0 and max(result.value["widths"]) > 800
