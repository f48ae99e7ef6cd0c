"""Help pages: groups of `cockpit --help`; a sentence, examples, exit codes and topics per command."""

from __future__ import annotations

from textwrap import fill
from typing import Any, NamedTuple

from cockpit.cli.export_formats import export_formats
from cockpit.cli.parser import CommandParser

SUMMARY = (
    "Load a web server, watch its hosts, change its settings and see the effect, on one screen. "
    "Without a command, cockpit opens the start screen."
)
# Maximum width of text.
_WIDTH = 79
EXITS = {
    0: "success",
    1: "a bug, or the generator failed",
    2: "usage or profile",
    3: "target or host unreachable",
    4: "unstable or inconclusive",
    5: "change refused or rolled back",
    99: "threshold failed",
    130: "interrupted",
}


class HelpPage(NamedTuple):
    """Help of one command. `summary`: its line in lists; `exits`: exit codes besides 0, 2 and 130; `topics`: names of
    help topics."""

    name: str
    arguments: str
    summary: str
    exits: tuple[int, ...] = ()
    topics: str = ""


# A sentence (default: the summary), then lines of examples, by command.
_TEXTS = {
    "start": """Open the start screen: profiles, recordings, first steps. `cockpit` without a command does the same.""",
    "run": """Load a URL, or a profile's target while watching its hosts, and show requests/s and latency live.
  cockpit run http://127.0.0.1:8080/ -c 20 -z 30s     # space starts it
  cockpit run http://127.0.0.1:8080/ -q 2000 -z 1m    # open load, 2000/s
  cockpit run spare-servers --record before.cockpit   # hosts and knobs too
  cockpit run http://127.0.0.1:8080/ -n 10k --json    # no screen, JSON
  cockpit run spare-servers --ndjson                  # JSON lines as it runs
  cockpit run http://127.0.0.1:8080/ --until 'p99 < 50ms'    # capacity""",
    "check": """Check a new or a recorded run against thresholds and a baseline.
  cockpit check http://127.0.0.1:8080/ -z 15s --threshold 'p99 < 50ms'
  cockpit check spare-servers --runs 5 --save-baseline spring
  cockpit check spare-servers --baseline spring --junit check.xml
  cockpit check night.cockpit --threshold 'failed.share < 1%'
  cockpit check http://head:8081/ --against http://base:8080/ --margin 5%

thresholds: METRIC < VALUE, with < <= > >= == !=
  METRIC: rate, failed, errors, completed, p50 to p99.999, mean, max,
          connect.p99, first_byte.p99, generator.cpu; of a host web1.cpu.idle,
          web1.io.tps, web1.processes.defunct (an unknown name lists all)
  VALUE:  200ms, 500, 12k, 20%, or 95% of baseline""",
    "duet": """Load two targets with the same requests at the same moments, until it is clear which one is better.
  cockpit duet http://127.0.0.1:8080/ http://127.0.0.1:8081/ -c 10
  cockpit duet http://old/ http://new/ -q 500           # latency at 500/s
  cockpit duet http://127.0.0.1:8080/ --control         # A/A: the noise
  cockpit duet two-builds --json                        # two [[variant]]s""",
    "watch": """Show the requests of users, counted on each host from its access log; no load is sent.
  cockpit watch https://example.org/ --host web1 --log /var/log/nginx/access.log
  cockpit watch shop --log /var/log/apache2/access.log -z 10m --json
  cockpit watch shop --log /var/log/access.log --log-format '%h "%r" %>s %D'""",
    "capture": """Write a profile that replays a time range of access logs: rate, mix and order of its requests.
  cockpit capture https://example.org/ --host web1 --last 10m -o evening.toml
  cockpit capture shop --from 2026-11-24T20:00 --to 2026-11-24T20:15
  cockpit capture localhost:80 --host . --log access.log --last 1h""",
    "ab": """Measure with cockpit's load generator, ab's flags and ab's report, for scripts that parse ab's output.
  cockpit ab -n 10000 -c 20 http://127.0.0.1:8080/
  cockpit ab -n 10000 -c 20 -k -e percentiles.csv http://127.0.0.1:8080/""",
    "tune": """\
Show and change the settings (knobs) of a profile's hosts, each change tested and rolled back if it fails.
  cockpit tune spare-servers show                              # all knobs
  cockpit tune spare-servers set MaxSpareServers=30 --dry-run  # only the diff
  cockpit tune spare-servers set MaxSpareServers=30
  cockpit tune spare-servers undo                              # the newest""",
    "autopilot": """Try settings (knobs) under load, search for better ones, and prove the best in fresh rounds.
  cockpit autopilot web --diagnose          # only find the bottleneck
  cockpit autopilot web --where 'p99 < 20ms' --where 'errors == 0'
  cockpit autopilot web --knob MaxRequestWorkers=25..400 --budget 20m
  cockpit autopilot web --minimize p99 --no-restart --apply""",
    "study": """\
Run a profile's study: its variants in rounds, in random order, with an A/A control, tables and verdicts.
  cockpit study mpm --dry-run      # plan, duration, minimum detectable effect
  cockpit study mpm --short        # minutes, to try it out
  cockpit study mpm -o out         # results and recordings in ./out
  cockpit study mpm --resume       # continue an interrupted study""",
    "replay": """Show a recording on the same screen: pause, step, seek, change speed; follow one that is being written.
  cockpit replay spare-servers-20261121-140502      # name in `recordings list`
  cockpit replay before.cockpit --at 14:05 --paused
  cockpit replay before.cockpit --at -30s           # the last 30 s""",
    "compare": """Compare two recordings, runs or time ranges, with a verdict.
  cockpit compare before.cockpit after.cockpit       # all runs of each
  cockpit compare 's.cockpit#1' 's.cockpit#3'        # run 1 with run 3
  cockpit compare 's.cockpit@10s..40s' 's.cockpit@14:05..14:10'    # time ranges""",
    "history": """List the checks of a profile on this machine, and the checks since which a metric differs.
  cockpit check shop --release v1.8.2       # each check is kept
  cockpit history shop
  cockpit history shop -o shop.html         # with plots""",
    "report": """\
Write a report of a recording, or of a study's directory, as text, Markdown, JSON, CSV or one HTML page.
  cockpit report before.cockpit                    # a summary as text
  cockpit report before.cockpit -o before.html     # a self-contained page
  cockpit report studies/mpm-full-1 -o mpm.html    # a study; also .csv""",
    "export": """Export a recording in a format of other tools, chosen by the suffix of -o, or by --format.
{export formats}""",
    "import": """\
Record the result of another load generator, or samples of sysstat, to replay, compare and report them here.
  cockpit import ab.tsv --target http://web1/      # ab -g
  cockpit import vegeta.json --host web1=web1.json # and sadf -j FILE -- -A
  cockpit import run.hlog -o run.cockpit           # HdrHistogram log
  cockpit import wrk.txt                           # summary: totals only
  cockpit import web1.json                         # sysstat alone

formats, detected by the content: ab -g, hey -o csv, oha --output-format csv,
  JMeter JTL (CSV, XML), k6 --out csv|json, vegeta encode --to csv|json,
  h2load --log-file, HdrHistogram logs, sadf -j FILE -- -A, text of sar;
  summaries of wrk, wrk2 and oha --output-format json (totals only).""",
    "recordings": """Manage the recordings in ~/.local/state/webcockpit/recordings.
  cockpit recordings list
  cockpit recordings rename spare-servers-20261121-140502 before
  cockpit recordings prune --keep 20 --older 30d --dry-run""",
    "baseline": """Manage baselines: named results that `cockpit check --baseline NAME` compares runs with.
  cockpit baseline set spring mon.cockpit tue.cockpit    # the last run of each
  cockpit baseline add spring wed.cockpit
  cockpit baseline show spring""",
    "new": """Write a profile: cockpit inspects the hosts for servers and settings that can be changed.
  cockpit new http://web1/ --host root@web1
  cockpit new http://vm1:8080/ --host root@vm1/docker:web1      # a container
  cockpit new http://127.0.0.1:8080/ --host . -o local.toml     # this machine""",
    "doctor": """Check this machine, the target, the hosts and the knobs of a profile, each finding with its fix.
  cockpit doctor spare-servers
  cockpit doctor http://127.0.0.1:8080/
  cockpit doctor --no-exec ./x.toml     # list the profile's commands, run none""",
    "demo": """Open the screen on an embedded web server and SSH host; nothing is installed and nothing remains.
  cockpit demo
  cockpit demo --theme light --no-record""",
    "mcp": """Let an agent measure, preview and compare settings, by the Model Context Protocol on stdin and stdout.
  cockpit mcp                               # read, preview, check
  cockpit mcp --allow-changes               # a person confirms each change
  cockpit mcp --allow-changes --yes         # on a server of your own""",
    "schema": """Print the JSON Schema of a command's --json output, or of profiles for editors.
  cockpit schema run
  cockpit schema tune-show
  cockpit schema profile >profile.schema.json""",
    "completion": """Print a completion script: commands, flags, profiles, recordings.
  source <(cockpit completion bash)
  eval "$(cockpit completion zsh)"      # after compinit
  cockpit completion fish >~/.config/fish/completions/cockpit.fish""",
    "help": """Show a help topic or a command's flags; without an argument, list the topics.
  cockpit help metrics
  cockpit help tune rounds""",
    "tune show": """Show the active value of each knob, or of the named ones; with one name print only its value.
  cockpit tune spare-servers show
  cockpit tune spare-servers show MaxSpareServers""",
    "tune set": """Change settings as one transaction: back up, edit, test, reload, verify; roll back if anything fails.
  cockpit tune spare-servers set MaxSpareServers=30 MinSpareServers=20 --dry-run
  cockpit tune spare-servers set MaxSpareServers=30 --confirm-within 60s""",
    "tune undo": """Undo the named, an interrupted or the newest applied change; repeat it for the original values.
  cockpit tune spare-servers undo
  cockpit tune spare-servers undo 3f2a9c1e
  cockpit tune http://web1/ undo 3f2a9c1e --host web1   # no profile""",
    "tune history": """List the changes on the profile's hosts, newest first: name, time, values, state.
  cockpit tune spare-servers history
  cockpit tune spare-servers history --json""",
    "tune rounds": """Measure old and new values in rounds, in random order, under load, and print the verdict.
  cockpit tune spare-servers rounds MaxSpareServers=30
  cockpit tune spare-servers rounds MaxSpareServers=30 --rounds 8 --keep""",
    "tune action": """List the profile's actions (commands such as a restart), or run the named ones.
  cockpit tune restart-memory action
  cockpit tune restart-memory action restart""",
    "baseline set": """Make a baseline of the last run of each recording, or of a run chosen as FILE#2.
  cockpit baseline set spring mon.cockpit 'tue.cockpit#2'""",
    "baseline add": """Add runs of the same load to a baseline, or create it.
  cockpit baseline add spring wed.cockpit""",
    "baseline show": """Show a baseline: its load, its runs, each metric with its spread.""",
    "recordings list": """List the recordings, newest first.""",
    "recordings prune": """Delete the oldest recordings; with both flags only recordings that both flags select.
  cockpit recordings prune --keep 20 --older 30d --dry-run""",
}


