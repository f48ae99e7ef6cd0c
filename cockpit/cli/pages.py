"""Help pages: `cockpit --help` with its groups, and per command a sentence, examples, exit codes and topics."""

from __future__ import annotations

from textwrap import fill
from typing import Any, NamedTuple

from cockpit.cli.parser import CommandParser

# Columns of an 80-column terminal that text may use.
_WIDTH = 79
_EXITS = {
    0: "good",
    1: "a bug, or the generator failed",
    2: "usage or profile",
    3: "target or host unreachable",
    4: "unstable or inconclusive",
    5: "change refused or rolled back",
    99: "threshold failed",
    130: "interrupted",
}


class HelpPage(NamedTuple):
    """The help of one command. `summary` is its line in lists; `exits` are the codes beside 0, 2 and 130."""

    summary: str
    arguments: str
    sentence: str
    examples: str = ""
    exits: tuple[int, ...] = ()
    topics: tuple[str, ...] = ()


MEASURE = {
    "run": HelpPage(
        "load a URL or a profile's target",
        "PROFILE|URL",
        "Load a URL, or a profile's target while its hosts are watched, and show requests/s and latency live.",
        """\
  cockpit run http://127.0.0.1:8080/ -c 20 -z 30s     # 20 connections
  cockpit run http://127.0.0.1:8080/ -q 2000 -z 1m    # open load, 2000/s
  cockpit run spare-servers --record before.cockpit   # hosts and knobs too
  cockpit run http://127.0.0.1:8080/ -n 10k --json    # no screen, JSON""",
        (1, 3),
        ("load", "metrics", "screen", "profile"),
    ),
    "check": HelpPage(
        "check runs against thresholds and a baseline",
        "PROFILE|URL|RECORDING",
        "Run a load, or take a recorded run, and check it against thresholds and a baseline.",
        """\
  cockpit check http://127.0.0.1:8080/ -z 15s --threshold 'p99 < 50ms'
  cockpit check spare-servers --runs 5 --save-baseline spring
  cockpit check spare-servers --baseline spring --junit check.xml
  cockpit check night.cockpit --threshold 'failed.share < 1%'

thresholds: METRIC < VALUE, with < <= > >= == !=
  METRIC: rate, failed, errors, completed, p50 to p99.999, mean, max,
          connect.p99, first_byte.p99, generator.cpu; of a host web1.cpu.idle,
          web1.io.tps, web1.processes.defunct (an unknown name lists all)
  VALUE:  200ms, 500, 12k, 20%, or 95% of baseline""",
        (1, 3, 4, 99),
        ("check", "expressions"),
    ),
    "ab": HelpPage(
        "measure with ab's flags and report",
        "URL",
        "Measure with cockpit's load generator, with ab's flags and ab's report, for scripts that read ab.",
        """\
  cockpit ab -n 10000 -c 20 http://127.0.0.1:8080/
  cockpit ab -n 10000 -c 20 -k -e percentiles.csv http://127.0.0.1:8080/""",
        (1, 3),
        ("load", "metrics"),
    ),
}
TUNING = {
    "tune": HelpPage(
        "show, change and undo server settings",
        "PROFILE SUBCOMMAND",
        "Show and change the settings (knobs) of a profile's hosts, each change tested and rolled back if it fails.",
        """\
  cockpit tune spare-servers show                              # all knobs
  cockpit tune spare-servers set MaxSpareServers=30 --dry-run  # only the diff
  cockpit tune spare-servers set MaxSpareServers=30
  cockpit tune spare-servers undo                              # the newest""",
        (3, 5),
        ("tuning", "knobs"),
    ),
    "study": HelpPage(
        "run a planned series of runs",
        "PROFILE",
        "Run a profile's study: its variants in rounds, in random order, with an A/A control, tables and verdicts.",
        """\
  cockpit study mpm --dry-run      # the plan, its duration, what it can detect
  cockpit study mpm --short        # minutes, to try it out
  cockpit study mpm -o out         # results and recordings in ./out
  cockpit study mpm --resume       # continue an interrupted study""",
        (3, 4, 5),
        ("studies",),
    ),
}
ANALYZE = {
    "replay": HelpPage(
        "show a recording on the same screen",
        "FILE|NAME",
        "Show a recording on the same screen: pause, step, seek, change speed; follow one that is being written.",
        """\
  cockpit replay spare-servers-20261121-140502      # name in `recordings list`
  cockpit replay before.cockpit --at 14:05 --paused
  cockpit replay before.cockpit --at -30s           # the last 30 s""",
        (),
        ("recordings", "screen"),
    ),
    "compare": HelpPage(
        "compare two recordings, runs or time ranges",
        "BEFORE AFTER",
        "Compare two recordings, runs or time ranges, with a verdict.",
        """\
  cockpit compare before.cockpit after.cockpit       # all runs of each
  cockpit compare 's.cockpit#1' 's.cockpit#3'        # run 1 with run 3
  cockpit compare 's.cockpit@10s..40s' 's.cockpit@14:05..14:10'    # time ranges""",
        (),
        ("compare", "metrics"),
    ),
    "report": HelpPage(
        "write a report of a recording or study",
        "FILE|NAME|DIR",
        "Write a report of a recording, or of a study's directory, as text, Markdown, JSON, CSV or one HTML page.",
        """\
  cockpit report before.cockpit                    # a summary as text
  cockpit report before.cockpit -o before.html     # one page that loads nothing
  cockpit report studies/mpm-full-1 -o mpm.html    # a study; also .csv""",
        (),
        ("report",),
    ),
    "export": HelpPage(
        "export a recording's raw data or its screen",
        "FILE",
        "Export a recording: its events (jsonl), one line per second (csv), histograms (hlog), its screen (cast, svg).",
        """\
  cockpit export before.cockpit -o before.csv      # one line per second
  cockpit export 'before.cockpit#2' -o run2.hlog   # HdrHistogram log of run 2
  cockpit export before.cockpit -o before.cast --every 2s
  cockpit export before.cockpit -o before.svg --at 14:05""",
        (),
        ("report",),
    ),
    "recordings": HelpPage(
        "list, rename, delete or prune recordings",
        "SUBCOMMAND",
        "Manage the recordings in ~/.local/state/cockpit/recordings.",
        """\
  cockpit recordings list
  cockpit recordings rename spare-servers-20261121-140502 before
  cockpit recordings prune --keep 20 --older 30d --dry-run""",
        (),
        ("recordings", "recording-format"),
    ),
    "baseline": HelpPage(
        "manage named results to compare with",
        "SUBCOMMAND",
        "Manage baselines: named results that `cockpit check --baseline NAME` compares runs with.",
        """\
  cockpit baseline set spring mon.cockpit tue.cockpit    # the last run of each
  cockpit baseline add spring wed.cockpit
  cockpit baseline show spring""",
        (),
        ("check",),
    ),
}
SET_UP = {
    "new": HelpPage(
        "write a profile by inspecting hosts",
        "URL",
        "Write a profile: cockpit inspects the hosts for servers and settings that can be changed.",
        """\
  cockpit new http://web1/ --host root@web1
  cockpit new http://127.0.0.1:8080/ --host . -o local.toml     # this machine""",
        (3,),
        ("profile", "hosts"),
    ),
    "doctor": HelpPage(
        "check that a profile can be used",
        "PROFILE|URL",
        "Check this machine, the target, the hosts and the knobs of a profile, each finding with its fix.",
        """\
  cockpit doctor spare-servers
  cockpit doctor http://127.0.0.1:8080/
  cockpit doctor --no-exec ./x.toml     # list the profile's commands, run none""",
        (3,),
        ("hosts", "knobs"),
    ),
    "demo": HelpPage(
        "open the screen on an embedded server",
        "",
        "Open the screen on an embedded web server and SSH host; nothing is installed and nothing remains.",
        """\
  cockpit demo
  cockpit demo --theme light --no-record""",
        (),
        ("screen", "tuning"),
    ),
    "schema": HelpPage(
        "print a JSON Schema of --json or profiles",
        "run|check|compare|study|profile",
        "Print the JSON Schema of a command's --json output, or of profiles for editors.",
        """\
  cockpit schema run
  cockpit schema profile >profile.schema.json""",
        (),
        ("profile",),
    ),
    "completion": HelpPage(
        "print a shell completion script",
        "bash|zsh|fish",
        "Print a completion script: commands, flags, profiles, recordings.",
        """\
  source <(cockpit completion bash)
  eval "$(cockpit completion zsh)"      # after compinit
  cockpit completion fish >~/.config/fish/completions/cockpit.fish""",
    ),
    "help": HelpPage(
        "show a help topic",
        "[TOPIC|COMMAND]",
        "Show a help topic or a command's flags; without an argument, list the topics.",
        """\
  cockpit help metrics
  cockpit help run""",
    ),
}
START = HelpPage(
    "choose a profile or recording (also: cockpit)",
    "",
    "Open the start screen: profiles, recordings, first steps. `cockpit` without a command does the same.",
)
GROUPS = {"Measure": MEASURE, "Tune": TUNING, "Analyze": ANALYZE, "Set up": SET_UP}

