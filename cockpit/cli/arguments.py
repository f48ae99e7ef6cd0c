"""Flags. They mean what ab, wrk, hey and oha users expect wherever those agree."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from cockpit import __version__
from cockpit.cli.appearance_options import add_look
from cockpit.cli.result_arguments import add_baseline, add_check, add_compare, add_export, add_report
from cockpit.cli.values import age, count, cpus, positive, rate, recording, seconds, seed, statuses, wait, workers
from cockpit.model.errors import EXIT_USAGE
from cockpit.model.text import neutral

# Flags whose value may begin with a sign, and what such a value begins with.
_INSTANTS = ("--at", "--until")
_BEFORE = re.compile(r"-\d")

TUNE = ("list", "get", "set", "undo", "history", "actions", "do", "rounds")
EPILOG = """\
exit codes: 0 good · 1 a bug · 2 usage or profile · 3 target or host out of reach · 4 not steady ·
5 change undone · 99 threshold broken · 130 interrupted
"""


class CommandParser(argparse.ArgumentParser):
    """Parse a command line; `commands` are its commands by name. Flags are written in full; an error is one line."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **{"allow_abbrev": False, **settings})
        self.has_commands = False
        self.commands: dict[str, argparse.ArgumentParser] = {}
        self._parsing = False

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Flags and names in any order. For a flag that a command does not know, its own help is named."""
        options, unknown = self.parse_known_args(args, namespace)
        if unknown:
            self._refuse(f"unrecognized arguments: {' '.join(unknown)}", f"{self.prog} {options.subcommand}")
        return options

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse flags first, then names: by itself argparse takes a list of names only up to the first flag.

        That cannot be done for commands with commands of their own, nor after `--`, behind which all are names.
        """
        if self._parsing or self.has_commands or "--" in args:
            return super().parse_known_args(args, namespace)
        self._parsing = True
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self._parsing = False

    def add_subparsers(self, **settings: Any) -> Any:
        self.has_commands = True
        added = super().add_subparsers(**settings)
        self.commands = added.choices
        return added

    def error(self, message: str) -> NoReturn:
        self._refuse(message, self.prog)

    def _refuse(self, message: str, prog: str) -> NoReturn:
        self.exit(EXIT_USAGE, f"cockpit: {neutral(message)}; see {prog} --help\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """With the word that was probably meant, where there is one near it."""
        near = get_close_matches(str(value), [str(one) for one in action.choices or ()], 1, 0.5)
        if near and near[0] != value:
            raise argparse.ArgumentError(action, f"invalid choice: {value!r}; did you mean {near[0]}?")
        super()._check_value(action, value)


def make_parser() -> CommandParser:
    """The whole command line; `options.command(options)` carries the chosen command out."""
    parser = CommandParser(
        prog="cockpit",
        description="Load, servers and tuning on one screen.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"cockpit {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, dest="subcommand")

    start = commands.add_parser("start", help="profiles and recordings to open; what cockpit alone does")
    start.add_argument("--ssh-config", type=Path, metavar="FILE", help="as ssh -F: read this in place of ~/.ssh/config")
    add_look(start)
    start.set_defaults(command=_lazy("cockpit.cli.start", "start"))

    run = commands.add_parser("run", help="load a URL or a profile's target, with the screen on a terminal")
    _add_load(run)
    run.add_argument("--no-tui", action="store_true", help="no screen: progress on stderr, a summary on stdout")
    run.add_argument("--no-record", action="store_true", help="keep no recording (else one is; see cockpit recordings)")
    add_look(run)
    run.set_defaults(command=_lazy("cockpit.cli.run", "run"))

    check = commands.add_parser("check", help="check runs, or a recording, against thresholds and a baseline")
    _add_load(check, "PROFILE|URL|RECORDING", " or a recording, of which FILE#2 is the second run")
    add_check(check)
    check.set_defaults(command=_lazy("cockpit.cli.check", "check"))

    compare = commands.add_parser("compare", help="two recordings, runs or stretches of time beside each other")
    add_compare(compare)
    compare.set_defaults(command=_lazy("cockpit.cli.compare", "compare"))

    baseline = commands.add_parser("baseline", help="named results to compare with: set, add, show, list, delete")
    add_baseline(baseline)
    baseline.set_defaults(command=_lazy("cockpit.cli.baseline", "baseline"))

    ab = commands.add_parser("ab", help="ab's flags and ab's report, from cockpit's engine")
    _add_ab(ab)
    ab.set_defaults(command=_lazy("cockpit.cli.ab", "ab"))

    tune = commands.add_parser("tune", help="a profile's knobs: read, change as a transaction, take back; its actions")
    _add_tune(tune)
    tune.set_defaults(command=_lazy("cockpit.cli.tune", "tune"))

    study = commands.add_parser("study", help="a profile's planned series of runs, to its table and verdicts")
    _add_study(study)
    add_look(study)
    study.set_defaults(command=_lazy("cockpit.cli.study", "study"))

    replay = commands.add_parser("replay", help="show a recording on the same screen; one that is written is followed")
    replay.add_argument("file", type=recording, metavar="FILE|NAME", help="a file, or a name in cockpit recordings")
    replay.add_argument("--at", default="0", metavar="T", help="begin at 90s, +2m, -30s (from the end), or 14:05")
    replay.add_argument("--paused", action="store_true", help="begin paused")
    add_look(replay, hangup=False)
    replay.set_defaults(command=_lazy("cockpit.cli.replay", "replay"))

    report = commands.add_parser("report", help="a recording or a study as text, Markdown, JSON, CSV or HTML")
    add_report(report)
    report.set_defaults(command=_lazy("cockpit.cli.report", "report"))

    export = commands.add_parser("export", help="a recording as events, series, histograms, a cast or a picture")
    add_export(export)
    export.set_defaults(command=_lazy("cockpit.cli.export", "export"))

    recordings = commands.add_parser("recordings", help="the recordings that are kept: list, rename, delete, prune")
    _add_recordings(recordings)
    recordings.set_defaults(command=_lazy("cockpit.cli.recordings", "recordings"))

    schema = commands.add_parser("schema", help="JSON Schema of --json, or of a profile")
    schema.add_argument("of", choices=("run", "check", "compare", "study", "profile"))
    schema.set_defaults(command=_lazy("cockpit.cli.schema", "schema"))

    help_ = commands.add_parser("help", help="what there is to know beyond the flags, by topic")
    help_.add_argument("topic", nargs="?", metavar="TOPIC", help="left out: lists them")
    help_.set_defaults(command=_lazy("cockpit.cli.help", "help_topic"))

    completion = commands.add_parser("completion", help="completion for a shell: source <(cockpit completion bash)")
    completion.epilog = (
        'bash: source <(cockpit completion bash) · zsh: eval "$(cockpit completion zsh)", after compinit · '
        "fish: cockpit completion fish | source"
    )
    completion.add_argument("shell", choices=("bash", "zsh", "fish"))
    completion.set_defaults(command=_lazy("cockpit.cli.completion", "completion"))

    new = commands.add_parser("new", help="write a profile: the hosts' servers and settings are found out")
    new.add_argument("url", metavar="URL", help="what to load")
    new.add_argument("--host", action="append", default=[], metavar="SSH", help="user@host or an alias; . is this one")
    new.add_argument("-c", "--concurrency", type=positive, default=20, metavar="N", help="connections (default 20)")
    new.add_argument("-z", "--duration", type=seconds, default=30.0, metavar="T", help="for so long (default 30s)")
    new.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="in place of one in profiles/ or your own folder"
    )
    new.add_argument("--force", action="store_true", help="replace the file where there is one")
    new.add_argument("--ssh-config", type=Path, metavar="FILE", help="as ssh -F: read this in place of the usual")
    new.set_defaults(command=_lazy("cockpit.cli.new", "new"))

    doctor = commands.add_parser("doctor", help="whether a profile can be used: target, hosts, knobs, limits")
    doctor.add_argument(
        "profile", metavar="PROFILE|URL", help="a profile (its name, or a path as ./x.toml), or http://…"
    )
    doctor.add_argument("--ssh-config", type=Path, metavar="FILE", help="as ssh -F: read this in place of the usual")
    doctor.add_argument("--json", action="store_true", help="the findings as JSON on stdout")
    doctor.add_argument("--no-exec", action="store_true", help="run no command of the profile; list them")
    _add_trust(doctor)
    doctor.set_defaults(command=_lazy("cockpit.cli.doctor", "doctor"))

    demo = commands.add_parser("demo", help="the cockpit on an embedded web server and SSH host")
    demo.add_argument("--record", type=Path, metavar="FILE", help="record the session to a new file")
    demo.add_argument("--no-record", action="store_true", help="keep no recording")
    add_look(demo)
    demo.set_defaults(command=_lazy("cockpit.cli.demo", "demo"))
    return parser


def joined(arguments: Iterable[str]) -> list[str]:
    """The command line with `--at -30s` as `--at=-30s`: argparse would take the value for a flag."""
    found: list[str] = []
    for text in arguments:
        if _BEFORE.match(text) and found and found[-1] in _INSTANTS and "--" not in found:
            found[-1] += f"={text}"
        else:
            found.append(text)
    return found


def _add_load(parser: argparse.ArgumentParser, targets: str = "PROFILE|URL", more: str = "") -> None:
    """What `run` and `check` share. A flag that is not given leaves the profile's value."""
    parser.add_argument(
        "target", metavar=targets, help=f"a profile (its name, or a path as ./x.toml) or http://…{more}"
    )
    _add_amount(parser.add_argument_group("how much"))
    _add_request(parser.add_argument_group("what"))
    _add_way(parser.add_argument_group("from where to where"))
    _add_tls(parser.add_argument_group("TLS"))
    add = parser.add_argument
    add("--ssh-config", type=Path, metavar="FILE", help="as ssh -F: read this in place of ~/.ssh/config")
    add("--record", type=Path, metavar="FILE", help="record the session to a new file")
    add("--hlog", type=Path, metavar="FILE", help="write an HdrHistogram log, an interval a second")
    add("--json", action="store_true", help="the result as JSON on stdout, no screen")
    _add_trust(parser)


def _add_trust(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--trust", action="store_true", help="accept the profile's commands, hosts and files unasked")


def _add_amount(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add(
        "-c",
        "--concurrency",
        type=positive,
        metavar="N",
        help="connections, one request in flight each; with -q at most so many",
    )
    add("-q", "--rate", type=rate, metavar="R", help="open load: requests/s of all connections together, e.g. 500, 2k")
    add("--poisson", action="store_true", help="open load: arrivals at random intervals, not even ones")
    add(
        "--max-in-flight",
        type=positive,
        metavar="N",
        help="open load: hold back what comes on top of N (default 8192)",
    )
    add(
        "-n",
        "--requests",
        type=positive,
        metavar="N",
        help="exactly so many requests: 200, 10k, 1m; with -z whichever ends first",
    )
    add("-z", "--duration", type=seconds, metavar="T", help="for so long: 10s, 3m, 1h (default 10s)")
    add("--ladder", metavar="LIST:T", help="one rung after the other, each for T: 1,2,4:30s or 500/s,1k/s:30s")
    add("--warmup", type=seconds, metavar="T", help="load for so long first, and leave it out of the figures")
    add(
        "--extend",
        type=wait,
        metavar="T",
        help="go on after a change until its verdict, T at most; 0: not (default 3m)",
    )
    add("--timeout", type=seconds, metavar="T", help="for a whole request (default 30s)")
    add("--disable-keepalive", action="store_true", help="a new connection for each request")
    add("-w", "--workers", type=workers, metavar="N|auto", help="load processes; auto is one a CPU (default 1)")
    add("--cpus", metavar="LIST", type=cpus, help="pin load processes to these CPUs: 1 or 1,2")


def _add_request(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--target", dest="url", metavar="URL", help="load this URL in place of the profile's")
    add("-H", "--header", action="append", default=[], metavar="'K: V'", help="a request header; may be repeated")
    add("-m", "--method", metavar="M", help="request method")
    add("-d", "--data", metavar="TEXT", help="request body")
    add("-D", "--data-file", type=Path, metavar="FILE", help="request body from a file")
    add("-T", "--content-type", metavar="TYPE", help="Content-Type of the body")
    add("-a", "--auth", metavar="USER:PASSWORD", help="basic authorization")
    add("--urls", metavar="PATTERN|FILE", help="many paths: /img/{00001..15000}.jpg, or a file with one a line")
    add("--order", choices=("sequence", "shuffle", "once"), default="sequence", help="of --urls (default sequence)")
    add("--seed", type=seed, default=1, metavar="N", help="of a shuffle and of random arrivals")
    add("--expect-status", type=statuses, metavar="LIST", help="other statuses are failures: 200 or 200,204")
    add("--expect-body", metavar="TEXT", help="a reply without this text is a failure")


def _add_way(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--connect-to", metavar="HOST:PORT", help="connect there, whatever the URL says")
    add("--unix-socket", metavar="PATH", help="connect to this socket")
    add("--local-address", action="append", default=[], metavar="IP", help="connect from here; may be repeated")


def _add_tls(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--insecure", action="store_true", help="do not verify the server's certificate")
    add("--cacert", type=Path, metavar="FILE", help="trust this authority in place of the system's")
    add("--cert", type=Path, metavar="FILE", help="client certificate (PEM)")
    add("--key", type=Path, metavar="FILE", help="its key, where the certificate's file has none")
    add("--sni", metavar="NAME", help="server name to ask for, where it is not the URL's")


def _add_tune(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("profile", metavar="PROFILE", help="a profile: its name, or a path as ./x.toml")
    add("action", choices=TUNE, help="what to do; rounds: old and new values in turn under load, with a verdict")
    add("names", nargs="*", metavar="NAME[=VALUE]", help="get NAME…, set or rounds NAME=VALUE… (one change), do NAME…")
    add("--dry-run", action="store_true", help="set: print the diff and what it costs, and touch nothing")
    add("--confirm-within", type=seconds, metavar="T", help="set: undone unless y is typed within T: 60s")
    add("--rounds", type=positive, default=12, metavar="N", help="rounds: at most N, 4 to 50 (default 12)")
    add("--seconds", type=seconds, default=15.0, metavar="T", help="rounds: per window, 15s or more (default 15s)")
    add("--seed", type=seed, default=1, metavar="N", help="rounds: draw the order with this seed (default 1)")
    add("--mirrored", action="store_true", help="rounds: order A-B-B-A, not random")
    add("--keep", action="store_true", help="rounds: keep the new values afterwards unless they are worse")
    add("--record", type=Path, metavar="FILE", help="rounds: record the session to a new file")
    add("--target", dest="url", metavar="URL", help="ask this URL for good replies in place of the profile's target")
    add("--no-probe", action="store_true", help="ask no URL for good replies before and after a change")
    add("--ssh-config", type=Path, metavar="FILE", help="as ssh -F: read this in place of ~/.ssh/config")
    add("--json", action="store_true", help="the result as JSON on stdout")
    _add_trust(parser)


def _add_recordings(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(metavar="ACTION", required=True, dest="action")
    listing = actions.add_parser("list", help="all of them, the newest first")
    listing.add_argument("--json", action="store_true", help="as JSON on stdout")
    rename = actions.add_parser("rename", help="give one another name")
    rename.add_argument("name", metavar="NAME")
    rename.add_argument("new", metavar="NEW")
    delete = actions.add_parser("delete", help="remove one or several")
    delete.add_argument("names", metavar="NAME", nargs="+")
    prune = actions.add_parser("prune", help="remove the oldest")
    prune.add_argument("--keep", type=count, metavar="N", help="all but the N newest")
    prune.add_argument("--older", type=age, metavar="T", help="those that began longer ago: 12h, 30d")
    prune.add_argument("--dry-run", action="store_true", help="only say which")


def _add_study(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("profile", metavar="PROFILE", help="a profile with a [study]: its name, or a path as ./x.toml")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--short", action="store_true", help="its short form: minutes, for a sanity run")
    form.add_argument("--full", dest="short", action="store_false", help="its full form (default)")
    again = parser.add_mutually_exclusive_group()
    again.add_argument("--resume", action="store_true", help="continue an unfinished study, or refuse")
    again.add_argument("--fresh", action="store_true", help="start over, even if a study is unfinished")
    add = parser.add_argument
    add("--seed", type=count, metavar="N", help="draw the order of each round from N (default: a new seed)")
    add("--dry-run", action="store_true", help="print the plan, its time and what it can detect, and touch nothing")
    add("--json", action="store_true", help="the result as JSON on stdout, no screen")
    add("-o", "--output", type=Path, metavar="DIR", help="recordings and results (default studies/PROFILE-FORM-N)")
    add("--no-tui", action="store_true", help="no screen: progress on stderr, the result on stdout")
    _add_trust(parser)
    add("--ssh-config", type=Path, metavar="FILE", help="as ssh -F: read this in place of ~/.ssh/config")


def _add_ab(parser: argparse.ArgumentParser) -> None:
    """ab's flags, by ab's names."""
    add = parser.add_argument
    add("url", metavar="http[s]://host[:port]/path")
    add("-n", dest="requests", type=positive, metavar="N", help="requests (default 1)")
    add("-c", dest="concurrency", type=positive, default=1, metavar="N", help="requests at a time (default 1)")
    add("-t", dest="timelimit", type=seconds, metavar="SECONDS", help="at most so long, and 50000 requests without -n")
    add("-s", dest="timeout", type=seconds, default=30.0, metavar="SECONDS", help="for each reply (default 30)")
    add("-k", dest="keepalive", action="store_true", help="keep connections alive")
    add("-m", dest="method", metavar="METHOD", help="request method")
    add("-H", dest="header", action="append", default=[], metavar="'K: V'", help="a header; may be repeated")
    add("-C", dest="cookie", action="append", default=[], metavar="K=V", help="a cookie; may be repeated")
    add("-A", dest="auth", metavar="USER:PASSWORD", help="basic authorization")
    add("-p", dest="post", type=Path, metavar="FILE", help="POST this file")
    add("-T", dest="content_type", default="text/plain", metavar="TYPE", help="Content-Type of the body")
    add("-l", dest="any_length", action="store_true", help="accept any length (cockpit always does)")
    add("-q", dest="quiet", action="store_true", help="no progress on stderr")
    add("-r", dest="resist", action="store_true", help="go on after socket errors (cockpit always does)")
    add("-e", dest="csv", type=Path, metavar="FILE", help="write percentages as CSV")
    add("-g", dest="gnuplot", type=Path, metavar="FILE", help="write a row a request as TSV")


def _lazy(module: str, name: str) -> Callable[[argparse.Namespace], int]:
    """A command is imported when it is chosen, so that none pays for another."""

    def command(options: argparse.Namespace) -> int:
        function: Callable[[argparse.Namespace], int] = getattr(import_module(module), name)
        return function(options)

    return command
