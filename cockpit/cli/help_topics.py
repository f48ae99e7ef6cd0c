"""The topics of `cockpit help`: Markdown files in `topics`, each with a title `# NAME: SUMMARY`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from importlib.resources import files

from cockpit.model.knobs import KNOB_KINDS
from cockpit.servers.kind import StatusPageKind
from cockpit.servers.registry import DIRECTIVES, STATUS_PAGES

_FOLDER = files("cockpit.cli") / "topics"
# The topic with every key of a profile: a heading `## [target]` per table, rows `| `key` | meaning |`.
_KEYS = "profile"
_HEADING = re.compile(r"## \[{1,2}([a-z_.]+)\]{1,2}")
_TOP = "## At the top"
_ROW = re.compile(r"\| (`[^|]*`) \| (.*) \|")


def topics() -> dict[str, str]:
    """Return the summary of each topic by name."""
    names = sorted(file.name.removesuffix(".md") for file in _FOLDER.iterdir() if file.name.endswith(".md"))
    return {name: text(name).partition("\n")[0].partition(": ")[2] for name in names}


def text(topic: str) -> str:
    """Raises FileNotFoundError."""
    found = (_FOLDER / f"{topic}.md").read_text(encoding="utf-8")
    for name, words in _lists():
        found = found.replace(name, words)
    return found


def _lists() -> Iterator[tuple[str, str]]:
    """The parts of topics that list kinds of servers."""
    yield "{status pages}", "\n".join(map(_status_row, STATUS_PAGES.values()))
    yield "{kinds of status pages}", _any_of(STATUS_PAGES)
    yield "{kinds of knobs}", _any_of(KNOB_KINDS)
    yield "{kinds of directives}", ", ".join(DIRECTIVES)
    yield "{kinds of directives, as code}", " ".join(f"`{kind}`" for kind in DIRECTIVES)


def _status_row(page: StatusPageKind) -> str:
    groups = [[f"`.{name}`" for name in names] for names in (page.means, page.rates) if names]
    groups[0][0] = f"`{page.name}{groups[0][0].strip('`')}`"
    return f"| `{page.name}` | `{page.url}` | {' · '.join(' '.join(group) for group in groups)} |"


def _any_of(names: Iterable[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} or {last}"


def profile_keys() -> Iterator[tuple[str, str, str]]:
    """Yield (table, key, meaning) of every key in the topic `profile`; the table of top-level keys is "", of others as
    in `study.arm`."""
    table: str | None = None
    for line in text(_KEYS).splitlines():
        heading = _HEADING.fullmatch(line)
        if line.startswith("## "):
            table = heading[1] if heading else "" if line == _TOP else None
        row = _ROW.fullmatch(line)
        if row and table is not None:
            for key in re.findall(r"`([^`]+)`", row[1]):
                yield table, key, row[2].replace("`", "")
