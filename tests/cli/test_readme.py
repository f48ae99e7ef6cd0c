"""What the README shows is there: its links, its commands, its queries."""

from __future__ import annotations

import re
import shlex
import sqlite3
from pathlib import Path

import pytest

from cockpit.cli.arguments import joined, make_parser
from cockpit.cli.help_topics import topics
from tests.recording.test_pages import settled
from tests.session.events import small_session

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


def test_its_queries_find_something(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settled(tmp_path / "s.cockpit", list(small_session()), monkeypatch)
    database = sqlite3.connect(tmp_path / "s.cockpit")
    queries = re.findall(r'^    sqlite3 s\.cockpit "(.*)"$', README, re.MULTILINE)
    assert len(queries) == 5
    for query in queries:
        assert database.execute(query.replace("BETWEEN 60 AND 90", "BETWEEN 5 AND 9")).fetchall(), query
    tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    database.close()
    for name in tables:
        assert re.search(rf"^\|.*`{name}", README, re.MULTILINE), name
