"""Pages of the site: help topics, pages made from `cockpit --spec`, the profiles, and the pages of this folder."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from html import escape
from pathlib import Path
from textwrap import indent

import msgspec

from cockpit.cli.commands.help import text, topics
from cockpit.cli.spec import ArgumentSpec, CommandSpec, SpecJson, spec_json
from docs.flow import drawing

HERE = Path(__file__).parent
PROFILES = HERE.parent / "profiles" / "README.md"
_NAMED_TOPIC = re.compile(r"(?<!\[)`(?:cockpit )?help ([a-z-]+)`")
_CAST = re.compile(r"\{cast ([a-z-]+)\}")
# The player's files are loaded by the pages that have a cast. The scripts run in the order of the page.
_PLAYER = (
    '<link rel="stylesheet" href="player/asciinema-player.css"><script src="player/asciinema-player.min.js"></script>'
)
_KINDS = {
    "run": ("Of a run", "In thresholds, reports and comparisons."),
    "second": ("Of a second of load", "In CSV, Parquet and OpenMetrics."),
    "sample": ("Of a sample of a host", "In thresholds after the name of the host: `web1.cpu.user < 80`."),
}


def write_pages(folder: Path) -> None:
    """Write all pages, as Markdown, and the style sheet into a new folder."""
    folder.mkdir()
    known = topics()
    for name in known:
        (folder / f"{name}.md").write_text(_linked(text(name), known), encoding="utf-8")
    for source in HERE.glob("*.md"):
        (folder / source.name).write_text(_filled(source.read_text(encoding="utf-8")), encoding="utf-8")
    (folder / "extra.css").write_bytes((HERE / "extra.css").read_bytes())
    for name, page in _made():
        (folder / name).write_text(_linked(page, known), encoding="utf-8")


def casts() -> set[str]:
    """Return the names of the casts that the pages of this folder show."""
    return {name for source in HERE.glob("*.md") for name in _CAST.findall(source.read_text(encoding="utf-8"))}


def _made() -> Iterator[tuple[str, str]]:
    spec = msgspec.json.decode(spec_json(), type=SpecJson)
    yield "commands.md", "\n".join(_commands(spec))
    yield "metric-list.md", "\n".join(_metrics(spec))
    yield "exit-code-list.md", "\n".join(_exits(spec))
    yield "shipped-profiles.md", PROFILES.read_text(encoding="utf-8").replace("<details>", '<details markdown="1">')


def _linked(markdown: str, known: Collection[str]) -> str:
    """Return Markdown in which the `known` topics are links, and lists are written as the generator expects them."""
    # A list after a paragraph needs an empty line, a nested list four spaces.
    markdown = re.sub(r"^(?![- \n])(.+)\n(?=- )", r"\1\n\n", markdown, flags=re.MULTILINE)
    markdown = re.sub(r"^  - ", "    - ", markdown, flags=re.MULTILINE)

    def link(match: re.Match[str]) -> str:
        return f"[{match[0]}]({match[1]}.md)" if match[1] in known else match[0]

    lines = (line if re.match(" {4}(?!- )", line) else _NAMED_TOPIC.sub(link, line) for line in markdown.split("\n"))
    return "\n".join(lines)


def _filled(markdown: str) -> str:
    """Return Markdown with the diagram and the casts in place of `{flow}` and `{cast NAME}`."""
    player = "" if "{cast " not in markdown else f"{_PLAYER}\n"
    casts = _CAST.sub(r'<div class="cast"><script src="casts/\1.js"></script></div>', markdown)
    return player + casts.replace("{flow}", drawing())


def _commands(spec: SpecJson) -> Iterator[str]:
    yield "# Commands and flags\n\nAs `cockpit COMMAND --help` shows them; `cockpit --spec` prints them as JSON.\n"
    for command in spec.commands:
        yield f"## cockpit {command.name}\n\n{_plain(command.description)}\n"
        yield indent(command.usage, " " * 4)
        if command.examples:
            yield f"\n<!-- -->\n\n{indent(command.examples, ' ' * 4)}"
        if command.arguments:
            yield "\n| argument | meaning |\n|---|---|"
            yield from map(_argument, command.arguments)
        yield f"\n{' · '.join(_ends(command))}\n"


def _argument(argument: ArgumentSpec) -> str:
    value = "|".join(argument.choices) or argument.value
    after = f" {value}" if value and argument.names[0].startswith("-") else ""
    return f"| {' '.join(f'`{name}{after}`' for name in argument.names)} | {_plain(argument.help)} |"


def _ends(command: CommandSpec) -> Iterator[str]:
    yield f"[exit codes](exit-code-list.md): {', '.join(map(str, command.exits))}"
    if command.json_schema:
        yield f"`--json`: `cockpit schema {command.json_schema}`"
    if command.topics:
        yield f"learn more: {', '.join(f'[{name}]({name}.md)' for name in command.topics)}"


def _metrics(spec: SpecJson) -> Iterator[str]:
    yield "# List of metrics\n\nHow they are measured, and their limits: `cockpit help metrics`."
    for kind, (title, use) in _KINDS.items():
        yield f"\n## {title}\n\n{use}\n\n| metric | unit | definition |\n|---|---|---|"
        rows = (metric for metric in spec.metrics if metric.of == kind)
        yield from (f"| `{metric.name}` | {_plain(metric.unit)} | {_plain(metric.help)} |" for metric in rows)
    yield "\n## Latencies\n\nEach with percentiles (`service.p99`), `mean` and `max`.\n"
    yield "| latency | definition |\n|---|---|"
    yield from (f"| `{name}` | {_plain(words)} |" for name, words in spec.latencies.items())


def _exits(spec: SpecJson) -> Iterator[str]:
    yield "# Exit codes by command\n\nThe same number has the same meaning everywhere: `cockpit help exit-codes`.\n"
    yield "| exit | meaning | commands |\n|---|---|---|"
    for code, words in spec.exits.items():
        named = [command.name for command in spec.commands if code in command.exits]
        yield f"| {code} | {_plain(words)} | {'all' if len(named) == len(spec.commands) else ', '.join(named)} |"


def _plain(text: str) -> str:
    """Return text without a meaning in Markdown, HTML or tables."""
    return re.sub(r"([\\*_\[\]|])", r"\\\1", escape(text, quote=False))
