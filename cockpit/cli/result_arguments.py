"""Flags of the commands that check, compare and report results."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from cockpit.cli.pages import BASELINE, add_command
from cockpit.cli.values import positive, recording, seconds

_SIDE = "FILE, FILE#2 (its second run), FILE@10s..60s or FILE@14:05..14:10 (a time range)"


def add_check(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("check").add_argument
    expression: dict[str, Any] = {"metavar": "EXPR", "action": "append", "default": []}
    add("--threshold", help="e.g. 'p99 < 50ms' or 'rate >= 95%% of baseline'; may be repeated", **expression)
    add("--abort-on", help="a threshold that also ends the run as soon as it fails", **expression)
    add("--baseline", metavar="NAME", help="baseline to compare with; see cockpit baseline")
    add("--anyway", action="store_true", help="compare with a baseline of another load")
    add("--steady", action="store_true", help="exit 4 if the rate is unstable")
    add("--cap", type=seconds, metavar="T", help="end the load after T (default 15s if it has no duration)")
    add("--runs", type=positive, metavar="N", help="number of runs; of a recording the last N (default 1)")
    add("--save-baseline", metavar="NAME", help="save the runs as a baseline")
    add("--add-to-baseline", metavar="NAME", help="add the runs to a baseline, or make it")
    add("--junit", type=Path, metavar="FILE", help="write the result as JUnit XML")


def add_compare(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("before", metavar="BEFORE", help=_SIDE)
    add("after", metavar="AFTER", help="likewise; FILE alone means all its runs, if they are repeats of one load")
    add("--anyway", action="store_true", help="compare even if the loads differ")
    add("--json", action="store_true", help="print the comparison as JSON")


def add_baseline(parser: argparse.ArgumentParser) -> None:
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


def add_report(parser: argparse.ArgumentParser) -> None:
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


def add_export(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("file", metavar="FILE", help="a recording; for hlog FILE#2 is its second run")
    add("--format", choices=("jsonl", "csv", "hlog", "cast", "svg"), help="default: by the suffix of -o")
    add("-o", "--output", type=Path, metavar="FILE", help="write to FILE (default: stdout)")
    add("--at", metavar="T", help="svg: instant (default: the end); cast: start; e.g. 90s, -30s, 14:05")
    add("--until", metavar="T", help="cast: end (default: the end of the recording)")
    add("--every", type=seconds, default=1.0, metavar="T", help="cast: session time between frames (default 1s)")
    add("--size", default="120x40", metavar="COLSxROWS", help="cast, svg: size of the screen (default 120x40)")
    add("--keys", default="", metavar="LIST", help="cast, svg: keys to press first, as Textual names them: p,s,down")