def _by_name(*pages: HelpPage) -> dict[str, HelpPage]:
    return {page.name.rpartition(" ")[2]: page for page in pages}


MEASURE = _by_name(
    HelpPage(
        "run", "PROFILE|URL", "load a URL or a profile's target", (1, 3, 4, 99), "load metrics screen profile streams"
    ),
    HelpPage(
        "check",
        "PROFILE|URL|RECORDING",
        "check runs against thresholds and a baseline",
        (1, 3, 4, 99),
        "check expressions",
    ),
    HelpPage("duet", "URL URL|PROFILE", "load two targets at once, and compare them", (1, 3), "duet load streams"),
    HelpPage("watch", "PROFILE|URL", "show the requests of users from access logs", (1, 3), "traffic metrics screen"),
    HelpPage("ab", "URL", "measure with ab's flags and report", (1, 3), "load metrics"),
)
TUNING = _by_name(
    HelpPage("tune", "PROFILE SUBCOMMAND", "show, change and undo server settings", (3, 5), "tuning knobs"),
    HelpPage("autopilot", "PROFILE", "search for better settings, and prove them", (3, 5), "autopilot tuning"),
    HelpPage("study", "PROFILE", "run a planned series of runs", (3, 4, 5), "studies"),
)
ANALYZE = _by_name(
    HelpPage("replay", "FILE|NAME", "show a recording on the same screen", (), "recordings screen"),
    HelpPage("compare", "BEFORE AFTER", "compare two recordings, runs or time ranges", (), "compare metrics"),
    HelpPage("history", "PROFILE|URL", "list past checks, and when metrics changed", (), "check"),
    HelpPage("report", "FILE|NAME|DIR", "write a report of a recording or study", (), "report"),
    HelpPage("export", "FILE", "export a recording's raw data or its screen", (), "report"),
    HelpPage("import", "FILE", "record the results of other tools", (), "import report"),
    HelpPage("recordings", "SUBCOMMAND", "list, rename, delete or prune recordings", (), "recordings recording-format"),
    HelpPage("baseline", "SUBCOMMAND", "manage named results to compare with", (), "check"),
)
SET_UP = _by_name(
    HelpPage("new", "URL", "write a profile by inspecting hosts", (3,), "profile hosts"),
    HelpPage("capture", "PROFILE|URL", "write a profile that replays an access log", (3,), "traffic load"),
    HelpPage("doctor", "PROFILE|URL", "check that a profile can be used", (3,), "hosts knobs"),
    HelpPage("demo", "", "open the screen on an embedded server", (), "screen tuning"),
    HelpPage("schema", "NAME", "print a JSON Schema of --json or profiles", (), "profile"),
    HelpPage("mcp", "", "serve an agent by the Model Context Protocol", (), "agents"),
    HelpPage("completion", "bash|zsh|fish", "print a shell completion script"),
    HelpPage("help", "[TOPIC|COMMAND]", "show a help topic"),
)
START = HelpPage("start", "", "choose a profile or recording (also: cockpit)")
GROUPS = {"Measure": MEASURE, "Tune": TUNING, "Analyze": ANALYZE, "Set up": SET_UP}

