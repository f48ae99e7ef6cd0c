"""Imports summaries of wrk, wrk2 and `oha --output-format json` as a run. Pure.

A summary has totals and percentiles. The run has a single tick, because there are no data per second.

A file is hostile: every number is checked. Raises ValueError.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from cockpit.imports.formats import LONGEST, bounded, duration, error_kind
from cockpit.imports.percentiles import histogram_of
from cockpit.imports.runs import ForeignRun, check_span, target_of
from cockpit.model.histogram import EMPTY
from cockpit.model.load.plan import LoadPlan, RunTotals
from cockpit.model.tick import Tick

# Exclusive limit of counts.
_MOST = 1 << 50
# Maximum number of percentiles of a summary; wrk2 prints about 100.
_PERCENTILES = 1000
# Maximum characters of oha's summary; oha prints about 3000.
_LARGEST = 1 << 20
_TIMES = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_SIZES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}
# wrk rounds times to three digits, so its duration may differ from requests/rate by this share.
_ROUNDED = 0.02
# The error of oha for requests that were in flight at the end (-z).
_DEADLINE = "aborted due to deadline"


class Summary(NamedTuple):
    """Totals of a run of `seconds`.

    `points` are percentiles (per cent: seconds) of `counted` latencies; 0 is the minimum, 100 the maximum. `mean` in
    seconds; None: unknown. `intended`: latencies start at the intended time of sending. `received` and `body` in bytes;
    0: unknown. `missing` are names of unknown metrics, `warnings` are sentences.
    """

    tool: str
    seconds: float
    completed: int
    counted: int
    points: dict[float, float]
    mean: float | None = None
    url: str = ""
    concurrency: int | None = None
    duration: float | None = None
    statuses: Mapping[int, int] = {}
    errors: Mapping[str, int] = {}
    unexpected: Mapping[str, int] = {}
    abandoned: int = 0
    received: int = 0
    body: int = 0
    intended: bool = False
    missing: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def is_wrk(first: str) -> bool:
    return _RUNNING.match(first) is not None


def is_oha(head: str) -> bool:
    """Return whether a file with these first lines is JSON of oha; summaries of k6 start differently."""
    return "".join(head.split()).startswith('{"summary":{')


def run_of_summary(summary: Summary, url: str = "", concurrency: int | None = None) -> ForeignRun:
    """Return the run of a summary; `url` and `concurrency` override the file's values. Raises ValueError."""
    if summary.completed + sum(summary.errors.values()) < 1:
        raise ValueError("no requests")
    if summary.seconds <= 0:
        raise ValueError("the duration is 0")
    check_span(summary.seconds)
    histogram = histogram_of(summary.points.items(), summary.counted, summary.mean)
    # Little's law: the mean number of requests in flight.
    in_flight = concurrency or summary.concurrency or max(1, round(histogram.total_ns / 1e9 / summary.seconds))
    plan = LoadPlan(
        url=target_of(url, (summary.url,)),
        concurrency=min(in_flight, _MOST),
        duration=summary.duration,
        requests=None if summary.duration else summary.completed + sum(summary.errors.values()),
    )
    tick = Tick(
        t=summary.seconds,
        run=1,
        worker=0,
        start=0.0,
        sent=summary.completed + sum(summary.errors.values()) + summary.abandoned,
        completed=summary.completed,
        statuses=dict(summary.statuses),
        errors=dict(summary.errors),
        unexpected={kind: count for kind, count in summary.unexpected.items() if count},
        abandoned=summary.abandoned,
        service=EMPTY if summary.intended else histogram,
        response=histogram if summary.intended else EMPTY,
        bytes_received=summary.received or summary.body,
        body_bytes=summary.body,
    )
    known = tuple(sorted(summary.points)) if histogram.count else ()
    missing = ", ".join((*summary.missing, "CPU and lag of the generator"))
    warnings = (f"imported from {summary.tool}; not in the file, shown as 0 or none: {missing}", *summary.warnings)
    return ForeignRun(None, summary.seconds, plan, warnings, [tick], RunTotals(tool=summary.tool, percentiles=known))


# wrk

_RUNNING = re.compile(r"Running ([\d.]{1,12}[smh]) test @ (\S{1,2000})\s*$")
_UNCORRECTED = "(HdrHistogram - Uncorrected"


