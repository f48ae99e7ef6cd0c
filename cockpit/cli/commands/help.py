"""`cockpit help`: topics (Markdown files in `topics`, each with a title `# NAME: SUMMARY`), and flags of commands."""

from __future__ import annotations

import difflib
import re
import shutil
import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files

from cockpit.cli.arguments import make_parser
from cockpit.cli.export_formats import export_formats
from cockpit.cli.pager import page
from cockpit.cli.parser import CommandParser
from cockpit.cli.terminal import emit
from cockpit.metrics.catalogue import LATENCIES
from cockpit.metrics.margins import MARGIN, MARGINS
from cockpit.model.errors import EXIT_GOOD, UsageError
from cockpit.model.host.samples import INTERVAL
from cockpit.model.knobs import KNOB_KINDS, LIVE_KNOBS
from cockpit.model.load.options import LOAD_OPTIONS
from cockpit.model.text import sanitize
from cockpit.profiles.knobs import NEEDS
from cockpit.recording.pages import FREQUENT_KINDS
from cockpit.recording.schema import VERSION
from cockpit.servers import kernel, systemd
from cockpit.servers.kind import ServerKind, StatusPageKind
from cockpit.servers.registry import DIRECTIVES, KINDS, STATUS_PAGES
from cockpit.servers.settings import KnownSetting

_FOLDER = files("cockpit.cli") / "topics"
# Topic with all keys of a profile: a heading `## [target]` per table, rows `| `key` | meaning |`.
_KEYS = "profile"
_HEADING = re.compile(r"## \[{1,2}([a-z_.]+)\]{1,2}")
_TOP = "## At the top"
_ROW = re.compile(r"\| (`[^|]*`) \| (.*) \|")
# Maximum line width; longer lines are hard to read.
_MAX_WIDTH = 100


def help_topic(options: Namespace) -> int:
    """Print the list of topics, a topic, or a command's flags. Raises UsageError for an unknown name."""
    known, commands, name = topics(), dict(_commands(make_parser().commands)), " ".join(options.topic)
    if not name:
        width = max(map(len, known))
        lines = [f"  {name:<{width}}  {title}" for name, title in known.items()]
        emit("\n".join(["cockpit help TOPIC:", *lines, "", "cockpit COMMAND --help: a command's flags"]))
        return EXIT_GOOD
    if name not in known and name in commands:
        commands[name].print_help()
        return EXIT_GOOD
    if name not in known:
        raise UsageError(_unknown(name, list(known), list(commands)))
    if sys.stdout.isatty():
        _print_formatted(text(name))
    else:
        emit(text(name).rstrip("\n"))
    return EXIT_GOOD


def _commands(commands: Mapping[str, CommandParser]) -> Iterator[tuple[str, CommandParser]]:
    """Yield the commands, and the subcommands by names such as `tune set`."""
    for name, parser in commands.items():
        yield name, parser
        yield from ((f"{name} {each}", subcommand) for each, subcommand in parser.commands.items())


def _unknown(topic: str, known: list[str], commands: list[str]) -> str:
    near = difflib.get_close_matches(topic.lower(), [*known, *commands], n=1, cutoff=0.5)
    guess = f"did you mean {near[0]}? " if near else ""
    return f"{sanitize(topic)!r}: unknown topic; {guess}topics: {', '.join(known)}; or a command"


def _print_formatted(markdown: str) -> None:
    from rich.console import Console
    from rich.markdown import Markdown
    from rich.theme import Theme

    # Rich's colours suit dark terminals only; weight is readable on all.
    plain = {
        "markdown.code": "bold",
        "markdown.h2": "bold underline",
        "markdown.table.header": "dim",
        "markdown.table.border": "dim",
    }
    console = Console(width=min(_MAX_WIDTH, shutil.get_terminal_size().columns), theme=Theme(plain))
    with console.capture() as laid_out:
        console.print(Markdown(markdown, code_theme="ansi_dark"))
    page(laid_out.get())


def topics() -> dict[str, str]:
    names = sorted(file.name.removesuffix(".md") for file in _FOLDER.iterdir() if file.name.endswith(".md"))
    return {name: text(name).partition("\n")[0].partition(": ")[2] for name in names}


