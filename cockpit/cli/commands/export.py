"""`cockpit export`: export a recording in the formats of other tools."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from collections.abc import Iterator

from cockpit.cli.export_formats import ExportFormat, export_formats, formats_with
from cockpit.cli.open_recording import recording_at
from cockpit.cli.terminal import put, put_bytes, write_utf8
from cockpit.model.errors import EXIT_GOOD, UsageError
from cockpit.model.events import encode
from cockpit.model.text import escaped
from cockpit.recording.reader import Recording, last_state
from cockpit.session.replay import parse_instant
from cockpit.session.selectors import parse_source

_MIN_SIZE, _MAX_SIZE = (20, 5), (500, 200)
# Maximum frames of a cast.
_MAX_FRAMES = 20_000


def export(options: Namespace) -> int:
    form = _format(options)
    source = parse_source(options.file)
    if source.time_range is not None or (source.run is not None and "run" not in (form.options or ())):
        raise UsageError(f"{options.file}: only --format {formats_with('run')} exports a part of a recording (FILE#2)")
    if form.binary and options.output is None:
        raise UsageError(f"--format {form.name}: binary; write to a file: -o FILE.{form.name}")
    # A cast of a long session takes as long as its frames.
    with recording_at(source.path, bounded="size" not in (form.options or ())) as recording:
        made = form.export(recording, vars(options) | {"run": source.run})
        if form.binary:
            put_bytes(made, options.output)
        else:
            write_utf8()
            put(made, options.output)
    return EXIT_GOOD


def _format(options: Namespace) -> ExportFormat:
    ending = options.output.suffix.lower().removeprefix(".") if options.output else ""
    form = export_formats().get(options.format or ending)
    if form is None:
        raise UsageError(
            f"export: no format; add --format {'|'.join(export_formats())}, or use one of these as the suffix of -o"
        )
    for name in ("at", "until", "keys"):
        if getattr(options, name) and name not in (form.options or ()):
            raise UsageError(f"--{name}: only for {formats_with(name)}, not for {form.name}; leave it out")
    return form


def event_lines(recording: Recording) -> Iterator[str]:
    return (f"{escaped(encode(event).decode())}\n" for event in recording.events())


def run_histograms(recording: Recording, run: int | None) -> Iterator[str]:
    """Return the HdrHistogram log of a run; `run` may be None for a recording with one run. Raises UsageError."""
    from cockpit.export.hlog import run_log

    runs = range(1, last_state(recording).runs + 1)
    if run is None and len(runs) != 1:
        raise UsageError(f"the recording has {len(runs)} runs; choose one as FILE#1")
    if run is not None and run not in runs:
        raise UsageError(f"no run {run}; the recording has {len(runs)}")
    return run_log(recording.events(), run or runs[0])


def screen_svg(recording: Recording, at: str | None, size: str, keys: str) -> Iterator[str]:
    from cockpit.tui.terminal.picture import svg_at

    instant = parse_instant(at, recording.end, recording.started.wall) if at else recording.end
    _check_within(recording, instant)
    yield asyncio.run(svg_at(recording, instant, _size(size), _keys(keys)))


def screen_cast(
    recording: Recording, at: str | None, until: str | None, every: float, size: str, keys: str
) -> Iterator[str]:
    wall = recording.started.wall
    start = parse_instant(at, recording.end, wall) if at else 0.0
    end = parse_instant(until, recording.end, wall, start) if until else recording.end
    _check_within(recording, start)
    if not start < end:
        raise UsageError(f"--until {until}: must be after the start")
    end = min(end, recording.end)
    if (end - start) / every > _MAX_FRAMES:
        raise UsageError(
            f"--every: more than {_MAX_FRAMES} frames; use a longer interval, or a shorter range with --at and --until"
        )
    yield asyncio.run(_cast(recording, (start, end), every, _size(size), _keys(keys)))


async def _cast(
    recording: Recording, time_range: tuple[float, float], every: float, size: tuple[int, int], keys: list[str]
) -> str:
    from cockpit.tui.terminal.picture import cast

    return "".join([line async for line in cast(recording, time_range, every, size, keys)])


def _keys(text: str) -> list[str]:
    return [key for key in text.split(",") if key]


def _check_within(recording: Recording, at: float) -> None:
    if not 0 <= at <= recording.end:
        raise UsageError(f"--at: outside the recording, which is {recording.end:.0f} s long")


def _size(text: str) -> tuple[int, int]:
    columns, cross, rows = text.partition("x")
    if not (cross and columns.isdecimal() and rows.isdecimal()):
        raise UsageError(f"--size {text!r}: write it as 120x40")
    size = int(columns), int(rows)
    if not (_MIN_SIZE[0] <= size[0] <= _MAX_SIZE[0] and _MIN_SIZE[1] <= size[1] <= _MAX_SIZE[1]):
        raise UsageError(f"--size {text}: allowed: 20x5 to 500x200")
    return size
