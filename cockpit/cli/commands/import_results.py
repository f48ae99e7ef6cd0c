"""`cockpit import`: record the results of other load generators and samples of sysstat."""

from __future__ import annotations

import codecs
import re
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from io import TextIOWrapper
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple, TextIO

from cockpit.cli.file_changes import ChangedFile, emit_changes
from cockpit.cli.live import report_recording
from cockpit.imports.formats import instant_of
from cockpit.imports.hlog import TOOL, hlog_run, is_hlog
from cockpit.imports.known_formats import format_of, known_format
from cockpit.imports.runs import ForeignRun, run_of
from cockpit.imports.sar_text import is_sar_text, parse_sar
from cockpit.imports.session import ForeignHost, session_of
from cockpit.imports.summaries import is_oha, is_wrk, parse_oha, parse_wrk, run_of_summary
from cockpit.imports.sysstat import is_sysstat, parse_sysstat
from cockpit.model.errors import EXIT_GOOD, UsageError
from cockpit.model.events import AnyEvent
from cockpit.model.fold.fold import fold
from cockpit.model.state import State
from cockpit.model.text import sanitize
from cockpit.recording import library
from cockpit.recording.write_queue import LIMIT
from cockpit.recording.writer import RecordingWriter

# Maximum number of other lines before the results, e.g. a prompt or the output of a script.
_LEADING = 100
# Maximum length of a line.
_MAX_LINE = 1 << 20
# Weight of the events that wait for the disk.
_MAX_BACKLOG = LIMIT // 4


class _Content(NamedTuple):
    """Content of a file: a run, or a host named after its node."""

    tool: str
    run: ForeignRun | None = None
    host: ForeignHost | None = None


def import_results(options: Namespace) -> int:
    file: Path = options.file
    wall = _start(options.start)
    content = _read(file, options)
    hosts = [content.host] if content.host else []
    for name, path in options.host:
        other = _read(path, options).host
        if other is None:
            raise UsageError(f"--host {name}={path}: not a sysstat file; write one with sadf -j FILE -- -A")
        hosts.append(other._replace(name=name))
    _check_options(options, content, hosts)
    if wall is None:
        wall = _file_start(file, content.run)
    try:
        events = list(session_of(sanitize(file.stem, 80), wall, content.run, hosts))
    except ValueError as error:
        raise UsageError(f"{file}: {sanitize(str(error), 300)}") from None
    named: Path | None = options.output
    writer = RecordingWriter(named) if named else library.new_recording(file.stem, time.time())
    _record(events, writer)
    report_recording(writer.path)
    if options.json:
        emit_changes([ChangedFile.wrote(Path(writer.path))], as_json=True)
    return EXIT_GOOD


def _file_start(file: Path, run: ForeignRun | None) -> float:
    """Return the modification time of the file (epoch s), less the duration of the run if the file is a summary."""
    written = file.stat().st_mtime
    return max(0.0, written - run.seconds) if run is not None and run.totals is not None else written


def _read(file: Path, options: Namespace) -> _Content:
    """Return the content of a file, and print which tool wrote it. Raises UsageError."""
    try:
        # Opened once: the file may be a pipe.
        with file.open("rb") as binary:
            wide = binary.peek(2)[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
            with TextIOWrapper(binary, "utf-16" if wide else "utf-8-sig", errors="replace", newline="") as lines:
                content = _content(lines, file, options)
    except ValueError as error:
        raise UsageError(f"{file}: {sanitize(str(error), 300)}") from None
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}") from None
    print(f"{file}: {content.tool}", file=sys.stderr)
    return content


def _content(lines: TextIO, file: Path, options: Namespace) -> _Content:
    checked = _limited_lines(lines)
    head = list(islice(checked, _LEADING + 1))
    leading = next((place for place in range(len(head)) if _is_known(head[place:])), None)
    if leading is None:
        format_of(next((line for line in head if line.strip()), ""))
        leading = 0
    try:
        return _known_content(head[leading:], checked, file, options)
    except ValueError as error:
        raise ValueError(f"after {leading} other lines: {error}" if leading else str(error)) from None


def _is_known(head: Sequence[str]) -> bool:
    """Return whether a known format begins with the first of these lines."""
    return any(matches(head) for matches, _ in _READERS)


def _known_content(head: Sequence[str], checked: Iterator[str], file: Path, options: Namespace) -> _Content:
    read = next((read for matches, read in _READERS if matches(head)), _requests)
    return read(head[0], chain(head, checked), file, options)


