"""Flags of the commands that say what a run came to: check, compare, baseline, report, export."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from cockpit.cli.values import positive, recording, seconds

PART = "FILE, FILE#2 (its second run), FILE@10s..60s or FILE@14:05..14:10 (a stretch of it)"

CHECK_EPILOG = """\
thresholds: FIGURE < VALUE, with < <= > >= == !=. Figures: rate, failed, errors, completed, p50 to p99.999, mean, max,
connect.p99, first_byte.p99, generator.cpu, and of a host web1.cpu.idle, web1.processes.defunct, web1.io.tps, …; a wrong
name lists them all. VALUE: 200ms, 500, 12k, 20%, or '95% of baseline'.

exit codes: 0 all hold · 99 one failed (or has no data) · 4 one is inconclusive, or not steady with --steady ·
2 usage or profile · 3 target or host out of reach · 1 the generator failed · 130 interrupted
"""


def add_check(parser: argparse.ArgumentParser) -> None:
    parser.epilog, parser.formatter_class = CHECK_EPILOG, argparse.RawDescriptionHelpFormatter
    add = parser.add_argument_group("what it is checked against").add_argument
    expression: dict[str, Any] = {"metavar": "EXPR", "action": "append", "default": []}
    add("--threshold", help="such as 'p99 < 50ms' or 'rate >= 95%% of baseline'; may be repeated", **expression)
    add("--abort-on", help="a threshold too; the run ends as soon as it fails", **expression)
    add("--baseline", metavar="NAME", help="what '95%% of baseline' means; see cockpit baseline")
    add("--anyway", action="store_true", help="accept a baseline of another load")
    add("--steady", action="store_true", help="exit 4 unless the rate came to rest")
    add("--cap", type=seconds, metavar="T", help="the load ends after T (default 15s where it has no duration)")
    add("--runs", type=positive, metavar="N", help="run N times (a recording: check its last N runs); default 1")
    add("--save-baseline", metavar="NAME", help="keep the runs as a baseline")
    add("--add-to-baseline", metavar="NAME", help="add the runs to a baseline, or make one of them")
    add("--junit", type=Path, metavar="FILE", help="write the outcome as JUnit XML")


def add_compare(parser: argparse.ArgumentParser) -> None:
    parser.description = f"Each side: {PART}. FILE alone is all of its runs, where they are repeats of one load."
    add = parser.add_argument
    add("before", metavar="BEFORE")
    add("after", metavar="AFTER")
    add("--anyway", action="store_true", help="compare though the two loads differ")
    add("--json", action="store_true", help="the comparison as JSON on stdout")


def add_baseline(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("action", choices=("set", "add", "show", "list", "delete"))
    add("name", nargs="?", metavar="NAME")
    add("recording", nargs="*", metavar="RECORDING", help="set, add: the last run of each, or the one named as FILE#2")
    add("--runs", type=positive, default=1, metavar="N", help="set, add: the last N runs of each recording")
    add("--json", action="store_true", help="show, list: as JSON on stdout")


def add_report(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Of a study's folder also csv (a line per run and metric) and verdicts-csv (a line per comparison and metric)."
    )
    add = parser.add_argument
    add("file", type=recording, metavar="FILE|NAME|DIR", help="a file, a name in cockpit recordings, a study's folder")
    add("-o", "--output", type=Path, metavar="FILE", help="write it there; its ending tells the format")
    formats = ("text", "md", "json", "html", "csv", "verdicts-csv")
    add("--format", choices=formats, help="default: what the ending of -o tells, else text")
    add("--json", action="store_true", help="as --format json: of a recording a list, an entry per run")


def add_export(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "jsonl: every event. csv: a row a second of load and hosts, units in the names of the columns. hlog: an "
        "HdrHistogram log of one run (FILE#2). cast: the screen as asciinema plays it. svg: the screen at an instant."
    )
    add = parser.add_argument
    add("file", metavar="FILE", help="a recording; hlog: FILE#2 is its second run")
    add("--format", choices=("jsonl", "csv", "hlog", "cast", "svg"), help="default: what the ending of -o tells")
    add("-o", "--output", type=Path, metavar="FILE", help="write it there, not to stdout")
    add("--at", metavar="T", help="svg: the instant (default the end); cast: where it begins: 90s, -30s, 14:05")
    add("--until", metavar="T", help="cast: where it ends")
    add("--every", type=seconds, default=1.0, metavar="T", help="cast: session time between two pictures (default 1s)")
    add("--size", default="120x40", metavar="COLSxROWS", help="cast, svg: of the screen (default 120x40)")
    add("--keys", default="", metavar="LIST", help="svg, cast: keys pressed first, as Textual names them: p,s,down")
