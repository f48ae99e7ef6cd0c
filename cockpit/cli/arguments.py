"""The command line: every command with its flags."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from cockpit import __version__
from cockpit.cli.appearance_options import add_appearance
from cockpit.cli.load_arguments import SSH_CONFIG, add_ab, add_load, add_trust
from cockpit.cli.pages import GROUPS, RECORDINGS, START, add_command, overview
from cockpit.cli.parser import CommandParser
from cockpit.cli.result_arguments import add_baseline, add_check, add_compare, add_export, add_report
from cockpit.cli.tune_arguments import add_tune
from cockpit.cli.values import age, count, positive, recording, seconds

PROFILE = "a profile: its name, or a path such as ./x.toml"
# The function of a command, if it is not called like the command.
_FUNCTIONS = {"help": "help_topic"}


class MainParser(CommandParser):
    """Parse the whole command line; its help lists the commands by group."""

    def format_help(self) -> str:
        return overview()


def make_parser() -> MainParser:
    """Make the parser of the whole command line; `options.command(options)` runs the chosen command."""
    parser = MainParser(prog="cockpit")
    parser.add_argument("--version", action="version", version=f"cockpit {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, dest="subcommand", parser_class=CommandParser)
    for pages in ({"start": START}, *GROUPS.values()):
        for name, page in pages.items():
            command = add_command(commands, name, page)
            _FLAGS[name](command)
            command.set_defaults(command=_lazy(f"cockpit.cli.{name}", _FUNCTIONS.get(name, name)))
    return parser


def _add_start(parser: CommandParser) -> None:
    parser.add_argument("--ssh-config", type=Path, metavar="FILE", help=SSH_CONFIG)
    add_appearance(parser)


def _add_run(parser: CommandParser) -> None:
    add_load(
        parser,
        target="PROFILE|URL",
        about="a profile (its name, or a path such as ./x.toml) or http://...",
        record="record to a new FILE (default: to ~/.local/state/cockpit/recordings)",
    )
    add = parser.add_argument
    add("--no-tui", action="store_true", help="no screen: progress on stderr, a summary on stdout")
    add("--no-record", action="store_true", help="do not record")
    add_appearance(parser)


def _add_check(parser: CommandParser) -> None:
    add_load(
        parser,
        target="PROFILE|URL|RECORDING",
        about="a profile (its name, or a path such as ./x.toml), http://..., or a recording (FILE#2: its second run)",
        record="record to a new FILE (default: not recorded)",
    )
    add_check(parser)


def _add_study(parser: CommandParser) -> None:
    parser.add_argument("profile", metavar="PROFILE", help=f"with a [study]; {PROFILE}")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--short", action="store_true", help="short form: minutes, to try it out")
    form.add_argument("--full", dest="short", action="store_false", help="full form (default)")
    again = parser.add_mutually_exclusive_group()
    again.add_argument("--resume", action="store_true", help="continue an unfinished study; fail if there is none")
    again.add_argument("--fresh", action="store_true", help="start a new study, even if one is unfinished")
    add = parser.add_argument
    add("--seed", type=count, metavar="N", help="seed of the random order (default: a new one)")
    add(
        "--dry-run",
        action="store_true",
        help="print the plan, its duration and minimum detectable effect, change nothing",
    )
    add("--json", action="store_true", help="print the result as JSON, show no screen")
    add("-o", "--output", type=Path, metavar="DIR", help="recordings and results (default studies/PROFILE-FORM-N)")
    add("--no-tui", action="store_true", help="no screen: progress on stderr, the result on stdout")
    add_trust(parser)
    add("--ssh-config", type=Path, metavar="FILE", help=SSH_CONFIG)
    add_appearance(parser)


def _add_replay(parser: CommandParser) -> None:
    add = parser.add_argument
    add("file", type=recording, metavar="FILE|NAME", help="a file, or a name in `cockpit recordings list`")
    add("--at", default="0", metavar="T", help="start at T: 90s, +2m, -30s (from the end) or 14:05 (default 0)")
    add("--paused", action="store_true", help="start paused")
    add_appearance(parser, hangup=False)


def _add_recordings(parser: CommandParser) -> None:
    actions = parser.add_subparsers(metavar="SUBCOMMAND", required=True, dest="action", prog=parser.prog)
    commands = {name: add_command(actions, name, page) for name, page in RECORDINGS.items()}
    commands["list"].add_argument("--json", action="store_true", help="print JSON")
    commands["rename"].add_argument("name", metavar="NAME")
    commands["rename"].add_argument("new", metavar="NEW")
    commands["delete"].add_argument("names", metavar="NAME", nargs="+")
    add = commands["prune"].add_argument
    add("--keep", type=count, metavar="N", help="keep the N newest")
    add("--older", type=age, metavar="T", help="delete those older than T, e.g. 12h, 30d")
    add("--dry-run", action="store_true", help="only list them")


def _add_new(parser: CommandParser) -> None:
    add = parser.add_argument
    add("url", metavar="URL", help="URL to load")
    add(
        "--host",
        action="append",
        default=[],
        metavar="SSH",
        help="user@host or an ssh alias; . is this machine; may be repeated",
    )
    add("-c", "--concurrency", type=positive, default=20, metavar="N", help="connections (default 20)")
    add("-z", "--duration", type=seconds, default=30.0, metavar="T", help="duration of a run (default 30s)")
    add(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="profile to write (default: in ./profiles if it exists, else ~/.config/cockpit/profiles)",
    )
    add("--force", action="store_true", help="replace FILE if it exists")
    add("--ssh-config", type=Path, metavar="FILE", help=SSH_CONFIG)


def _add_doctor(parser: CommandParser) -> None:
    add = parser.add_argument
    add("profile", metavar="PROFILE|URL", help=f"{PROFILE}, or http://...")
    add("--ssh-config", type=Path, metavar="FILE", help=SSH_CONFIG)
    add("--json", action="store_true", help="print the findings as JSON")
    add("--no-exec", action="store_true", help="list the profile's commands, run none of them")
    add_trust(parser)


def _add_demo(parser: CommandParser) -> None:
    add = parser.add_argument
    add(
        "--record",
        type=Path,
        metavar="FILE",
        help="record to a new FILE (default: to ~/.local/state/cockpit/recordings)",
    )
    add("--no-record", action="store_true", help="do not record")
    add_appearance(parser)


def _add_schema(parser: CommandParser) -> None:
    parser.add_argument("of", choices=("run", "check", "compare", "study", "profile"))


def _add_completion(parser: CommandParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))


def _add_help(parser: CommandParser) -> None:
    parser.add_argument("topic", nargs="?", metavar="TOPIC", help="a topic or a command (default: list the topics)")


_FLAGS: dict[str, Callable[[CommandParser], None]] = {
    "start": _add_start,
    "run": _add_run,
    "check": _add_check,
    "ab": add_ab,
    "tune": add_tune,
    "study": _add_study,
    "replay": _add_replay,
    "compare": add_compare,
    "report": add_report,
    "export": add_export,
    "recordings": _add_recordings,
    "baseline": add_baseline,
    "new": _add_new,
    "doctor": _add_doctor,
    "demo": _add_demo,
    "schema": _add_schema,
    "completion": _add_completion,
    "help": _add_help,
}


def _lazy(module: str, name: str) -> Callable[[argparse.Namespace], int]:
    """Return a function that imports the command when it is called, so that no command pays for another."""

    def command(options: argparse.Namespace) -> int:
        function: Callable[[argparse.Namespace], int] = getattr(import_module(module), name)
        return function(options)

    return command
