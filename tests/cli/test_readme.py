"""What the README shows is there: its links, its commands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from cockpit.cli.arguments import make_parser
from cockpit.cli.help_topics import topics
from cockpit.cli.parser import joined

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def test_its_links_and_pictures_are_there() -> None:
    links = [link for link in re.findall(r"\]\(([^)]+)\)", README) if "://" not in link]
    assert len(links) > 15
    assert [link for link in links if not (ROOT / link).exists()] == []
    assert {Path(link).stem for link in links if "/topics/" in link} == set(topics())


def test_its_commands_parse() -> None:
    lines = [line for line in README.splitlines() if line.startswith("    cockpit ")]
    assert len(lines) > 5
    for line in lines:
        words = [word for word in shlex.split(line, comments=True)[1:] if not word.startswith(">")]
        make_parser().parse_args(joined(words))
    named = set(re.findall(r"^\| `cockpit ([a-z]+)", README, re.MULTILINE))
    commands = make_parser()._subparsers._group_actions[0].choices  # type: ignore[union-attr]
    assert named | {"start"} == set(commands)  # type: ignore[arg-type]
