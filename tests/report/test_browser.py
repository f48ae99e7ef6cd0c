"""The HTML report in a real browser: nothing asked for, nothing complained about, everything drawn."""

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

# Every chart with its size on the page, what is drawn in it and how large that is; and how wide the page became.
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

# The size of each forest and dot plot that is not folded.
PLOTS = """[...document.querySelectorAll('.interval svg')].filter(plot => plot.checkVisibility())
  .map(plot => { const box = plot.getBoundingClientRect(); return [box.width, box.height]; })"""


@pytest.fixture(scope="module")
def driven(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Skips where there is no Chromium; where CI=true that is a failure, unless LAB=0 left it uninstalled."""
    if chromium() is None:
        reason = "chromium is missing (Debian's package `chromium`)"
        if os.environ.get("CI") == "true" and os.environ.get("LAB") != "0":
            pytest.fail(reason)
        pytest.skip(reason)
    with browser(tmp_path_factory.mktemp("chromium")) as found:
        yield found


@pytest.mark.parametrize(("width", "dark"), [(1200, False), (390, True)], ids=["desk, light", "phone, dark"])
@pytest.mark.parametrize("name", ["spare-servers", "two-hosts"])
def test_the_report_is_whole_by_itself(driven: Browser, tmp_path: Path, name: str, width: int, dark: bool) -> None:
    file = tmp_path / "report.html"
    with Recording(RECORDINGS / f"{name}.cockpit") as recording:
        file.write_text(page(last_state(recording)))
    look = driven.look(file, width, 900, ASK, dark=dark)
    assert look.said == []
    assert look.asked == [file.as_uri()]
    found = look.found
    titles = [chart["title"] for chart in found["charts"]]
    for wanted in (
        "throughput",
        "time (ms), each",
        "responses over time",
        "by percentile",
        "CPU (%",
        "memory",
        "disks",
    ):
        assert any(wanted in title for title in titles), wanted
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
    wide, high = struct.unpack(">II", look.picture[16:24])
    assert (wide, high) == (width, 900)


@pytest.mark.parametrize(("width", "dark"), [(1200, False), (390, True)], ids=["desk, light", "phone, dark"])
def test_a_study_is_whole_by_itself(driven: Browser, tmp_path: Path, width: int, dark: bool) -> None:
    from tests.report.test_study_page import LEVELS, result_of

    file = tmp_path / "page.html"
    file.write_text(study_page(result_of(replace(LEVELS, rounds=2), more=1200.0)))
    look = driven.look(file, width, 900, ASK, dark=dark)
    assert look.said == [] and look.asked == [file.as_uri()]
    found = look.found
    assert found["width"] <= found["inner"] == width
    assert found["page"] == ("rgb(18, 22, 28)" if dark else "rgb(255, 255, 255)")
    assert [chart["title"] for chart in found["charts"] if min(chart["plot"]) < 80 or not chart["drawn"]] == []
    plots = driven.look(file, width, 900, PLOTS, dark=dark).found
    assert plots and all(wide > 150 and high > 20 for wide, high in plots)


def test_the_browser_would_tell(driven: Browser, tmp_path: Path) -> None:
    """The check of the checks: a page that asks for something and complains is found out."""
    file = tmp_path / "bad.html"
    file.write_text('<p>x</p><img src="http://127.0.0.1:1/x.png"><script>console.error("broken")</script>')
    look = driven.look(file, 400, 300, "1 + 1")
    assert "broken" in look.said
    assert "http://127.0.0.1:1/x.png" in look.asked
    assert look.found == 2


def test_hostile_text_runs_nothing(driven: Browser, tmp_path: Path) -> None:
    """Were it not for the page's own policy either, the text would still be text."""
    from tests.report.test_page import hostile_state
    from tests.report.test_study_page import hostile

    file = tmp_path / "hostile.html"
    file.write_text(page(hostile_state()))
    study = tmp_path / "study.html"
    study.write_text(study_page(hostile()))
    for one in (file, study):
        look = driven.look(
            one, 800, 600, "[window.owned === undefined, document.images.length, document.scripts.length]"
        )
        assert look.said == []
        assert look.asked == [one.as_uri()]
        assert look.found == [True, 0, 0]
