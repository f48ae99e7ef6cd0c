"""`cockpit export`: a recording in the formats of other tools."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from collections.abc import Iterable
from pathlib import Path

from cockpit.cli.arguments import EXPORT_FORMATS
from cockpit.cli.opening import recording_at
from cockpit.cli.terminal import put, put_bytes
from cockpit.model.errors import EXIT_GOOD, UsageError
from cockpit.model.events import encode
from cockpit.model.text import escaped
from cockpit.recording.reader import Recording, last_state
from cockpit.report.selectors import parse_source
from cockpit.session.replay import parse_instant

_SMALLEST, _LARGEST = (20, 5), (500, 200)
# Maximum pictures of a cast.
_MOST_PICTURES = 20_000


def export(options: Namespace) -> int:
    form = _format(options)
    source = parse_source(options.file)
    if source.time_range is not None or (source.run is not None and form != "hlog"):
        raise UsageError(f"{options.file}: only --format hlog takes a part of a recording: FILE#2")
    with recording_at(source.path) as recording:
        if form == "parquet":
            _put_parquet(recording, options.output)
            return EXIT_GOOD
        if form == "jsonl":
            made: Iterable[str] = (f"{escaped(encode(event).decode())}\n" for event in recording.events())
        elif form == "csv":
            from cockpit.report.series import series_csv

            made = series_csv(last_state(recording))
        elif form == "openmetrics":
            from cockpit.report.openmetrics import openmetrics

            made = openmetrics(last_state(recording))
        elif form == "hlog":
            made = _hlog(recording, source.run, options.file)
        else:
            made = (asyncio.run(_picture(recording, options, form)),)
        put(made, options.output)
    return EXIT_GOOD


def _format(options: Namespace) -> str:
    ending = options.output.suffix.lower().removeprefix(".") if options.output else ""
    form = options.format or ending
    if form not in EXPORT_FORMATS:
        raise UsageError(
            f"export: which format? --format {'|'.join(EXPORT_FORMATS)}, or an -o that ends in one of them"
        )
    if form not in ("cast", "svg"):
        given = [f"--{name}" for name in ("at", "until", "keys") if getattr(options, name)]
        if given:
            raise UsageError(f"{', '.join(given)}: of a picture of the screen (cast, svg), not of {form}")
    return str(form)


def _put_parquet(recording: Recording, output: Path | None) -> None:
    from cockpit.report.parquet import series_parquet

    if output is None:
        raise UsageError("--format parquet: is binary; name a file: -o FILE.parquet")
    put_bytes((series_parquet(last_state(recording)),), output)


def _hlog(recording: Recording, run: int | None, text: str) -> Iterable[str]:
    """Return the log of one run; of several runs, one must be named."""
    from cockpit.report.hlog import run_log

    runs = range(1, last_state(recording).runs + 1)
    if run is None and len(runs) != 1:
        raise UsageError(f"{text}: has {len(runs)} runs; name one as FILE#1")
    if run is not None and run not in runs:
        raise UsageError(f"{text}: no such run; it has {len(runs)}")
    return run_log(recording.events(), run or runs[0])


async def _picture(recording: Recording, options: Namespace, form: str) -> str:
    from cockpit.tui.terminal.picture import cast, svg_at

    size = _size(options.size)
    keys = [key for key in options.keys.split(",") if key]
    wall = recording.started.wall
    if form == "svg":
        at = parse_instant(options.at, recording.end, wall) if options.at else recording.end
        _check_within(recording, at)
        return await svg_at(recording, at, size, keys)
    start = parse_instant(options.at, recording.end, wall) if options.at else 0.0
    end = parse_instant(options.until, recording.end, wall, start) if options.until else recording.end
    _check_within(recording, start)
    if not start < end:
        raise UsageError(f"--until {options.until}: is not after the beginning")
    end = min(end, recording.end)
    if (end - start) / options.every > _MOST_PICTURES:
        raise UsageError(f"--every: makes more than {_MOST_PICTURES} pictures; write it longer, or --at and --until")
    return "".join([line async for line in cast(recording, (start, end), options.every, size, keys)])


def _check_within(recording: Recording, at: float) -> None:
    if not 0 <= at <= recording.end:
        raise UsageError(f"--at: outside the recording, which is {recording.end:.0f} s long")


def _size(text: str) -> tuple[int, int]:
    columns, cross, rows = text.partition("x")
    if not (cross and columns.isdecimal() and rows.isdecimal()):
        raise UsageError(f"--size {text!r}: write it as 120x40")
    size = int(columns), int(rows)
    if not (_SMALLEST[0] <= size[0] <= _LARGEST[0] and _SMALLEST[1] <= size[1] <= _LARGEST[1]):
        raise UsageError(f"--size {text}: allowed: 20x5 to 500x200")
    return size