TUNE = _by_name(
    HelpPage("tune show", "[NAME ...]", "show values, allowed values and cost", (3,)),
    HelpPage("tune set", "NAME=VALUE ...", "change settings as one transaction", (3, 5), "knobs"),
    HelpPage("tune undo", "[CHANGE]", "undo the newest change, or a named one", (3, 5)),
    HelpPage("tune history", "", "list changes, newest first", (3,)),
    HelpPage("tune rounds", "NAME=VALUE ...", "compare old and new values under load", (3, 5), "tuning"),
    HelpPage("tune action", "[NAME ...]", "list the profile's actions, or run some", (3, 5)),
)
BASELINE = _by_name(
    HelpPage("baseline set", "NAME RECORDING ...", "make a baseline of recorded runs"),
    HelpPage("baseline add", "NAME RECORDING ...", "add recorded runs to a baseline"),
    HelpPage("baseline show", "NAME", "show a baseline's metrics"),
    HelpPage("baseline list", "", "list all baselines"),
    HelpPage("baseline delete", "NAME", "delete a baseline"),
)
RECORDINGS = _by_name(
    HelpPage("recordings list", "", "list recordings, newest first"),
    HelpPage("recordings rename", "NAME NEW", "rename a recording"),
    HelpPage("recordings delete", "NAME ...", "delete recordings"),
    HelpPage("recordings prune", "", "delete the oldest recordings"),
)

