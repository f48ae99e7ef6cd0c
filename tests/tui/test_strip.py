"""The moving picture of the README: at any instant it shows what the screen showed then, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

from cockpit.recording.reader import Recording
from cockpit.tui.terminal.picture import svg_at
from tests.strip import Frame, strip

ROOT = Path(__file__).parents[2]
SVG = "{http://www.w3.org/2000/svg}"


async def test_each_frame_is_the_screen_at_its_instant() -> None:
    with Recording(ROOT / "tests" / "recordings" / "spare-servers.cockpit") as recording:
        pictures = [await svg_at(recording, at, (80, 24)) for at in (5.0, 20.0, 40.0)]
    moving = strip([Frame(svg, f"frame {number}", 2.0) for number, svg in enumerate(pictures)])
    root = ElementTree.fromstring(moving)
    for number, picture in enumerate(pictures):
        texts = ElementTree.fromstring(picture).iter(f"{SVG}text")
        wanted = {placed(one) for one in texts if "clip-path" in one.attrib and placed(one)[0]}
        here = {placed(one) for group in root.iter(f"{SVG}g") if of_frame(group, number) for one in group if one.text}
        captions = {one for one in here if one[0].startswith("frame ")}
        assert here - captions == wanted
        assert [caption for caption, _, _ in captions] == [f"frame {number}"]


def placed(one: ElementTree.Element) -> tuple[str, str, str]:
    """A text and where it stands."""
    return (one.text or "").replace("\xa0", " ").strip(), one.get("x", ""), one.get("y", "")


def of_frame(group: ElementTree.Element, number: int) -> bool:
    return str(number) in (group.get("class") or "")[1:].split("_")


def test_the_one_in_the_readme_is_small_and_fetches_and_runs_nothing() -> None:
    moving = (ROOT / "screenshots" / "session.svg").read_text()
    assert len(moving) < 400_000
    ElementTree.fromstring(moving)
    assert not re.search(r"<script|href|@import|url\(|<!ENTITY| on\w+=", moving)
