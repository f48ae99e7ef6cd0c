"""README and other pages: links exist, commands parse."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from cockpit.cli.arguments import make_parser
from cockpit.cli.help import topics
from cockpit.cli.parser import join_time_values

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "tests/README.md",
    "screenshots/README.md",
    "profiles/README.md",
)


@pytest.mark.parametrize("page", PAGES)
def test_links_and_pictures_exist(page: str) -> None:
    text = (ROOT / page).read_text()
    links = [link for link in re.findall(r"\]\(([^)#]+)[^)]*\)", text) if "://" not in link]
    assert [link for link in links if not ((ROOT / page).parent / link).exists()] == []


def test_readme_links_every_topic() -> None:
    assert set(re.findall(r"/topics/([a-z-]+)\.md", README)) == set(topics())


def test_gallery_has_every_picture() -> None:
    gallery = (ROOT / "screenshots" / "README.md").read_text()
    names = {path.stem for path in (ROOT / "screenshots").iterdir() if path.suffix in (".svg", ".png")}
    assert {name for name in names if f"({name}." not in gallery} == set()


def test_readme_commands_parse() -> None:
    lines = [line for line in README.splitlines() if line.startswith("    cockpit ")]
    assert len(lines) > 3
    for line in lines:
        arguments = [word for word in shlex.split(line, comments=True)[1:] if not word.startswith(">")]
        make_parser().parse_args(join_time_values(arguments))
    named = set(re.findall(r"^\| `cockpit ([a-z]+)", README, re.MULTILINE))
    commands = make_parser().commands
    assert named | {"start"} == set(commands)
