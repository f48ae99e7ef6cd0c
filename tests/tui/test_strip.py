"""The animated picture of the README: each frame equals the screen at its time."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

from cockpit.recording.reader import Recording
from cockpit.tui.terminal.picture import svg_at
from tests.strip import Frame, strip

ROOT = Path(__file__).parents[2]
SVG = "{http://www.w3.org/2000/svg}"


async def test_each_frame_equals_screen_at_its_time() -> None:
    with Recording(ROOT / "tests" / "recordings" / "spare-servers.cockpit") as recording:
        pictures = [await svg_at(recording, at, (80, 24)) for at in (5.0, 20.0, 40.0)]
    moving = strip([Frame(svg, f"frame {number}", 2.0) for number, svg in enumerate(pictures)])
    root = ElementTree.fromstring(moving)
    for number, picture in enumerate(pictures):
        texts = ElementTree.fromstring(picture).iter(f"{SVG}text")
        expected = {
            positioned_text(element)
            for element in texts
            if "clip-path" in element.attrib and positioned_text(element)[0]
        }
        drawn = {
            positioned_text(element)
            for group in root.iter(f"{SVG}g")
            if is_in_frame(group, number)
            for element in group
            if element.text
        }
        captions = {element for element in drawn if element[0].startswith("frame ")}
        assert drawn - captions == expected
        assert [caption for caption, _, _ in captions] == [f"frame {number}"]


def positioned_text(element: ElementTree.Element) -> tuple[str, str, str]:
    """Return the text of an element, and its coordinates."""
    return (element.text or "").replace("\xa0", " ").strip(), element.get("x", ""), element.get("y", "")


def is_in_frame(group: ElementTree.Element, number: int) -> bool:
    return str(number) in (group.get("class") or "")[1:].split("_")


def test_readme_picture_is_small_and_self_contained() -> None:
    moving = (ROOT / "screenshots" / "session.svg").read_text()
    assert len(moving) < 400_000
    ElementTree.fromstring(moving)
    assert not re.search(r"<script|href|@import|url\(|<!ENTITY| on\w+=", moving)
