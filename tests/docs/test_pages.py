"""The pages of `make docs` before the site is built: all topics, commands and metrics, and links between them."""

import re
import tomllib
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest

from cockpit.cli.commands.help import topics
from cockpit.cli.spec import SpecJson, spec_json
from docs.__main__ import TIMES
from docs.flow import ARROWS, BOXES, drawing
from docs.pages import HERE, PROFILES, casts, write_pages


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the text of each page by its path."""
    folder = tmp_path_factory.mktemp("docs") / "pages"
    write_pages(folder)
    return {path.name: path.read_text() for path in folder.glob("*.md")}


def files(entries: Any) -> Iterator[str]:
    """Yield the files of a navigation."""
    for entry in entries:
        for value in entry.values():
            yield from [value] if isinstance(value, str) else files(value)


def test_navigation_has_every_page_once(pages: dict[str, str]) -> None:
    named = list(files(tomllib.loads((HERE / "zensical.toml").read_text())["project"]["nav"]))
    assert sorted(named) == sorted(pages)
    assert {f"{name}.md" for name in topics()} < set(named)


def test_links_lead_to_pages(pages: dict[str, str]) -> None:
    total = 0
    for name, page in pages.items():
        prose = re.sub(r"^    .*$", "", page, flags=re.MULTILINE)
        links = [link for link in re.findall(r"\]\(([^)#]+)[^)]*\)", prose) if "://" not in link]
        total += len(links)
        assert [link for link in links if link not in pages] == [], name
    assert total > 100
    assert "[`cockpit help load`](load.md)" in pages["screen.md"]
    assert "[`cockpit help studies`](studies.md)" in pages["shipped-profiles.md"] != PROFILES.read_text()


def test_reference_has_every_command_flag_metric_and_exit_code(pages: dict[str, str]) -> None:
    spec = msgspec.json.decode(spec_json(), type=SpecJson)
    commands = dict(part.split("\n", 1) for part in pages["commands.md"].split("\n## cockpit ")[1:])
    assert list(commands) == [command.name for command in spec.commands]
    for command in spec.commands:
        for name in (name for argument in command.arguments for name in argument.names):
            assert re.search(rf"`{re.escape(name)}[ `]", commands[command.name]), (command.name, name)
    metrics = pages["metric-list.md"]
    rows = re.findall(r"^\| `(.+)` \|", metrics, re.MULTILINE)
    assert rows == [*(metric.name for metric in spec.metrics), *spec.latencies]
    codes = re.findall(r"^\| (\d+) \| .* \| (.+) \|$", pages["exit-code-list.md"], re.MULTILINE)
    assert [int(code) for code, _ in codes] == list(spec.exits)
    assert dict(codes)["99"] == "run, check" and dict(codes)["0"] == "all"


def test_casts_have_recordings_and_times() -> None:
    assert casts() == set(TIMES)
    assert all((HERE.parent / "tests" / "recordings" / f"{name}.cockpit").is_file() for name in casts())


def test_diagram_connects_every_box(pages: dict[str, str]) -> None:
    svg = ElementTree.fromstring(drawing())
    assert drawing() in pages["index.md"]
    words = [part.text for part in svg.iter("text")]
    assert words == [text for box in BOXES.values() for text in box[2:]]
    assert {name for arrow in ARROWS for name in arrow} == set(BOXES)
    assert all(BOXES[start][0] <= BOXES[end][0] for start, end in ARROWS)