TUNE = {
    "show": HelpPage(
        "show values, allowed values and cost",
        "[NAME ...]",
        "Show the active value of each knob, or of those named; with one name print only its value.",
        """\
  cockpit tune spare-servers show
  cockpit tune spare-servers show MaxSpareServers""",
        (3,),
    ),
    "set": HelpPage(
        "change settings as one transaction",
        "NAME=VALUE ...",
        "Change settings as one transaction: back up, edit, test, reload, verify; roll back if anything fails.",
        """\
  cockpit tune spare-servers set MaxSpareServers=30 MinSpareServers=20 --dry-run
  cockpit tune spare-servers set MaxSpareServers=30 --confirm-within 60s""",
        (3, 5),
        ("knobs",),
    ),
    "undo": HelpPage(
        "undo the newest change, or a named one",
        "[CHANGE]",
        "Undo the newest change that is applied, or the one named; repeat it to walk back to the original values.",
        """\
  cockpit tune spare-servers undo
  cockpit tune spare-servers undo 3f2a9c1e""",
        (3, 5),
    ),
    "history": HelpPage(
        "list changes, newest first",
        "",
        "List the changes on the profile's hosts, newest first: name, time, values, state.",
        """\
  cockpit tune spare-servers history
  cockpit tune spare-servers history --json""",
        (3,),
    ),
    "rounds": HelpPage(
        "compare old and new values under load",
        "NAME=VALUE ...",
        "Measure old and new values in rounds, in random order, under load, and print the verdict.",
        """\
  cockpit tune spare-servers rounds MaxSpareServers=30
  cockpit tune spare-servers rounds MaxSpareServers=30 --rounds 8 --keep""",
        (3, 5),
        ("tuning",),
    ),
    "action": HelpPage(
        "list the profile's actions, or run some",
        "[NAME ...]",
        "List the profile's actions (commands such as a restart), or run those named.",
        """\
  cockpit tune restart-memory action
  cockpit tune restart-memory action restart""",
        (3, 5),
    ),
}
BASELINE = {
    "set": HelpPage(
        "make a baseline of recorded runs",
        "NAME RECORDING ...",
        "Make a baseline of the last run of each recording, or of the run named as FILE#2.",
        "  cockpit baseline set spring mon.cockpit 'tue.cockpit#2'",
    ),
    "add": HelpPage(
        "add recorded runs to a baseline",
        "NAME RECORDING ...",
        "Add runs of the same load to a baseline, or make it.",
        "  cockpit baseline add spring wed.cockpit",
    ),
    "show": HelpPage(
        "show a baseline's metrics", "NAME", "Show a baseline: its load, its runs, each metric with its spread."
    ),
    "list": HelpPage("list all baselines", "", "List all baselines."),
    "delete": HelpPage("delete a baseline", "NAME", "Delete a baseline."),
}
RECORDINGS = {
    "list": HelpPage("list recordings, newest first", "", "List the recordings, newest first."),
    "rename": HelpPage("rename a recording", "NAME NEW", "Rename a recording."),
    "delete": HelpPage("delete recordings", "NAME ...", "Delete recordings."),
    "prune": HelpPage(
        "delete the oldest recordings",
        "",
        "Delete the oldest recordings; with both flags those that are neither new nor among the newest.",
        "  cockpit recordings prune --keep 20 --older 30d --dry-run",
    ),
}