def _sysstat(first: str, lines: Iterator[str], file: Path, options: Namespace) -> _Content:
    host = parse_sysstat([*lines])
    return _Content("sysstat", host=ForeignHost(_host_name(host.nodename), host, file.name))


def _sar(first: str, lines: Iterator[str], file: Path, options: Namespace) -> _Content:
    host = parse_sar(lines, options.utc_offset, options.date)
    zone = f"times read as UTC{options.utc_offset / 3600:+g} h" if options.utc_offset else "times read as UTC"
    assumed = f"from {host.statistics[0].timestamp.date} on (--date), {zone} (--utc-offset)"
    foreign = ForeignHost(_host_name(host.nodename), host, file.name, (assumed,))
    return _Content(f"text of sar, {assumed}", host=foreign)


def _summary(first: str, lines: Iterator[str], file: Path, options: Namespace) -> _Content:
    summary = parse_wrk(lines) if is_wrk(first) else parse_oha(lines)
    return _Content(f"summary of {summary.tool}", run_of_summary(summary, options.url or "", options.concurrency))


def _hdr_log(first: str, lines: Iterator[str], file: Path, options: Namespace) -> _Content:
    run = hlog_run(lines, options.unit, options.tag, options.url or "", options.concurrency)
    return _Content(f"{TOOL}, values in {options.unit}", run)


def _requests(first: str, lines: Iterator[str], file: Path, options: Namespace) -> _Content:
    form = format_of(first)
    return _Content(form.tool, run_of(form.read(lines), form, options.url or "", options.concurrency))


_Reader = Callable[[str, Iterator[str], Path, Namespace], _Content]
# Kinds of files: whether one begins with these lines, and its content. Formats with one line per request are declared
# in imports/formats.py, and by packages of others.
_READERS: tuple[tuple[Callable[[Sequence[str]], bool], _Reader], ...] = (
    (lambda head: is_sysstat("".join(head[:2])), _sysstat),
    (lambda head: is_sar_text(head[0]), _sar),
    (lambda head: is_wrk(head[0]) or is_oha("".join(head[:2])), _summary),
    (lambda head: is_hlog(head[0]), _hdr_log),
    (lambda head: known_format(head[0]) is not None, _requests),
)


def _host_name(node: str) -> str:
    """Return the first label of a node's name, as a valid host name in thresholds."""
    return re.sub(r"[^A-Za-z0-9_-]+|^[^A-Za-z0-9]+", "-", node.partition(".")[0]).strip("-") or "host"


def _check_options(options: Namespace, content: _Content, hosts: Sequence[ForeignHost]) -> None:
    """Raise UsageError for options that contradict each other or the files."""
    names = [host.name for host in hosts]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"--host {twice}=…: two hosts have this name; choose another name")
    flag = "--utc-offset" if options.utc_offset else "--date" if options.date else ""
    if flag and not any(host.assumed for host in hosts):
        raise UsageError(f"{flag}: only for text of sar; {options.file} has times in UTC, or none")
    run = content.run
    if run and options.start and run.began is not None:
        raise UsageError(f"--start: {options.file} has the start of the load; leave --start out")
    if run and run.began is None and hosts and not options.start:
        raise UsageError(f"{options.file}: the start of the load is missing; add --start 2026-11-24T14:05:00Z")
    for flag, given in (("--start", options.start), ("--target", options.url), ("-c", options.concurrency)):
        if run is None and given:
            raise UsageError(f"{flag}: only for load; {options.file} has samples of a host only")


def _start(text: str | None) -> float | None:
    try:
        return None if text is None else instant_of(text)
    except ValueError:
        raise UsageError(f"--start {text}: write it as 2026-11-24T14:05:00Z") from None


def _limited_lines(file: TextIO) -> Iterator[str]:
    # A line of gigabytes must not be read whole.
    for number, line in enumerate(iter(partial(file.readline, _MAX_LINE + 1), ""), 1):
        if len(line) > _MAX_LINE:
            raise ValueError(f"line {number} is longer than {_MAX_LINE} characters")
        yield line


def _record(events: Sequence[AnyEvent], writer: RecordingWriter) -> None:
    """Record all events, at the speed of the disk. Raises UsageError if one is lost."""
    state = State()
    try:
        for event in events:
            while writer.backlog > _MAX_BACKLOG:
                _check(writer)
                time.sleep(0.01)
            writer.record([event])
            state = fold(state, event)
            writer.settle(state)
    finally:
        writer.close()
    _check(writer)


def _check(writer: RecordingWriter) -> None:
    if problem := writer.trouble or "; ".join(writer.gaps):
        raise UsageError(f"{writer.path}: {problem}")