_TIME = r"[\d.]{1,12}(?:us|ms|s|m|h)"
# The lines with numbers, by their names.
_LINES = tuple(
    re.compile(rf"\s*{pattern}")
    for pattern in (
        r"\d{1,9} threads and (?P<connections>\d{1,9}) connections\s*$",
        r"Thread (?P<calibration>calibration): ",
        rf"Latency\s+(?P<mean>{_TIME})\s+\S+\s+(?P<max>{_TIME})\s+\S+\s*$",
        r"#\[Mean\s*=\s*(?P<spectrum_mean>[\d.]{1,20}),",
        r"#\[Max\s*=\s*[\d.]{1,20}, Total count\s*=\s*(?P<counted>\d{1,18})\]",
        rf"(?P<requests>\d{{1,18}}) requests in (?P<seconds>{_TIME}), (?P<bytes>[\d.]{{1,12}}[KMGTP]?)B read\s*$",
        r"Socket errors: connect (?P<connect>\d{1,12}), read (?P<read>\d{1,12}), write (?P<write>\d{1,12}),"
        r" timeout (?P<timeout>\d{1,12})\s*$",
        r"Non-2xx or 3xx responses: (?P<statuses>\d{1,12})\s*$",
        r"Requests/sec:\s+(?P<rate>[\d.]{1,20})\s*$",
    )
)
_POINT = re.compile(rf"\s*([\d.]{{1,8}})%\s+({_TIME})\s*$")
# wrk2: value (ms), percentile, number of values at or below it, 1/(1 - percentile).
_SPECTRUM = re.compile(r"\s*([\d.]{1,20})\s+([01]\.\d{1,12})\s+\d{1,18}\s+(?:[\d.]{1,20}|inf)\s*$")


def _time(text: str) -> float:
    digits = text.rstrip("umsh")
    return duration(digits, _TIMES[text.removeprefix(digits)])


def _bytes(text: str) -> float:
    digits = text.rstrip("KMGTP")
    return bounded(digits, _MOST, _SIZES[text.removeprefix(digits)])


# Numbers other than counts and rates.
_CONVERTED: Mapping[str, Callable[[str], float]] = {
    "calibration": lambda _: 1.0,
    **dict.fromkeys(("mean", "max", "seconds"), _time),
    "spectrum_mean": lambda text: duration(text, 1e-3),
    "bytes": _bytes,
}


@dataclass
class _WrkNumbers:
    """The numbers in wrk's lines; `spectrum` are the percentiles of wrk2's detailed distribution."""

    numbers: dict[str, float] = field(default_factory=dict)
    points: dict[float, float] = field(default_factory=dict)
    spectrum: dict[float, float] = field(default_factory=dict)
    url: str = ""

    def feed(self, line: str) -> None:
        """Read a line; unknown lines may be a script's. Raises ValueError for an invalid number."""
        if match := _RUNNING.match(line):
            self._begin(*match.groups())
        elif match := _POINT.match(line):
            self._add(self.points, bounded(match[1], 100), _time(match[2]))
        elif match := _SPECTRUM.match(line):
            self._add(self.spectrum, round(100 * bounded(match[2], 1), 6), duration(match[1], 1e-3))
        elif match := next(filter(None, (pattern.match(line) for pattern in _LINES)), None):
            for name, text in match.groupdict().items():
                self.numbers[name] = _CONVERTED[name](text) if name in _CONVERTED else bounded(text, _MOST)

    def _begin(self, length: str, url: str) -> None:
        if self.url:
            raise ValueError("several results; save each in its own file")
        self.url = url
        # wrk rounds minutes and hours, e.g. 90 s to 2m; then the run's own duration is closer to -d.
        if length.endswith("s"):
            self.numbers["planned"] = duration(length[:-1])

    def _add(self, to: dict[float, float], percent: float, seconds: float) -> None:
        # The first value counts, since a script prints after wrk. Of p100, the highest one counts: wrk2 rounds several
        # percentiles to 1.000000, of which the last is the maximum.
        to[percent] = max(seconds, to.get(percent, 0.0)) if percent == 100 else to.get(percent, seconds)
        if len(to) > _PERCENTILES:
            raise ValueError(f"more than {_PERCENTILES} percentiles")


def parse_wrk(lines: Iterator[str]) -> Summary:
    """Return the summary that wrk or wrk2 printed. Raises ValueError, with the line if it is invalid."""
    reader = _WrkNumbers()
    for number, line in enumerate(lines, 1):
        if _UNCORRECTED in line:
            # The second distribution of wrk2 -U has lines like the first one.
            _skip_distribution(lines)
            continue
        try:
            reader.feed(line)
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
    return _wrk_summary(reader)


def _skip_distribution(lines: Iterator[str]) -> None:
    for line in lines:
        if line.startswith("#[Buckets"):
            return


