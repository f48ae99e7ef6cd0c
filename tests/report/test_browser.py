"""The HTML report in a real browser: no requests, no console messages, all charts drawn."""

import struct
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec.structs import replace

from cockpit.recording.reader import Recording, last_state
from cockpit.report.session import session_page
from cockpit.report.study import study_page
from tests.browser import Browser, browser
from tests.data import data_of
from tests.report.test_page import hostile_state
from tests.report.test_study_page import LEVELS, hostile, result_of

DATA = data_of(__file__)

pytestmark = pytest.mark.lab
RECORDINGS = Path(__file__).parents[1] / "recordings"

TITLES = ("throughput", "time (ms), each", "responses over time", "by percentile", "CPU (%", "memory", "disks")

# All charts with their size on the page, their drawn elements and the sizes of these; and the width of the page.
ASK = DATA["ask"]

# The size of each visible forest plot and dot plot.
PLOTS = """[...document.querySelectorAll('.interval svg')].filter(plot => plot.checkVisibility())
  .map(plot => { const box = plot.getBoundingClientRect(); return [box.width, box.height]; })"""


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("chromium")) as found:
        yield found


@pytest.mark.parametrize(
    ("name", "width", "dark"),
    [("spare-servers", 1200, False), ("two-hosts", 390, True), ("study", 1200, False), ("study", 390, True)],
)
def test_page_is_self_contained(chromium: Browser, tmp_path: Path, name: str, width: int, dark: bool) -> None:
    file = tmp_path / "report.html"
    if name == "study":
        file.write_text(study_page(result_of(replace(LEVELS, rounds=2), more=1200.0)))
    else:
        with Recording(RECORDINGS / f"{name}.cockpit") as recording:
            file.write_text(session_page(last_state(recording)))
    result = chromium.open_page(file, width, 900, ASK, dark=dark)
    assert result.console == []
    assert result.requests == [file.as_uri()]
    found = result.value
    assert found["width"] <= found["inner"] == width
    assert found["page"] == ("rgb(18, 22, 28)" if dark else "rgb(255, 255, 255)")
    assert found["scripts"] == 0
    assert found["tables"] >= 2
    assert struct.unpack(">II", result.screenshot[16:24]) == (width, 900)
    for chart in found["charts"]:
        assert min(chart["plot"]) > 80 and chart["drawn"], chart
    if name == "study":
        plots = chromium.open_page(file, width, 900, PLOTS, dark=dark).value
        assert plots and all(wide > 150 and high > 20 for wide, high in plots)
        return
    titles = " ".join(chart["title"] for chart in found["charts"])
    assert all(title in titles for title in TITLES), titles
    for chart in found["charts"]:
        assert any(max(drawn) > 10 for drawn in chart["drawn"]), chart
        assert chart["labels"] >= 4, chart
        assert chart["loaded"], chart
        assert all(right < left for (_, right), (left, _) in pairwise(sorted(chart["instants"]))), chart
        assert not {"none", "rgb(0, 0, 0)"} & set(chart["colours"]), chart


def test_browser_reports_requests_and_console_errors(chromium: Browser, tmp_path: Path) -> None:
    """A check of the other tests: requests and errors of a page are reported."""
    file = tmp_path / "bad.html"
    file.write_text('<p>x</p><img src="http://127.0.0.1:1/x.png"><script>console.error("broken")</script>')
    result = chromium.open_page(file, 400, 300, "1 + 1")
    assert "broken" in result.console
    assert "http://127.0.0.1:1/x.png" in result.requests
    assert result.value == 2


def test_hostile_text_runs_no_script(chromium: Browser, tmp_path: Path) -> None:
    """The text is escaped; the content security policy of the page is only a second defence."""
    for html in (session_page(hostile_state()), study_page(hostile())):
        file = tmp_path / "hostile.html"
        file.write_text(html)
        script = "[window.owned === undefined, document.images.length, document.scripts.length]"
        result = chromium.open_page(file, 800, 600, script)
        assert result.console == []
        assert result.requests == [file.as_uri()]
        assert result.value == [True, 0, 0]
