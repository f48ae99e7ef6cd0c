"""Command-line parser: flags and names in any order, errors in one line, help pages with examples."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NoReturn

from cockpit.cli.flags import Flag, FlagTable, add_flags
from cockpit.model.errors import EXIT_USAGE
from cockpit.model.text import sanitize

if TYPE_CHECKING:
    from cockpit.cli.command_help import HelpPage

# Flags whose value may begin with a sign, and the start of such a value.
_TIME_FLAGS = ("--at", "--until")
_NEGATIVE = re.compile(r"-\d")
# What flags of wrk, hey, oha, k6, ab and curl are called here.
_ELSEWHERE = {
    **dict.fromkeys(("-t", "--threads"), "load processes are -w N, a time is -z 30s"),
    **dict.fromkeys(("--connections", "--vus", "-u"), "connections are -c N"),
    **dict.fromkeys(("--rps", "-R", "--qps"), "requests/s are -q R"),
    **dict.fromkeys(("-r", "--iterations", "-i"), "requests are -n N"),
    **dict.fromkeys(("--latency", "-L"), "percentiles are always shown"),
    **dict.fromkeys(("-k", "--keepalive"), "connections are kept alive; --insecure skips the certificate"),
    **dict.fromkeys(("-2", "--http2-prior-knowledge", "--h2"), "HTTP/2 is --http2"),
    "--http1.1": "HTTP/1.1 is the default",
    **dict.fromkeys(("-X", "--request"), "the method is -m M"),
    **dict.fromkeys(("-I", "--head"), "the method is -m HEAD"),
    **dict.fromkeys(("--body", "--data-binary", "--data-raw", "-b"), "the body is -d TEXT or -D FILE"),
    **dict.fromkeys(("-o", "--output", "--output-format"), "results are on stdout; as JSON with --json"),
    **dict.fromkeys(("-s", "--time-limit"), "the duration is -z T, a request's time limit --timeout T"),
    **dict.fromkeys(("-A", "-U", "--user-agent"), "a header is -H 'User-Agent: x'"),
    "--user": "basic authentication is -a USER:PASSWORD",
}
# Column at which the help of a flag starts.
_HELP_COLUMN = 28


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=_HELP_COLUMN)


class CommandParser(argparse.ArgumentParser):
    """A parser with one-line errors and without abbreviated flags. `commands`: subcommands by name; `flags`: entries of
    tables that were added, with their actions.

    `describe` returns description and epilog of the help page, which is made from `page`.
    """

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **{"allow_abbrev": False, "formatter_class": HelpFormatter, **settings})
        self.has_commands = False
        self.commands: dict[str, CommandParser] = {}
        self.flags: list[tuple[Flag, argparse.Action]] = []
        self.page: HelpPage | None = None
        self.describe: Callable[[], tuple[str, str]] | None = None
        self._parsing = False

    def format_help(self) -> str:
        if self.describe:
            self.description, self.epilog = self.describe()
        return super().format_help()

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse flags and names in any order. An error about an unknown flag names the command's help."""
        options, unknown = self.parse_known_args(args, namespace)
        if unknown:
            known = _ELSEWHERE if options.subcommand in ("run", "check") else {}
            words = "; ".join(f"{flag}: {known[flag]}" for flag in unknown if flag in known)
            words = words or f"unrecognized arguments: {' '.join(unknown)}"
            self._refuse(words, f"{self.prog} {options.subcommand}")
        return options

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse flags first, then names, because argparse ends a list of names at the first flag.

        Commands with subcommands, and arguments with `--`, are left to argparse; it would read the subcommand of
        `tune rounds --help` as a profile.
        """
        if args and args[0] in self.commands and args[1:] in (["-h"], ["--help"]):
            self.commands[args[0]].parse_args(args[1:])
        if self._parsing or self.has_commands or "--" in args:
            return super().parse_known_args(args, namespace)
        self._parsing = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._parsing = False

    def add_table(self, flags: FlagTable, **more: Any) -> None:
        """Add the flags of a table; `more`: further keyword arguments of `add_argument` for all of them."""
        self.flags += add_flags(self, flags, **more)

    def add_subparsers(self, **settings: Any) -> Any:
        self.has_commands = True
        added = super().add_subparsers(**settings)
        self.commands = added.choices
        return added

    def error(self, message: str) -> NoReturn:
        self._refuse(message, self.prog)

    def _refuse(self, message: str, prog: str) -> NoReturn:
        self.exit(EXIT_USAGE, f"cockpit: {sanitize(message)}; see {prog} --help\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        near = get_close_matches(str(value), [str(choice) for choice in action.choices or ()], 1, 0.5)
        if near and near[0] != value:
            raise argparse.ArgumentError(action, f"invalid choice: {value!r}; did you mean {near[0]}?")
        super()._check_value(action, value)


def join_time_values(arguments: Iterable[str]) -> list[str]:
    """Join `--at -30s` to `--at=-30s`, because argparse would parse -30s as a flag."""
    joined_texts: list[str] = []
    for text in arguments:
        if _NEGATIVE.match(text) and joined_texts and joined_texts[-1] in _TIME_FLAGS and "--" not in joined_texts:
            joined_texts[-1] += f"={text}"
        else:
            joined_texts.append(text)
    return joined_texts
