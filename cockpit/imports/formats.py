"""Results of other load generators, one line per request: which tool wrote a file, and its requests. Pure.

Summaries of wrk and oha are read by `summaries`. Others are refused: their tools write single requests, too.

A file is hostile: every number is checked. Raises ValueError for a line that does not fit, with the line's number.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

# No request takes longer (s), and no instant is later (epoch s): the limit of a recording.
LONGEST, LATEST = 1e6, 9.9e10
# Words of an error -> its kind.
_KINDS = {
    "timeout": "timeout",
    "timed out": "timeout",
    "deadline": "timeout",
    "refused": "refused",
    "reset": "reset",
    "no such host": "name_not_found",
    "unknownhost": "name_not_found",
    "failed to respond": "closed_before_response",
    "x509": "tls",
    "tls": "tls",
    "ssl": "tls",
    "eof": "closed_early",
    "closed before message completed": "closed_early",
}
OTHER_ERROR = "other"
# How the message of a JMeter row that is a transaction begins.
_TRANSACTION = "Number of samples in transaction :"


class ForeignRequest(NamedTuple):
    """`start` in seconds (of the epoch, or of the run), `seconds` until its end. `status` 0: unknown, or, with an
    `error`, none. `passed` is the tool's own verdict on a complete response; None: unknown."""

    start: float
    seconds: float
    status: int = 0
    size: int = 0
    error: str = ""
    url: str = ""
    passed: bool | None = None


class ForeignFormat(NamedTuple):
    """`since_epoch`: its instants are of the epoch. `granular`: they are whole seconds. `failures`: it has requests
    without a response, too."""

    tool: str
    matches: Callable[[str], bool]
    read: Callable[[Iterator[str]], Iterator[ForeignRequest]]
    since_epoch: bool = True
    granular: bool = False
    failures: bool = True


def format_of(first: str) -> ForeignFormat:
    """Return the format of a file by its first line. Raises ValueError with the formats there are."""
    found = next((each for each in FORMATS if each.matches(first)), None)
    if found is not None:
        return found
    for sign, instead in _SUMMARIES.items():
        if first.lstrip().startswith(sign):
            raise ValueError(f"a summary without single requests; {instead}")
    if _SYSSTAT.match(first):
        raise ValueError("a sysstat file that is not JSON; convert it with sadf -j FILE -- -A")
    known = ", ".join(each.tool for each in FORMATS)
    others = "summaries of wrk and oha --output-format json; HdrHistogram logs; sadf -j FILE -- -A; text of sar"
    raise ValueError(f"unknown format; supported with one line per request: {known}; others: {others}")


def _table(parse: Callable[[Mapping[str, str]], ForeignRequest | None], delimiter: str = ",") -> Any:
    """Return a reader of lines with a line of titles."""

    def read(lines: Iterator[str]) -> Iterator[ForeignRequest]:
        rows = csv.DictReader(lines, delimiter=delimiter)
        while True:
            try:
                row = next(rows, None)
                if row is None:
                    return
                found = parse(row)
            except (ValueError, KeyError, TypeError, AttributeError, csv.Error) as error:
                raise _at(rows.line_num, error) from None
            if found is not None:
                yield found

    return read


def _lines(parse: Callable[[str], ForeignRequest | None]) -> Any:
    """Return a reader of lines without titles."""

    def read(lines: Iterator[str]) -> Iterator[ForeignRequest]:
        for number, line in enumerate(lines, 1):
            try:
                found = parse(line) if line.strip() else None
            except (ValueError, KeyError, TypeError, IndexError, RecursionError, AttributeError) as error:
                raise _at(number, error) from None
            if found is not None:
                yield found

    return read


def _at(line: int, error: Exception) -> ValueError:
    """Return the error with its line. csv.DictReader fills missing cells with None, which raises other exceptions."""
    if isinstance(error, KeyError):
        return ValueError(f"line {line}: {error.args[0]!r} is missing")
    return ValueError(f"line {line}: {error if isinstance(error, ValueError) else 'too few columns'}")


def bounded(word: str | float, most: float, factor: float = 1.0) -> float:
    """A number from 0 to `most`, in units of `factor`. Raises ValueError."""
    value = float(word) * factor
    if not 0 <= value <= most or not math.isfinite(value):
        raise ValueError(f"{str(word)[:24]!r} is out of range")
    return value


