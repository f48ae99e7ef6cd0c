"""An HdrHistogram log: one histogram per second of load, for HistogramLogAnalyzer, hdr-plot and similar tools.

Format: https://github.com/HdrHistogram/HdrHistogram, log version 1.3; values in nanoseconds, maxima in milliseconds.
Lines without a tag hold response times (under closed load service times). Lines with `Tag=service` hold service times,
if these differ.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from cockpit.model.errors import UsageError
from cockpit.model.events import AnyEvent, SessionStarted
from cockpit.model.histogram import Histogram
from cockpit.model.tick import Tick

# The highest value, and the format's numbers of plain and compressed histograms.
_HIGHEST = 1 << 53
_PLAIN, _COMPRESSED = 0x1C849313, 0x1C849314
# Ticks of a second may arrive while the next two seconds are running.
_LATE = 2


class HlogWriter:
    """Writes a new file during the load. `trouble` is an error of the disk as text; `empty`: there was no load.

    Raises UsageError if the file cannot be created.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.trouble = ""
        self.empty = True
        self._seconds: dict[int, list[Tick]] = {}
        try:
            self._file: TextIO = path.open("x", encoding="utf-8")
        except FileExistsError:
            raise UsageError(f"--hlog {path}: exists already; name another file") from None
        except OSError as error:
            raise UsageError(f"--hlog {path}: cannot be written: {error.strerror}") from None

    def feed(self, events: Sequence[AnyEvent]) -> None:
        for event in events:
            if isinstance(event, SessionStarted):
                self._write(_head(event.wall))
            elif isinstance(event, Tick) and not event.warmup:
                self.empty = False
                self._seconds.setdefault(int(event.start), []).append(event)
                self._flush(before=int(event.start) - _LATE)

    def close(self) -> None:
        """Write the seconds that are still open."""
        self._flush(before=None)
        try:
            self._file.close()
        except OSError as error:
            self._lose(error)

    def _flush(self, before: int | None) -> None:
        for second in sorted(self._seconds):
            if before is None or second < before:
                self._write(_lines(self._seconds.pop(second)))

    def _write(self, text: str) -> None:
        try:
            self._file.write(text)
        except OSError as error:
            self._lose(error)

    def _lose(self, error: OSError) -> None:
        self.trouble = f"--hlog {self.path}: {error.strerror}"


def run_log(events: Iterable[AnyEvent], run: int) -> Iterator[str]:
    """Yield the log of one run of a session, without its warm-up: the header, then one text per second."""
    seconds: dict[int, list[Tick]] = {}
    for event in events:
        if isinstance(event, SessionStarted):
            yield _head(event.wall)
        elif isinstance(event, Tick) and event.run == run and not event.warmup:
            seconds.setdefault(int(event.start), []).append(event)
    for second in sorted(seconds):
        yield _lines(seconds[second])


def _head(wall: float) -> str:
    began = datetime.fromtimestamp(wall, UTC).isoformat()
    return (
        "#[Histogram log format version 1.3]\n"
        f"#[StartTime: {wall:.3f} (seconds since epoch), {began}]\n"
        '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"\n'
    )


def _lines(ticks: list[Tick]) -> str:
    service = Histogram.merged(tick.service for tick in ticks)
    response = Histogram.merged(tick.response for tick in ticks)
    start, end = min(tick.start for tick in ticks), max(tick.t for tick in ticks)
    if not response.count:
        return _line("", service, start, end)
    return _line("", response, start, end) + _line("Tag=service,", service, start, end)


def _line(tag: str, histogram: Histogram, start: float, end: float) -> str:
    return f"{tag}{start:.3f},{end - start:.3f},{histogram.max_ns / 1e6:.3f},{encoded(histogram)}\n"


def encoded(histogram: Histogram) -> str:
    """Return the histogram in the compressed format V2, as base64: runs of empty buckets are negative numbers."""
    counts, place = bytearray(), 0
    for index, count in zip(histogram.indices.tolist(), histogram.counts.tolist(), strict=True):
        if index > place:
            counts += _zigzag(place - index)
        counts += _zigzag(count)
        place = index + 1
    plain = struct.pack(">iiiiqqd", _PLAIN, len(counts), 0, 3, 1, _HIGHEST, 1.0) + counts
    packed = zlib.compress(plain)
    return base64.b64encode(struct.pack(">ii", _COMPRESSED, len(packed)) + packed).decode()


def _zigzag(value: int) -> bytes:
    """Return a number as ZigZag LEB128: 7 bits per byte, the sign in the lowest."""
    rest, encoded = (value << 1) ^ (value >> 63), bytearray()
    while rest > 0x7F:
        encoded.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*encoded, rest])