def _wrk_summary(parsed: _WrkNumbers) -> Summary:
    numbers = parsed.numbers
    missing = {"requests": "N requests in T", "rate": "Requests/sec"}
    for name, words in missing.items():
        if name not in numbers:
            raise ValueError(f"no line {words!r}; save the complete output of wrk")
    requests, bad, timeouts = (int(numbers.get(name, 0)) for name in ("requests", "statuses", "timeout"))
    version, points = (
        ("wrk2" if "calibration" in numbers or parsed.spectrum else "wrk"),
        parsed.spectrum or parsed.points,
    )
    errors = {kind: int(numbers[kind]) for kind in ("connect", "read", "write") if numbers.get(kind)}
    # A timeout of wrk is a complete response without a recorded latency; a timeout of wrk2 is a waiting connection.
    late = timeouts if version == "wrk" else 0
    errors |= {"timeout": timeouts - late} if timeouts > late else {}
    if max(late, bad) > requests:
        raise ValueError("more failed responses than requests")
    seconds = _wrk_seconds(requests, numbers)
    mean = numbers.get("spectrum_mean", numbers.get("mean"))
    if points and 100.0 not in points and "max" in numbers:
        points[100.0] = numbers["max"]
    warnings = [_TIMEOUTS.format(late)] if late else []
    if requests and numbers.get("counted") == 0:
        warnings.append(_CALIBRATION)
    elif not points and "mean" in numbers:
        warnings.append(_NO_PERCENTILES.format(1000 * numbers["mean"], 1000 * numbers["max"]))
    return Summary(
        tool=version,
        seconds=seconds,
        completed=requests,
        counted=min(int(numbers.get("counted", requests)), requests - late),
        points=points,
        mean=mean,
        url=parsed.url,
        concurrency=int(numbers.get("connections", 0)) or None,
        duration=numbers.get("planned") or float(round(seconds)) or None,
        errors=errors,
        # A response with both problems counts once.
        unexpected={"status": bad, "timeout": min(late, requests - bad)},
        received=round(numbers["bytes"]),
        intended=version == "wrk2",
        missing=("statuses", "connections"),
        warnings=tuple(warnings),
    )


_CALIBRATION = "no latencies; wrk2 discards those of its first 10 s (calibration)"
_TIMEOUTS = "{} responses took longer than wrk's --timeout and are not in the percentiles"
_NO_PERCENTILES = (
    "no percentiles, only mean {:.4g} ms and maximum {:.4g} ms; latencies are not recorded; rerun with wrk --latency"
)


_LOW_RATE = 20.0


def _wrk_seconds(requests: int, numbers: Mapping[str, float]) -> float:
    """Return the duration from the rate, which is more precise than wrk's duration with three digits, unless the rate
    is low: it has two decimals."""
    seconds, rate = numbers["seconds"], numbers["rate"]
    if not requests or rate < _LOW_RATE:
        return seconds
    if abs(requests / rate - seconds) > max(_ROUNDED * seconds, 0.01):
        raise ValueError("requests, duration and Requests/sec contradict each other")
    return requests / rate


# oha

_Count = Annotated[int, Meta(ge=0, lt=_MOST)]
_Seconds = Annotated[float, Meta(ge=0, le=LONGEST)]


class _OhaTotals(msgspec.Struct, frozen=True, rename="camel"):
    """Totals of oha. Without any response, all but `total` are NaN, which oha writes as null."""

    total: _Seconds
    slowest: _Seconds | None
    fastest: _Seconds | None
    average: _Seconds | None
    total_data: _Count


class _Oha(msgspec.Struct, frozen=True, rename="camel"):
    summary: _OhaTotals
    latency_percentiles: dict[Annotated[str, Meta(pattern=r"^p\d{1,2}(\.\d{1,6})?$")], _Seconds | None]
    status_code_distribution: dict[Annotated[int, Meta(ge=100, le=999)], _Count]
    error_distribution: dict[str, _Count]


def parse_oha(pieces: Iterable[str]) -> Summary:
    """Return the summary of `oha --output-format json` (older: `oha -j`). Raises ValueError."""
    text = ""
    for piece in pieces:
        text += piece
        if len(text) > _LARGEST:
            raise ValueError(f"larger than {_LARGEST >> 10} KiB")
    try:
        return _oha_summary(msgspec.json.decode(text, type=_Oha))
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        raise ValueError(f"{error}; write it with oha --output-format json") from None


def _oha_summary(parsed: _Oha) -> Summary:
    errors = Counter[str]()
    for name, count in parsed.error_distribution.items():
        if name != _DEADLINE:
            errors[error_kind(name)] += count
    completed, summary = sum(parsed.status_code_distribution.values()), parsed.summary
    points = {float(name[1:]): value for name, value in parsed.latency_percentiles.items()}
    if any(value is not None for value in points.values()):
        points |= {0.0: summary.fastest, 100.0: summary.slowest}
    return Summary(
        tool="oha --output-format json",
        seconds=summary.total,
        completed=completed,
        counted=completed,
        points={percent: value for percent, value in points.items() if value is not None} if completed else {},
        mean=summary.average if completed else None,
        statuses=parsed.status_code_distribution,
        errors=dict(errors),
        abandoned=parsed.error_distribution.get(_DEADLINE, 0),
        body=summary.total_data,
        missing=("connections",),
    )