def _instant(word: str | float, factor: float = 1.0) -> float:
    return bounded(word, LATEST, factor)


def duration(word: str | float, factor: float = 1.0) -> float:
    """Seconds, from a number in units of `factor`. Raises ValueError."""
    return bounded(word, LONGEST, factor)


def _status(word: str | int) -> int:
    status = int(word) if word != "" else 0
    return status if 0 < status < 1000 else 0


def _size(word: str | int) -> int:
    return int(bounded(word or 0, 2**50))


def error_kind(words: str) -> str:
    lower = words.lower()
    return next((kind for sign, kind in _KINDS.items() if sign in lower), OTHER_ERROR)


def instant_of(text: str) -> float:
    """Return the epoch seconds of a time in RFC 3339, with nanoseconds. Raises ValueError."""
    head, dot, rest = text.partition(".")
    digits = len(rest) - len(rest.lstrip("0123456789"))
    fraction, zone = (rest[:digits], rest[digits:]) if dot else ("0", "")
    when = datetime.fromisoformat(head + zone if dot else head)
    if when.tzinfo is None:
        raise ValueError(f"{text[:40]!r} has no time zone")
    return _instant(when.timestamp() + float(f"0.{fraction}"))


def _ab(row: Mapping[str, str]) -> ForeignRequest:
    return ForeignRequest(_instant(row["seconds"]), duration(row["ttime"], 1e-3))


def _hey(row: Mapping[str, str]) -> ForeignRequest:
    return ForeignRequest(duration(row["offset"]), duration(row["response-time"]), _status(row["status-code"]))


def _oha(row: Mapping[str, str]) -> ForeignRequest:
    start, seconds = duration(row["request-start"]), duration(row["request-duration"])
    return ForeignRequest(start, seconds, _status(row["status"]), _size(row["bytes"]))


class _JMeterSamples:
    """Requests of JMeter's rows: samples as its summary counts them.

    Parts of a sample (a redirect, embedded resources) have rows of their own within its time, and named after it, which
    would count twice; so would transactions, which have the time of several samples."""

    def __init__(self) -> None:
        # The last sample of each thread: label, start and end (ms).
        self._last: dict[str, tuple[str, int, int]] = {}

    def request(self, row: Mapping[str, str]) -> ForeignRequest | None:
        code, message = row["responseCode"], row.get("responseMessage") or ""
        start, seconds = _instant(row["timeStamp"], 1e-3), duration(row["elapsed"], 1e-3)
        if message.startswith(_TRANSACTION) or self._is_part(row):
            return None
        status = _status(code) if code.isdecimal() else 0
        passed = _verdict(row.get("success"))
        error = "" if status or passed else error_kind(f"{code} {message}")
        size = 0 if error else _size(row.get("bytes") or 0)
        return ForeignRequest(start, seconds, status, size, error, row.get("URL") or "", passed)

    def _is_part(self, row: Mapping[str, str]) -> bool:
        thread, label = row.get("threadName") or "", row.get("label") or ""
        start = int(row["timeStamp"])
        end = start + int(row["elapsed"])
        before, begin, until = self._last.get(thread, ("", 0, 0))
        named = label.removeprefix(before).replace("-", "").isdecimal() and label.startswith(f"{before}-")
        # A thread sends one sample after the other; without its name only the label tells.
        if begin <= start and end <= until and (named or (thread and start < until)):
            return True
        self._last[thread] = (label, start, end)
        return False


def _verdict(word: str | None) -> bool | None:
    return {"true": True, "false": False}.get(word or "")


def _jmeter(lines: Iterator[str]) -> Iterator[ForeignRequest]:
    found: Iterator[ForeignRequest] = _table(_JMeterSamples().request)(lines)
    return found


def _k6(row: Mapping[str, str]) -> ForeignRequest | None:
    if row["metric_name"] != "http_req_duration":
        return None
    seconds = duration(row["metric_value"], 1e-3)
    status = _status(row["status"])
    # The instant of a sample is its end.
    start = max(0.0, _k6_instant(row["timestamp"]) - seconds)
    error = "" if status else error_kind(row["error"])
    return ForeignRequest(
        start, seconds, status, 0, error, row.get("url") or "", _verdict(row.get("expected_response"))
    )


