"""The command line as data: `cockpit --spec` for programs, `cockpit --man` for man.

Both are made from the parsers and pages that `--help` shows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from cockpit import __version__
from cockpit.cli.arguments import make_parser
from cockpit.cli.command_help import EXITS, SUMMARY, exit_codes, page_text
from cockpit.cli.commands.help import topics
from cockpit.cli.flags import Flag
from cockpit.cli.parser import CommandParser
from cockpit.metrics.catalogue import LATENCIES, SAMPLE_METRICS, SECOND_METRICS, entry
from cockpit.metrics.values import RUN_METRICS
from cockpit.report.encoding import to_json


class ArgumentSpec(msgspec.Struct, kw_only=True):
    """A flag with its `names`, or an argument with the name of its value. `value`: what it takes; null for a switch."""

    names: list[str]
    value: str | None
    choices: list[str]
    required: bool
    repeated: bool
    help: str


class CommandSpec(msgspec.Struct, kw_only=True):
    """A command, or a subcommand such as `tune set`. `exits`: its exit codes; `json_schema`: the argument of
    `cockpit schema` for the output of --json, null without --json."""

    name: str
    usage: str
    description: str
    examples: str
    arguments: list[ArgumentSpec]
    exits: list[int]
    topics: list[str]
    json_schema: str | None


class MetricSpec(msgspec.Struct, kw_only=True):
    """A metric. `of`: a run, a second of load, or a sample of a host, where thresholds prepend the host's name."""

    name: str
    of: str
    unit: str
    help: str


class SpecJson(msgspec.Struct, kw_only=True):
    version: str
    commands: list[CommandSpec]
    metrics: list[MetricSpec]
    latencies: dict[str, str]
    exits: dict[int, str]
    topics: dict[str, str]


def spec_json() -> str:
    """Return the commands, flags, metrics and exit codes as JSON (`cockpit schema spec`)."""
    known = SpecJson(
        version=__version__,
        commands=list(_commands(make_parser())),
        metrics=list(_metrics()),
        latencies=LATENCIES,
        exits=EXITS,
        topics=topics(),
    )
    return to_json(known)


def _commands(parser: CommandParser) -> Iterator[CommandSpec]:
    for child in parser.commands.values():
        if page := child.page:
            description, examples = page_text(page)
            arguments = [_argument(flag) for flag, _ in child.flags]
            # `tune --json` is for its subcommands.
            has_json = not child.commands and any("--json" in argument.names for argument in arguments)
            yield CommandSpec(
                name=page.name,
                usage=child.usage or "",
                description=description,
                examples=examples,
                arguments=arguments,
                exits=exit_codes(page.exits),
                topics=page.topics.split(),
                json_schema=page.name.replace(" ", "-") if has_json else None,
            )
        yield from _commands(child)


def _argument(flag: Flag) -> ArgumentSpec:
    return ArgumentSpec(
        names=flag.names.split() if flag.is_flag else [flag.value_name],
        value=flag.value_name if flag.takes_value else None,
        choices=list(flag.choices),
        required=not flag.is_flag and flag.nargs not in ("?", "*"),
        repeated=flag.many or flag.nargs in ("+", "*"),
        help=str(flag.settings()["help"] or "").replace("%%", "%"),
    )


def _metrics() -> Iterator[MetricSpec]:
    rows = [("run", entry(name)) for name in RUN_METRICS]
    rows += [("second", metric) for metric in SECOND_METRICS] + [("sample", metric) for metric in SAMPLE_METRICS]
    for of, metric in rows:
        yield MetricSpec(name=metric.name, of=of, unit=metric.unit.sign.strip(), help=metric.help)


def man_page() -> str:
    """Return the manual page cockpit(1) as roff."""
    commands = list(_commands(make_parser()))
    lines = [f'.TH COCKPIT 1 "" "cockpit {__version__}" "User Commands"', ".SH NAME"]
    lines += ["cockpit \\- a terminal cockpit for people who tune web servers", ".SH SYNOPSIS"]
    lines += [".B cockpit", "[COMMAND] [OPTIONS]", ".SH DESCRIPTION", _roff(SUMMARY), ".SH COMMANDS"]
    for command in commands:
        lines += [f".SS {_roff(command.usage)}", _roff(command.description)]
        for argument in command.arguments:
            value = f" {argument.value}" if argument.value and argument.names[0].startswith("-") else ""
            lines += [".TP", f".B {_roff(', '.join(argument.names) + value)}", _roff(argument.help)]
        if command.examples:
            lines += [".PP", "Examples:", ".PP", ".nf", _roff(command.examples), ".fi"]
    lines += [".SH EXIT STATUS", *(f".TP\n.B {code}\n{_roff(words)}" for code, words in EXITS.items())]
    lines += [".SH SEE ALSO", "Topics of", '.BR "cockpit help" :', _roff(", ".join(topics())) + "."]
    return "\n".join(lines) + "\n"


def _roff(text: str) -> str:
    """Return text as roff shows it: no line is a request, and hyphens can be copied."""
    return re.sub(r"^([.'])", r"\\&\1", text.replace("\\", "\\e").replace("-", "\\-"), flags=re.MULTILINE)
