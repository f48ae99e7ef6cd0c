"""The HTML report in a real browser: no requests, no console messages, all charts drawn."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec.structs import replace

from cockpit.recording.reader import Recording, last_state
from cockpit.report.page import page
from cockpit.report.study_page import study_page
from tests.browser import Browser, browser, chromium

RECORDINGS = Path(__file__).parents[1] / "recordings"

# All charts with their size on the page, their drawn elements and the sizes of these; and the width of the page.
ASK = """(() => {
  const size = element => { const box = element.getBoundingClientRect(); return [box.width, box.height]; };
  const charts = [...document.querySelectorAll('figure.chart')].map(chart => ({
    title: chart.querySelector('figcaption').textContent,
    plot: size(chart.querySelector('svg')),
    drawn: [...chart.querySelectorAll('svg path.s, svg image')].map(size),
    labels: [...chart.querySelectorAll('.plot span')].filter(label => size(label)[0] > 0).length,
    instants: [...chart.querySelectorAll('.plot .x')].map(label => {
      const box = label.getBoundingClientRect(); return [box.left, box.right];
    }),
    colours: [...chart.querySelectorAll('svg path.s')].map(path => getComputedStyle(path).stroke),
    loaded: [...chart.querySelectorAll('svg image')].every(image => image.href.baseVal.startsWith('data:image/png')),
  }));
  return {
    charts,
    width: document.documentElement.scrollWidth,
    inner: window.innerWidth,
    page: getComputedStyle(document.documentElement).backgroundColor,
    scripts: document.scripts.length,
    tables: document.querySelectorAll('table').length,
  };
})()"""

# The size of each visible forest plot and dot plot.
PLOTS = """[...document.querySelectorAll('.interval svg')].filter(plot => plot.checkVisibility())
  .map(plot => { const box = plot.getBoundingClientRect(); return [box.width, box.height]; })"""


@pytest.fixture(scope="module")
def chromium_browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Skip without Chromium; with CI=true fail instead, unless LAB=0 left Chromium uninstalled."""
    if chromium() is None:
        reason = "chromium is missing (Debian's package `chromium`)"
        if os.environ.get("CI") == "true" and os.environ.get("LAB") != "0":
            pytest.fail(reason)
        pytest.skip(reason)
    with browser(tmp_path_factory.mktemp("chromium")) as found:
        yield found


@pytest.mark.parametrize(("width", "dark"), [(1200, False), (390, True)], ids=["desk, light", "phone, dark"])
@pytest.mark.parametrize("name", ["spare-servers", "two-hosts"])
def test_report_is_self_contained_and_complete(
    chromium_browser: Browser, tmp_path: Path, name: str, width: int, dark: bool
) -> None:
    file = tmp_path / "report.html"
    with Recording(RECORDINGS / f"{name}.cockpit") as recording:
        file.write_text(page(last_state(recording)))
    result = chromium_browser.open_page(file, width, 900, ASK, dark=dark)
    assert result.console == []
    assert result.requests == [file.as_uri()]
    found = result.value
    titles = [chart["title"] for chart in found["charts"]]
    for expected in (
        "throughput",
        "time (ms), each",
        "responses over time",
        "by percentile",
        "CPU (%",
        "memory",
        "disks",
    ):
        assert any(expected in title for title in titles), expected
    for chart in found["charts"]:
        assert min(chart["plot"]) > 80, chart
        assert chart["drawn"], chart
        assert any(max(drawn) > 10 for drawn in chart["drawn"]), chart
        assert chart["labels"] >= 4, chart
        assert chart["loaded"], chart
        assert all(right < left for (_, right), (left, _) in pairwise(sorted(chart["instants"]))), chart
        assert not {"none", "rgb(0, 0, 0)"} & set(chart["colours"]), chart
    assert found["width"] <= found["inner"] == width
    assert found["page"] == ("rgb(18, 22, 28)" if dark else "rgb(255, 255, 255)")
    assert found["scripts"] == 0
    assert found["tables"] >= 2
    wide, high = struct.unpack(">II", result.screenshot[16:24])
    assert (wide, high) == (width, 900)


@pytest.mark.parametrize(("width", "dark"), [(1200, False), (390, True)], ids=["desk, light", "phone, dark"])
def test_study_page_is_self_contained_and_complete(
    chromium_browser: Browser, tmp_path: Path, width: int, dark: bool
) -> None:
    from tests.report.test_study_page import LEVELS, result_of

    file = tmp_path / "page.html"
    file.write_text(study_page(result_of(replace(LEVELS, rounds=2), more=1200.0)))
    result = chromium_browser.open_page(file, width, 900, ASK, dark=dark)
    assert result.console == [] and result.requests == [file.as_uri()]
    found = result.value
    assert found["width"] <= found["inner"] == width
    assert found["page"] == ("rgb(18, 22, 28)" if dark else "rgb(255, 255, 255)")
    assert [chart["title"] for chart in found["charts"] if min(chart["plot"]) < 80 or not chart["drawn"]] == []
    plots = chromium_browser.open_page(file, width, 900, PLOTS, dark=dark).value
    assert plots and all(wide > 150 and high > 20 for wide, high in plots)


def test_browser_reports_requests_and_console_errors(chromium_browser: Browser, tmp_path: Path) -> None:
    """A check of the other tests: requests and errors of a page are reported."""
    file = tmp_path / "bad.html"
    file.write_text('<p>x</p><img src="http://127.0.0.1:1/x.png"><script>console.error("broken")</script>')
    result = chromium_browser.open_page(file, 400, 300, "1 + 1")
    assert "broken" in result.console
    assert "http://127.0.0.1:1/x.png" in result.requests
    assert result.value == 2


def test_hostile_text_runs_no_script(chromium_browser: Browser, tmp_path: Path) -> None:
    """The text is escaped; the content security policy of the page is only a second defence."""
    from tests.report.test_page import hostile_state
    from tests.report.test_study_page import hostile

    file = tmp_path / "hostile.html"
    file.write_text(page(hostile_state()))
    study = tmp_path / "study.html"
    study.write_text(study_page(hostile()))
    for document in (file, study):
        result = chromium_browser.open_page(
            document, 800, 600, "[window.owned === undefined, document.images.length, document.scripts.length]"
        )
        assert result.console == []
        assert result.requests == [document.as_uri()]
        assert result.value == [True, 0, 0]
