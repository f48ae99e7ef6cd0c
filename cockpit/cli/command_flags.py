"""Flags and arguments of all commands, and the names of documents with a JSON Schema."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cockpit.cli.appearance_options import APPEARANCE, APPEARANCE_OF_REPLAY
from cockpit.cli.command_help import TUNE
from cockpit.cli.export_formats import export_formats, formats_with
from cockpit.cli.flags import Flag, FlagSection, FlagTable, flat
from cockpit.cli.load_arguments import AB, JSON, JSON_ONLY, SSH_CONFIG, TRUST, load_flags
from cockpit.cli.values import (
    age,
    count,
    day,
    instant,
    named_file,
    port,
    positive,
    recording,
    seconds,
    share,
    utc_offset,
)
from cockpit.metrics.margins import TOLERATED_LOSS

PROFILE = "a profile: its name, or a path such as ./x.toml"
_RECORD = "record to a new FILE (default: to ~/.local/state/webcockpit/recordings)"
_TARGET = "a profile (its name, or a path such as ./x.toml), or a URL (http:// may be left out of host:port)"
_CHECKED = "a profile (its name, or a path such as ./x.toml), a URL, or a recording (FILE#2: its second run)"
_SIDE = "FILE, FILE#2 (its second run), FILE@10s..60s or FILE@14:05..14:10 (a time range)"
_START = Flag("--start", True, "start the load as soon as the screen is open")
_NO_RECORD = Flag("--no-record", True, "do not record")
_PROBE = (
    Flag("--target", str, "check the server with this URL instead of the profile's", "URL", dest="url"),
    Flag("--no-probe", True, "send no requests to check the server before and after the change"),
)
_TUNED_HOST = Flag("--host", str, "host with the change if PROFILE is a URL; may be repeated", "HOST", many=True)
_LOGS = (
    Flag("--log", str, "access log on each host (default: by profile or configuration)", "FILE"),
    Flag("--log-format", str, "LogFormat or log_format of the server, or a name (default: recognized)", "FORMAT"),
    Flag("--host", str, "host of the log if the target is a URL; may be repeated", "HOST", many=True),
)
_UNTIL = Flag(
    "--until",
    str,
    "search the highest rate within limits, e.g. 'p99 < 50ms, errors < 0.1%%'; -z: maximum time (default 3m)",
    "LIMITS",
)
_RUN = (
    _START,
    Flag("--no-tui", True, "no screen: progress on stderr, a summary on stdout"),
    _NO_RECORD,
    Flag("--ndjson", True, "no screen: JSON lines on stdout, one per second, change and marker"),
    Flag("--prometheus", port, "serve metrics for Prometheus on 127.0.0.1:PORT (0: any)", "PORT"),
    Flag("--annotate", str, "send markers to Grafana: https://HOST/api/annotations", "URL"),
)
# Allowed before and after the subcommand.
EVERY_TUNE = (JSON, *TRUST)
_CHECK = (
    Flag("--threshold", str, "e.g. 'p99 < 50ms' or 'rate >= 95%% of baseline'; may be repeated", "EXPR", many=True),
    Flag("--abort-on", str, "a threshold that also ends the run as soon as it fails", "EXPR", many=True),
    Flag("--baseline", str, "baseline to compare with; see cockpit baseline", "NAME"),
    Flag("--force", True, "compare with a baseline of another load"),
    Flag("--stable", True, "exit 4 if the rate is unstable"),
    Flag("--max-duration", seconds, "end the load after T (default 15s for -n without -z)"),
    Flag("--quick", True, "one run of 15s, compared with the last baseline of the same load"),
    Flag("--runs", positive, "number of runs; of a recording the last N (default 1)"),
    Flag("--save-baseline", str, "save the runs as a baseline", "NAME"),
    Flag("--add-to-baseline", str, "add the runs to a baseline, or create it", "NAME"),
    Flag("--junit", Path, "write the result as JUnit XML"),
    Flag("--against", str, "load this URL at the same time, and fail if the target is worse: see cockpit duet", "URL"),
    Flag("--margin", share, f"with --against: the largest tolerated loss (default {TOLERATED_LOSS:.0%}%)", "SHARE"),
    Flag("--release", str, "name of the checked release, for cockpit history", "NAME", default=""),
    Flag("--markdown", Path, "with --against: write the result as Markdown, for a comment"),
)
_DUET = (
    Flag("--control", True, "load the target twice (A/A): shows the noise"),
    Flag("--margin", share, "a smaller difference counts as none, e.g. 5%% (default: that of each metric)", "SHARE"),
)
_GUARD = (
    Flag("--guard", str, "limits that roll a change back, e.g. 'errors < 2%%, p99 < 500ms'", "LIMITS", many=True),
    Flag("--ask", True, "ask before each switch of rounds"),
)


def _export_flags() -> FlagTable:
    return (
        Flag("file", str, f"a recording; for {formats_with('run')} FILE#2 is its second run"),
        Flag("--format", tuple(export_formats()), "default: by the suffix of -o"),
        Flag("-o --output", Path, "write to FILE (default: stdout)"),
        Flag("--at", str, "svg: instant (default: the end); cast: start; e.g. 90s, -30s, 14:05", "T"),
        Flag("--until", str, f"{formats_with('until')}: end (default: the end of the recording)", "T"),
        Flag("--every", seconds, f"{formats_with('every')}: session time between frames", default="1s"),
        Flag("--size", str, f"{formats_with('size')}: size of the screen", "COLSxROWS", default="120x40"),
        Flag(
            "--keys",
            str,
            f"{formats_with('keys')}: keys to press first, as Textual names them: p,s,down",
            "LIST",
            default="",
        ),
    )


# Flags and arguments of each command, and of each subcommand such as `tune set`. A new flag is one entry. A function
# returns those that depend on installed packages.
_FLAGS: dict[str, FlagTable | Callable[[], FlagTable]] = {
    "start": (SSH_CONFIG, APPEARANCE),
    "run": (_UNTIL, *_RUN, *load_flags("PROFILE|URL", _TARGET, _RECORD), APPEARANCE),
    "duet": (
        *load_flags("PROFILE|URL", "the first target, or a profile with two [[variant]] blocks", _RECORD),
        Flag("second_target", str, "the second target", "URL", nargs="?"),
        FlagSection("duet", (*_DUET, *_RUN)),
        APPEARANCE,
    ),
    "watch": (
        *load_flags("PROFILE|URL", _TARGET, _RECORD),
        FlagSection("traffic", (*_LOGS, *_GUARD, *_RUN)),
        APPEARANCE,
    ),
    "check": (
        *load_flags("PROFILE|URL|RECORDING", _CHECKED, "record to a new FILE (default: not recorded)"),
        FlagSection("check", _CHECK),
    ),
    "ab": AB,
    "study": (
        Flag("profile", str, f"with a [study]; {PROFILE}"),
        (
            Flag("--short", True, "short form: minutes, to try it out"),
            Flag("--full", False, "full form (default)", dest="short"),
        ),
        (
            Flag("--resume", True, "continue an unfinished study; fail if there is none"),
            Flag("--fresh", True, "start a new study, even if one is unfinished"),
        ),
        Flag("--seed", count, "seed of the random order (default: random)"),
        Flag("--dry-run", True, "print the plan, its duration and minimum detectable effect, change nothing"),
        JSON_ONLY,
        Flag("-o --output", Path, "recordings and results (default studies/PROFILE-FORM-N)", "DIR"),
        Flag("--no-tui", True, "no screen: progress on stderr, the result on stdout"),
        *TRUST,
        APPEARANCE,
    ),
    "autopilot": (
        Flag("profile", str, f"with knobs; {PROFILE}"),
        (
            Flag("--maximize", ("rate", "capacity"), "metric to maximize (default for closed load: rate)"),
            Flag("--minimize", ("p50", "p99"), "metric to minimize (default for open load: p99)"),
        ),
        Flag("--where", str, "constraint, e.g. 'p99 < 20ms'; may be repeated; of capacity: a limit", "EXPR", many=True),
        Flag(
            "--knob",
            str,
            "knob to search, with a range 5..400 or a list 5,10,20; may be repeated (default: the profile's knobs)",
            "NAME[=VALUES]",
            many=True,
        ),
        Flag("--budget", seconds, "maximum duration, including the proof", default="30m"),
        Flag("--seconds", seconds, "minimum load per evaluation (default 20s); of capacity: maximum (default 90s)"),
        Flag("--seed", count, "seed of the first points (default: random)"),
        Flag("--no-restart", True, "leave out knobs that restart their server"),
        Flag("--apply", True, "keep the proved settings (default: restore the original ones)"),
        Flag("--ask", True, "ask before each evaluation"),
        Flag("--diagnose", True, "only find the bottleneck, and list the knobs that affect it"),
        JSON_ONLY,
        Flag("--no-tui", True, "no screen: one line per evaluation on stderr, the result on stdout"),
        Flag("--record", Path, _RECORD),
        *TRUST,
        APPEARANCE,
    ),
    "replay": (
        Flag("file", recording, "a file, or a name in `cockpit recordings list`", "FILE|NAME"),
        Flag("--at", str, "start at T: 90s, +2m, -30s (from the end), 14:05 (default: first load)", "T", default=""),
        Flag("--paused", True, "start paused"),
        APPEARANCE_OF_REPLAY,
    ),
    "recordings list": (JSON,),
    "recordings rename": (Flag("name", str), Flag("new", str), JSON),
    "recordings delete": (Flag("names", str, metavar="NAME", nargs="+"), JSON),
    "recordings prune": (
        Flag("--keep", count, "keep the N newest"),
        Flag("--older", age, "delete recordings older than T, e.g. 12h, 30d", "T"),
        Flag("--dry-run", True, "only list them"),
        JSON,
    ),
    "new": (
        Flag("url", str, "URL to load"),
        Flag(
            "--host",
            str,
            "user@host or an ssh alias, docker:NAME, or both: user@host/docker:NAME; . is this machine; "
            "may be repeated",
            "HOST",
            many=True,
        ),
        Flag("-c --concurrency", positive, "connections", default="20"),
        Flag("-z --duration", seconds, "duration of a run", default="30s"),
        Flag(
            "-o --output",
            Path,
            "profile to write (default: in ./profiles if it exists, else ~/.config/webcockpit/profiles)",
        ),
        Flag("--force", True, "replace FILE if it exists"),
        JSON,
        SSH_CONFIG,
    ),
    "capture": (
        Flag("target", str, _TARGET, "PROFILE|URL"),
        *_LOGS,
        Flag("--last", seconds, "the last T of the log, e.g. 10m", "T"),
        Flag("--from", instant, "start, e.g. 2026-11-24T14:05 (without an offset: local time)", "TIME", dest="begin"),
        Flag("--to", instant, "end", "TIME", dest="end"),
        Flag("--cut-queries", True, "leave out the queries of URLs"),
        Flag("-o --output", Path, "profile to write; the log is beside it", default="captured.toml"),
        Flag("--force", True, "replace the files if they exist"),
        JSON,
        *TRUST,
    ),
    "doctor": (
        Flag("profile", str, f"{PROFILE}, or a URL", "PROFILE|URL"),
        JSON,
        Flag("--no-exec", True, "list the profile's commands, run none of them"),
        *TRUST,
    ),
    "demo": (_START, Flag("--record", Path, _RECORD), _NO_RECORD, APPEARANCE),
    "mcp": (
        Flag("--allow-changes", True, "offer tools that change settings; a person confirms each change in the client"),
        Flag("--yes", True, "with --allow-changes: do not ask"),
        SSH_CONFIG,
    ),
    "completion": (Flag("shell", ("bash", "zsh", "fish")),),
    "help": (Flag("topic", str, "a topic, or a command such as tune set (default: list the topics)", nargs="*"),),
    "compare": (
        Flag("before", str, _SIDE),
        Flag("after", str, "likewise; FILE alone: all its runs, if they are repeats of one load"),
        Flag("--force", True, "compare even if the loads differ"),
        JSON,
    ),
    "history": (
        Flag("target", str, "a profile, or a URL, as it was checked", "PROFILE|URL"),
        Flag("-o --output", Path, "write to FILE: .html, .md or .txt (default: stdout)"),
        JSON,
        Flag("--seed", count, "seed of the permutation tests", default="1"),
    ),
    **dict.fromkeys(
        ("baseline set", "baseline add"),
        (
            Flag("name", str),
            Flag("recording", str, "a recording (its last run), or FILE#2", nargs="+"),
            Flag("--runs", positive, "the last N runs of each recording", default="1"),
            JSON,
        ),
    ),
    "baseline show": (Flag("name", str), JSON),
    "baseline list": (JSON,),
    "baseline delete": (Flag("name", str), JSON),
    "report": (
        Flag("file", recording, "a file, a name in `cockpit recordings list`, or a study's directory", "FILE|NAME|DIR"),
        Flag("-o --output", Path, "write to FILE (default: stdout)"),
        Flag(
            "--format",
            ("text", "md", "json", "html", "csv", "verdicts-csv"),
            "default: by the suffix of -o, else text; csv (one line per run and metric) and verdicts-csv (one line per "
            "comparison and metric) are for studies",
        ),
        Flag("--json", True, "the same as --format json: a list with one entry per run"),
        Flag("--history", True, "html and md: with the earlier checks of the profile or URL; see cockpit history"),
    ),
    "export": _export_flags,
    "import": (
        Flag("file", Path, "a result of a load generator, an HdrHistogram log, sadf -j or sar"),
        Flag("-o --output", Path, "record into a new FILE (default: into the library)"),
        Flag(
            "--host",
            named_file,
            "samples of a host during the load, from sadf -j or sar; may be repeated",
            "NAME=FILE",
            many=True,
        ),
        Flag("--start", str, "start of the load, if missing in FILE, e.g. 2026-11-24T14:05:00Z", "TIME"),
        Flag("--date", day, "text of sar: the day of its first row, if its date is unclear", "2026-11-24"),
        Flag("--utc-offset", utc_offset, "text of sar: offset of its times from UTC", "+HH:MM", default="+00:00"),
        Flag("--unit", ("ns", "us", "ms"), "unit of an HdrHistogram log", default="ns"),
        Flag("--tag", str, "lines of an HdrHistogram log to import (default: those without a tag)", "TAG"),
        Flag("--target", str, "URL that was loaded, if missing in FILE", "URL", dest="url"),
        Flag("-c --concurrency", positive, "connections (default: the maximum of overlapping requests)"),
        JSON,
    ),
    "tune": (Flag("profile", str, PROFILE), *EVERY_TUNE),
    "tune show": (Flag("names", str, "knobs (default: all)", "NAME", nargs="*"),),
    "tune set": (
        Flag("names", str, "knobs and new values; several are one change", "NAME=VALUE", nargs="+"),
        Flag("--dry-run", True, "print the diff and its cost, change nothing"),
        Flag("--confirm-within", seconds, "roll back unless y is typed within T, e.g. 60s"),
        *_PROBE,
    ),
    "tune undo": (
        Flag("change", str, "name from `history` (default: an interrupted one, else the newest applied)", nargs="?"),
        _TUNED_HOST,
        *_PROBE,
    ),
    "tune history": (_TUNED_HOST,),
    "tune rounds": (
        Flag("names", str, "knobs and new values", "NAME=VALUE", nargs="+"),
        Flag("--rounds", positive, "maximum number of rounds, 4 to 50", default="12"),
        Flag("--seconds", seconds, "load per window, 15s or more", default="15s"),
        Flag("--seed", count, "seed of the random order", default="1"),
        Flag("--mirrored", True, "order A-B-B-A instead of a random one"),
        Flag("--keep", True, "keep the new values unless they are worse (default: restore the old ones)"),
        Flag("--record", Path, _RECORD),
        Flag("--target", str, "load this URL instead of the profile's", "URL", dest="url"),
    ),
    "tune action": (Flag("names", str, "actions to run in this order (default: list all)", "NAME", nargs="*"),),
}
_WITH_JSON = tuple(
    name
    for name, table in _FLAGS.items()
    if name != "tune" and not callable(table) and any(flag.names == "--json" for flag in flat(table))
)
# Documents with a schema: the outputs of --json by command (of subcommands with a dash), and others.
SCHEMAS = (
    *(name.replace(" ", "-") for name in _WITH_JSON),
    *(f"tune-{name}" for name in TUNE),
    *("ndjson", "profile", "spec"),
)
_FLAGS["schema"] = (Flag("of", SCHEMAS, metavar="NAME"),)


def flags_of(command: str) -> FlagTable:
    """Return the flags of a command, or of a subcommand such as `tune set`."""
    table = _FLAGS.get(command, ())
    return table() if callable(table) else table
