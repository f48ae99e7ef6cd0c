"""Parser of the command line: all commands with their flags."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from cockpit import __version__
from cockpit.cli.command_flags import EVERY_TUNE, flags_of
from cockpit.cli.command_help import BASELINE, GROUPS, RECORDINGS, START, TUNE, add_command, overview
from cockpit.cli.parser import CommandParser
from cockpit.cli.terminal import emit, write_utf8

# Functions and modules that are not named like their command.
_FUNCTIONS = {"help": "help_topic", "import": "import_results"}
_MODULES = {"import": "import_results"}
_SUBCOMMANDS = {"recordings": RECORDINGS, "baseline": BASELINE, "tune": TUNE}


class _Printed(argparse.Action):
    """A flag that prints the command line in another form, and ends the program."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(nargs=0, **settings)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from cockpit.cli.spec import man_page, spec_json

        write_utf8()
        emit(man_page() if self.dest == "man" else spec_json())
        parser.exit()


class MainParser(CommandParser):
    def format_help(self) -> str:
        return overview()


def make_parser(command: str | None = None) -> MainParser:
    """Return the parser of the command line; `options.command(options)` runs the chosen command.

    Given `command`, the other commands have names only: all flags of all commands take 20 ms.
    """
    parser = MainParser(prog="cockpit")
    parser.add_argument("--version", action="version", version=f"cockpit {__version__}")
    parser.add_argument("--spec", action=_Printed)
    parser.add_argument("--man", action=_Printed)
    commands = parser.add_subparsers(metavar="COMMAND", required=True, dest="subcommand", parser_class=CommandParser)
    for pages in ({"start": START}, *GROUPS.values()):
        for name, page in pages.items():
            if command not in (name, None):
                commands.add_parser(name, help=page.summary, add_help=False)
                continue
            added = add_command(commands, name, page)
            added.add_table(flags_of(name))
            _add_subcommands(added, name)
            added.set_defaults(
                command=_lazy(f"cockpit.cli.commands.{_MODULES.get(name, name)}", _FUNCTIONS.get(name, name))
            )
    return parser


def _add_subcommands(parser: CommandParser, command: str) -> None:
    if command not in _SUBCOMMANDS:
        return
    prog = f"{parser.prog} PROFILE" if command == "tune" else parser.prog
    actions = parser.add_subparsers(metavar="SUBCOMMAND", required=True, dest="action", prog=prog)
    for name, page in _SUBCOMMANDS[command].items():
        added = add_command(actions, name, page)
        if command == "tune":
            added.add_table(EVERY_TUNE, default=argparse.SUPPRESS)
        added.add_table(flags_of(f"{command} {name}"))


def with_profile(arguments: Sequence[str]) -> list[str]:
    """Return `tune SUBCOMMAND --help` with a word in the place of the profile, so that the help is the subcommand's."""
    command, *rest = arguments
    asked = command == "tune" and rest[:1] and rest[0] in TUNE and rest[1:] in (["-h"], ["--help"])
    return [command, "PROFILE", *rest] if asked else [command, *rest]


def _lazy(module: str, name: str) -> Callable[[argparse.Namespace], int]:
    """Return a function that imports the command when it is called."""

    def command(options: argparse.Namespace) -> int:
        function: Callable[[argparse.Namespace], int] = getattr(import_module(module), name)
        return function(options)

    return command