_EXAMPLES = """\
examples:
  cockpit demo                                       # try it, nothing to install
  cockpit run http://127.0.0.1:8080/ -c 20 -z 30s    # load a URL
  cockpit new http://web1/ --host root@web1          # a profile of your server
  cockpit run web1                                   # load, watch and tune it

learn more:
  cockpit COMMAND --help    # flags and examples of a command
  cockpit help              # topics: profile, tuning, metrics, ..."""


def add_command(commands: Any, name: str, page: HelpPage) -> CommandParser:
    """Add a command to argparse's subparsers; its parser shows the page."""
    parser: CommandParser = commands.add_parser(name, help=page.summary)
    parser.usage = " ".join(filter(None, (parser.prog, "[OPTIONS]", page.arguments)))
    parser.description = fill(page.sentence, _WIDTH) + (f"\n\nexamples:\n{page.examples}" if page.examples else "")
    parser.epilog = _exit_codes(page.exits)
    if page.topics:
        parser.epilog += f"\nlearn more: cockpit help {' · '.join(page.topics)}"
    return parser


def overview() -> str:
    """Return the text of `cockpit --help`."""
    lines = [
        "usage: cockpit [COMMAND] [OPTIONS]",
        "",
        "Load a web server, watch its hosts, change its settings and see the effect, on",
        "one screen. Without a command: the start screen.",
    ]
    for group, pages in GROUPS.items():
        lines += ["", f"{group}:", *(f"  {name:<12}{page.summary}" for name, page in pages.items())]
    return "\n".join((*lines, "", _EXAMPLES, "", _exit_codes((1, 3, 4, 5, 99)))) + "\n"


def _exit_codes(codes: tuple[int, ...]) -> str:
    named = " · ".join(f"{code} {_EXITS[code]}" for code in sorted({0, 2, 130, *codes}))
    return fill(f"exit codes: {named}", _WIDTH, subsequent_indent=" " * 12)