_EXAMPLES = """\
examples:
  cockpit demo                                       # try it, nothing to install
  cockpit run http://127.0.0.1:8080/ -c 20 -z 30s    # load a URL
  cockpit new http://web1/ --host root@web1          # a profile of your server
  cockpit run web1                                   # load, watch and tune it

learn more:
  cockpit COMMAND --help    # flags and examples of a command
  cockpit help              # topics: profile, tuning, metrics, ...
  cockpit --man | man -l -  # all of it on one page
  cockpit --spec            # commands, flags, metrics, exit codes as JSON"""


def add_command(commands: Any, name: str, page: HelpPage) -> CommandParser:
    parser: CommandParser = commands.add_parser(name, help=page.summary)
    parser.usage = " ".join(filter(None, (parser.prog, "[OPTIONS]", page.arguments)))
    parser.page = page
    parser.describe = lambda: _description(page)
    return parser


def page_text(page: HelpPage) -> tuple[str, str]:
    """Return the sentence that describes a command, and its examples."""
    sentence, _, examples = _TEXTS.get(page.name, f"{page.summary.capitalize()}.").partition("\n")
    if page.name == "export":
        lines = (f"  {form.example}" for form in export_formats().values())
        examples = examples.replace("{export formats}", "\n".join(lines))
    return sentence, examples


def exit_codes(codes: tuple[int, ...]) -> list[int]:
    """Return the exit codes of a page, with those of all commands."""
    return sorted({0, 2, 130, *codes})


def _description(page: HelpPage) -> tuple[str, str]:
    """Return the text before the flags, and the text after them."""
    sentence, examples = page_text(page)
    before = fill(sentence, _WIDTH) + (f"\n\nexamples:\n{examples}" if examples else "")
    more = f"\nlearn more: cockpit help {' · '.join(page.topics.split())}" if page.topics else ""
    return before, _exit_words(page.exits) + more


def overview() -> str:
    lines = [
        "usage: cockpit [COMMAND] [OPTIONS]",
        "",
        fill(SUMMARY, _WIDTH),
    ]
    for group, pages in GROUPS.items():
        lines += ["", f"{group}:", *(f"  {name:<12}{page.summary}" for name, page in pages.items())]
    return "\n".join((*lines, "", _EXAMPLES, "", _exit_words((1, 3, 4, 5, 99)))) + "\n"


def _exit_words(codes: tuple[int, ...]) -> str:
    meanings = " · ".join(f"{code} {EXITS[code]}" for code in exit_codes(codes))
    return fill(f"exit codes: {meanings}", _WIDTH, subsequent_indent=" " * 12)