def text(topic: str) -> str:
    """Return the text of a topic. Raises FileNotFoundError."""
    markdown = (_FOLDER / f"{topic}.md").read_text(encoding="utf-8")
    for name, words in _placeholders():
        markdown = markdown.replace(name, words)
    return markdown


def _placeholders() -> Iterator[tuple[str, str]]:
    """Yield the lists of server kinds for the placeholders in topics."""
    yield "{status pages}", "\n".join(map(_status_row, STATUS_PAGES.values()))
    yield (
        "{known settings}",
        "\n\n".join(
            _settings(name, table)
            for name, table in (
                *((kind.name, {**kind.keys, **kind.settings} or _at_start(kind)) for kind in KINDS),
                ("kernel", kernel.SETTINGS),
                ("systemd", systemd.SETTINGS),
            )
            if table
        ),
    )
    yield "{export formats}", "\n".join(f"    {form.example}" for form in export_formats().values())
    yield "{shown settings}", "\n".join(_shown_rows())
    yield "{kinds of status pages}", _alternatives(STATUS_PAGES)
    yield "{kinds of knobs}", _alternatives(KNOB_KINDS)
    yield "{load options}", "\n".join(f"| `{option.name}` | {option.meaning} |" for option in LOAD_OPTIONS.values())
    for key in ("key", "mount"):
        yield f"{{kinds with {key}}}", ", ".join(kind for kind, keys in NEEDS.items() if key in keys)
    yield (
        "{live knobs}",
        "\n".join(f"| `{kind.name}` | {kind.setting} | {kind.keys} |" for kind in LIVE_KNOBS.values()),
    )
    yield "{latencies}", "\n".join(f"  - `{name}.pNN`: {words}" for name, words in LATENCIES.items())
    yield "{interval}", f"{INTERVAL:g}"
    yield "{recording format}", str(VERSION)
    yield "{packed events}", ", ".join(f"`{kind}`" for kind in FREQUENT_KINDS)
    yield "{margin}", f"{100 * MARGIN:g}%"
    for name, margin in MARGINS.items():
        yield f"{{margin of {name}}}", f"{100 * margin:g}{' points' if name == 'errors' else '%'}"
    yield "{kinds of directives}", ", ".join(DIRECTIVES)
    yield "{kinds of directives, as code}", " ".join(f"`{kind}`" for kind in DIRECTIVES)


def _at_start(kind: ServerKind) -> dict[str, KnownSetting]:
    return {", ".join(filter(None, (start.variable, *start.options))): start.setting for start in kind.at_start}


def _status_row(page: StatusPageKind) -> str:
    groups = [[f"`.{name}`" for name in names] for names in (page.means, page.rates) if names]
    groups[0][0] = f"`{page.name}{groups[0][0].strip('`')}`"
    return f"| `{page.name}` | `{page.url}` | {' · '.join(' '.join(group) for group in groups)} |"


def _settings(kind: str, table: Mapping[str, KnownSetting]) -> str:
    rows = [f"| `{name}` | {known.help} | {known.form.words} | {known.impact} |" for name, known in table.items()]
    head = "| setting | effect, and when it matters | value | needs |"
    return "\n".join((f"## {kind}\n", head, "|---|---|---|---|", *rows))


def _shown_rows() -> Iterator[str]:
    """Yield a row per source of values in running servers, with the settings that it shows."""
    for kind in KINDS:
        names: dict[str, list[str]] = {}
        for name, known in kind.settings.items():
            if known.shown:
                names.setdefault(known.shown.source, []).append(f"`{name}`")
        yield from (f"| {kind.name} | {' '.join(shown)} | {source} |" for source, shown in names.items())


def _alternatives(names: Iterable[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} or {last}"


def profile_keys() -> Iterator[tuple[str, str, str]]:
    """Yield (table, key, meaning) of every key in the topic `profile`; the top-level table is ""."""
    table: str | None = None
    for line in text(_KEYS).splitlines():
        heading = _HEADING.fullmatch(line)
        if line.startswith("## "):
            table = heading[1] if heading else "" if line == _TOP else None
        row = _ROW.fullmatch(line)
        if row and table is not None:
            for key in re.findall(r"`([^`]+)`", row[1]):
                yield table, key, row[2].replace("`", "")
