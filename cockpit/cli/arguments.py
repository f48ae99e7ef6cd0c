"""The command line: every command with its flags."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from cockpit import __version__
from cockpit.cli.appearance_options import add_appearance
from cockpit.cli.export_formats import EXPORT_FORMATS, takers
from cockpit.cli.load_arguments import add_ab, add_load, add_ssh_config, add_trust
from cockpit.cli.pages import BASELINE, GROUPS, RECORDINGS, START, TUNE, add_command, overview
from cockpit.cli.parser import CommandParser
from cockpit.cli.values import age, count, named_file, port, positive, recording, seconds, utc_offset

PROFILE = "a profile: its name, or a path such as ./x.toml"
_RECORD = "record to a new FILE (default: to ~/.local/state/cockpit/recordings)"
_SIDE = "FILE, FILE#2 (its second run), FILE@10s..60s or FILE@14:05..14:10 (a time range)"
# Functions with another name than their command, and modules.
_FUNCTIONS = {"help": "help_topic", "import": "import_results"}
_MODULES = {"import": "import_results"}


class MainParser(CommandParser):
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
            command.set_defaults(command=_lazy(f"cockpit.cli.{_MODULES.get(name, name)}", _FUNCTIONS.get(name, name)))
    return parser


def _add_start(parser: CommandParser) -> None:
    add_ssh_config(parser.add_argument)
    add_appearance(parser)


def _add_run(parser: CommandParser) -> None:
    add_load(
        parser,
        target="PROFILE|URL",
        about="a profile (its name, or a path such as ./x.toml), or a URL (http:// may be left out of host:port)",
        record=_RECORD,
    )
    add = parser.add_argument
    add("--no-tui", action="store_true", help="no screen: progress on stderr, a summary on stdout")
    add("--no-record", action="store_true", help="do not record")
    add("--ndjson", action="store_true", help="no screen: JSON lines on stdout, one per second, change and marker")
    add("--prometheus", type=port, metavar="PORT", help="serve metrics for Prometheus on 127.0.0.1:PORT (0: any)")
    add("--annotate", metavar="URL", help="send markers to Grafana: https://HOST/api/annotations")
    add_appearance(parser)


def _add_check(parser: CommandParser) -> None:
    add_load(
        parser,
        target="PROFILE|URL|RECORDING",
        about="a profile (its name, or a path such as ./x.toml), a URL, or a recording (FILE#2: its second run)",
        record="record to a new FILE (default: not recorded)",
    )
    _add_check_flags(parser)


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
    add_trust(add)
    add_appearance(parser)


def _add_autopilot(parser: CommandParser) -> None:
    add = parser.add_argument
    add("profile", metavar="PROFILE", help=f"with knobs; {PROFILE}")
    goal = parser.add_mutually_exclusive_group()
    goal.add_argument("--maximize", choices=("rate",), help="search the largest (default for closed load)")
    goal.add_argument("--minimize", choices=("p50", "p99"), help="search the least (default for open load: p99)")
    add("--where", action="append", default=[], metavar="EXPR", help="a constraint, as 'p99 < 20ms'; can be repeated")
    add(
        "--knob",
        action="append",
        default=[],
        metavar="NAME[=VALUES]",
        help="a knob to search, with a range 5..400 or a list 5,10,20; can be repeated (default: all of the profile)",
    )
    add("--budget", type=seconds, default=1800.0, metavar="TIME", help="maximum time, the proof included (default 30m)")
    add("--seconds", type=seconds, default=20.0, metavar="TIME", help="load per evaluation, at least (default 20s)")
    add("--seed", type=count, metavar="N", help="seed of the first points (default: a new one)")
    add("--no-restart", action="store_true", help="leave out knobs that restart their server")
    add("--apply", action="store_true", help="keep the settings that were proved (default: the original ones)")
    add("--ask", action="store_true", help="ask before each evaluation")
    add(
        "--diagnose",
        action="store_true",
        help="only measure what limits the server, and name the knobs that bear on it",
    )
    add("--json", action="store_true", help="print the result as JSON, show no screen")
    add("--no-tui", action="store_true", help="no screen: a line per evaluation on stderr, the claim on stdout")
    add("--record", type=Path, metavar="FILE", help=_RECORD)
    add_trust(add)
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
    add("--older", type=age, metavar="T", help="delete recordings older than T, e.g. 12h, 30d")
    add("--dry-run", action="store_true", help="only list them")


def _add_new(parser: CommandParser) -> None:
    add = parser.add_argument
    add("url", metavar="URL", help="URL to load")
    add(
        "--host",
        action="append",
        default=[],
        metavar="HOST",
        help="user@host or an ssh alias, docker:NAME, or both: user@host/docker:NAME; . is this machine; "
        "may be repeated",
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
    add_ssh_config(add)


def _add_doctor(parser: CommandParser) -> None:
    add = parser.add_argument
    add("profile", metavar="PROFILE|URL", help=f"{PROFILE}, or a URL")
    add("--json", action="store_true", help="print the findings as JSON")
    add("--no-exec", action="store_true", help="list the profile's commands, run none of them")
    add_trust(add)


def _add_demo(parser: CommandParser) -> None:
    add = parser.add_argument
    add("--record", type=Path, metavar="FILE", help=_RECORD)
    add("--no-record", action="store_true", help="do not record")
    add_appearance(parser)


def _add_schema(parser: CommandParser) -> None:
    parser.add_argument("of", choices=("run", "ndjson", "check", "compare", "study", "profile"))


def _add_completion(parser: CommandParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "fish"))


def _add_help(parser: CommandParser) -> None:
    parser.add_argument("topic", nargs="?", metavar="TOPIC", help="a topic or a command (default: list the topics)")


def _add_check_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("check").add_argument
    expression: dict[str, Any] = {"metavar": "EXPR", "action": "append", "default": []}
    add("--threshold", help="e.g. 'p99 < 50ms' or 'rate >= 95%% of baseline'; may be repeated", **expression)
    add("--abort-on", help="a threshold that also ends the run as soon as it fails", **expression)
    add("--baseline", metavar="NAME", help="baseline to compare with; see cockpit baseline")
    add("--anyway", action="store_true", help="compare with a baseline of another load")
    add("--steady", action="store_true", help="exit 4 if the rate is unstable")
    add("--cap", type=seconds, metavar="T", help="end the load after T (default 15s if it has no duration)")
    add("--quick", action="store_true", help="one run of 15s, compared with the last baseline of the same load")
    add("--runs", type=positive, metavar="N", help="number of runs; of a recording the last N (default 1)")
    add("--save-baseline", metavar="NAME", help="save the runs as a baseline")
    add("--add-to-baseline", metavar="NAME", help="add the runs to a baseline, or make it")
    add("--junit", type=Path, metavar="FILE", help="write the result as JUnit XML")


def _add_compare(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("before", metavar="BEFORE", help=_SIDE)
    add("after", metavar="AFTER", help="likewise; FILE alone means all its runs, if they are repeats of one load")
    add("--anyway", action="store_true", help="compare even if the loads differ")
    add("--json", action="store_true", help="print the comparison as JSON")


def _add_baseline(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(metavar="SUBCOMMAND", required=True, dest="action", prog=parser.prog)
    commands = {name: add_command(actions, name, page) for name, page in BASELINE.items()}
    for name in ("set", "add"):
        add = commands[name].add_argument
        add("name", metavar="NAME")
        add("recording", nargs="+", metavar="RECORDING", help="a recording (its last run), or FILE#2")
        add("--runs", type=positive, default=1, metavar="N", help="the last N runs of each recording (default 1)")
    for name in ("show", "delete"):
        commands[name].add_argument("name", metavar="NAME")
    for name in ("show", "list"):
        commands[name].add_argument("--json", action="store_true", help="print JSON")


def _add_report(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "file",
        type=recording,
        metavar="FILE|NAME|DIR",
        help="a file, a name in `cockpit recordings list`, or a study's directory",
    )
    add("-o", "--output", type=Path, metavar="FILE", help="write to FILE (default: stdout)")
    formats = ("text", "md", "json", "html", "csv", "verdicts-csv")
    add(
        "--format",
        choices=formats,
        help="default: by the suffix of -o, else text; csv (one line per run and metric) and verdicts-csv (one line "
        "per comparison and metric) are for studies",
    )
    add("--json", action="store_true", help="the same as --format json: a list with one entry per run")


def _add_export(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("file", metavar="FILE", help=f"a recording; for {takers('run')} FILE#2 is its second run")
    add("--format", choices=tuple(EXPORT_FORMATS), help="default: by the suffix of -o")
    add("-o", "--output", type=Path, metavar="FILE", help="write to FILE (default: stdout)")
    add("--at", metavar="T", help="svg: instant (default: the end); cast: start; e.g. 90s, -30s, 14:05")
    add("--until", metavar="T", help=f"{takers('until')}: end (default: the end of the recording)")
    add(
        "--every",
        type=seconds,
        default=1.0,
        metavar="T",
        help=f"{takers('every')}: session time between frames (default 1s)",
    )
    add("--size", default="120x40", metavar="COLSxROWS", help=f"{takers('size')}: size of the screen (default 120x40)")
    add(
        "--keys",
        default="",
        metavar="LIST",
        help=f"{takers('keys')}: keys to press first, as Textual names them: p,s,down",
    )


def _add_import(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("file", type=Path, metavar="FILE", help="a result of a load generator, an HdrHistogram log, sadf -j or sar")
    add("-o", "--output", type=Path, metavar="FILE", help="record into a new FILE (default: into the library)")
    add(
        "--host",
        action="append",
        default=[],
        type=named_file,
        metavar="NAME=FILE",
        help="samples of a host during the load, from sadf -j or sar; can be repeated",
    )
    add("--start", metavar="TIME", help="when the load began, if FILE does not say: 2026-11-24T14:05:00Z")
    add(
        "--utc-offset",
        type=utc_offset,
        default=0.0,
        metavar="+HH:MM",
        help="text of sar: offset of its times from UTC (default +00:00)",
    )
    add("--unit", choices=("ns", "us", "ms"), default="ns", help="unit of an HdrHistogram log (default ns)")
    add("--tag", metavar="TAG", help="lines of an HdrHistogram log to import (default: those without a tag)")
    add("--target", dest="url", metavar="URL", help="what was loaded, if the file does not say")
    add("-c", "--concurrency", type=positive, metavar="N", help="connections used (default: the most that overlap)")


def _add_tune(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("profile", metavar="PROFILE", help=PROFILE)
    _add_shared(parser)
    actions = parser.add_subparsers(metavar="SUBCOMMAND", required=True, dest="action", prog=f"{parser.prog} PROFILE")
    commands = {name: add_command(actions, name, page) for name, page in TUNE.items()}
    for command in commands.values():
        _add_shared(command, default=argparse.SUPPRESS)

    commands["show"].add_argument("names", nargs="*", metavar="NAME", help="knobs (default: all)")

    add = commands["set"].add_argument
    add("names", nargs="+", metavar="NAME=VALUE", help="knobs and new values; several are one change")
    add("--dry-run", action="store_true", help="print the diff and its cost, change nothing")
    add("--confirm-within", type=seconds, metavar="T", help="roll back unless y is typed within T, e.g. 60s")
    _add_probe(commands["set"])

    add = commands["undo"].add_argument
    add("change", nargs="?", metavar="CHANGE", help="name from `history` (default: the newest that is applied)")
    _add_probe(commands["undo"])

    add = commands["rounds"].add_argument
    add("names", nargs="+", metavar="NAME=VALUE", help="knobs and new values")
    add("--rounds", type=positive, default=12, metavar="N", help="rounds at most, 4 to 50 (default 12)")
    add("--seconds", type=seconds, default=15.0, metavar="T", help="load per window, 15s or more (default 15s)")
    add("--seed", type=count, default=1, metavar="N", help="seed of the random order (default 1)")
    add("--mirrored", action="store_true", help="order A-B-B-A instead of a random one")
    add("--keep", action="store_true", help="keep the new values unless they are worse (default: the old ones)")
    add("--record", type=Path, metavar="FILE", help=_RECORD)
    add("--target", dest="url", metavar="URL", help="load this URL instead of the profile's")

    add = commands["action"].add_argument
    add("names", nargs="*", metavar="NAME", help="actions to run in this order (default: list all)")


def _add_shared(parser: argparse.ArgumentParser, **settings: Any) -> None:
    """Add the flags that may be given before and after the subcommand."""
    parser.add_argument("--json", action="store_true", help="print the result as JSON", **settings)
    add_trust(parser.add_argument, **settings)


def _add_probe(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--target", dest="url", metavar="URL", help="check the server with this URL instead of the profile's")
    add("--no-probe", action="store_true", help="send no requests to check the server before and after the change")


_FLAGS: dict[str, Callable[[CommandParser], None]] = {
    "start": _add_start,
    "run": _add_run,
    "check": _add_check,
    "ab": add_ab,
    "tune": _add_tune,
    "autopilot": _add_autopilot,
    "study": _add_study,
    "replay": _add_replay,
    "compare": _add_compare,
    "report": _add_report,
    "export": _add_export,
    "import": _add_import,
    "recordings": _add_recordings,
    "baseline": _add_baseline,
    "new": _add_new,
    "doctor": _add_doctor,
    "demo": _add_demo,
    "schema": _add_schema,
    "completion": _add_completion,
    "help": _add_help,
}


def _lazy(module: str, name: str) -> Callable[[argparse.Namespace], int]:
    """Return a function that imports the command when it is called."""

    def command(options: argparse.Namespace) -> int:
        function: Callable[[argparse.Namespace], int] = getattr(import_module(module), name)
        return function(options)

    return command