def _k6_instant(word: str) -> float:
    """Seconds by default; K6_CSV_TIME_FORMAT has others."""
    if not word.isdecimal():
        return instant_of(word)
    return _instant(word, 10.0 ** -max(0, 3 * ((len(word) - 10 + 2) // 3)))


def _k6_json(line: str) -> ForeignRequest | None:
    point = json.loads(line)
    if point.get("type") != "Point" or point.get("metric") != "http_req_duration":
        return None
    data = point["data"]
    tags = data["tags"]
    seconds, status = duration(data["value"], 1e-3), _status(tags.get("status", "0"))
    error = "" if status else error_kind(str(tags.get("error", "")))
    start, passed = max(0.0, instant_of(data["time"]) - seconds), _verdict(tags.get("expected_response"))
    return ForeignRequest(start, seconds, status, 0, error, str(tags.get("url", "")), passed)


def _vegeta_json(line: str) -> ForeignRequest:
    hit = json.loads(line)
    status = _status(hit["code"])
    error = "" if status else error_kind(str(hit.get("error", "")))
    start, seconds = instant_of(hit["timestamp"]), duration(hit["latency"], 1e-9)
    return ForeignRequest(start, seconds, status, _size(hit["bytes_in"]), error, str(hit.get("url", "")))


def _vegeta_csv(line: str) -> ForeignRequest:
    cells = next(csv.reader([line]))
    status = _status(cells[1])
    error = "" if status else error_kind(cells[5])
    url = cells[10] if len(cells) > 10 else ""
    start, seconds = _instant(cells[0], 1e-9), duration(cells[2], 1e-9)
    return ForeignRequest(start, seconds, status, _size(cells[4]), error, url)


def _h2load(line: str) -> ForeignRequest:
    start, status, seconds = line.split("\t")[:3]
    known = _status(status) if not status.startswith("-") else 0
    return ForeignRequest(_instant(start, 1e-6), duration(seconds, 1e-6), known, 0, "" if known else OTHER_ERROR)


def _is_vegeta_csv(first: str) -> bool:
    cells = first.split(",")
    return len(cells) >= 9 and cells[0].isdecimal() and len(cells[0]) == 19


def _is_h2load(first: str) -> bool:
    words = first.rstrip("\n").split("\t")
    return len(words) == 3 and all(word.removeprefix("-").isdecimal() for word in words)


def _begins(*texts: str) -> Callable[[str], bool]:
    return lambda first: first.startswith(texts)


FORMATS: Iterable[ForeignFormat] = (
    ForeignFormat("ab -g", _begins("starttime\tseconds\tctime"), _table(_ab, "\t"), granular=True),
    ForeignFormat("hey -o csv", _begins("response-time,"), _table(_hey), since_epoch=False),
    ForeignFormat(
        "oha --output-format csv", _begins("request-start,"), _table(_oha), since_epoch=False, failures=False
    ),
    ForeignFormat("JMeter JTL (CSV)", _begins("timeStamp,elapsed,"), _jmeter),
    ForeignFormat("k6 --out csv", _begins("metric_name,timestamp,"), _table(_k6), granular=True),
    ForeignFormat("k6 --out json", _begins('{"type":"Metric"', '{"metric":', '{"type":"Point"'), _lines(_k6_json)),
    ForeignFormat("vegeta encode --to json", _begins('{"attack":'), _lines(_vegeta_json)),
    ForeignFormat("vegeta encode --to csv", _is_vegeta_csv, _lines(_vegeta_csv)),
    ForeignFormat("h2load --log-file", _is_h2load, _lines(_h2load)),
)
# How text of sar begins, and its binary file as UTF-8: the magic numbers 0xd596 and 0x2175 (or another, by version).
_SYSSTAT = re.compile(r"Linux .*CPU\)|\ufffd\ufffd[a-z]!")
# How a summary begins, and how to get the requests instead.
_SUMMARIES = {
    "This is ApacheBench": "rerun it with ab -g FILE",
    "starting benchmark": "rerun it with h2load --log-file=FILE",
    "Summary:": "rerun it with hey -o csv, or oha --output-format csv",
    "{": "rerun k6 with --out csv=FILE, or oha with --output-format json; convert results of vegeta with vegeta encode",
}
