"""Results of other load generators with one line per request. Pure.

Summaries of wrk and oha are read by `summaries`. Other summaries are refused, because their tools can write single
requests.

A file is hostile: every number is checked. Raises ValueError with the number of an invalid line.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from typing import Any, NamedTuple

from cockpit.imports.jmeter_xml import TRANSACTION, xml_rows

# Maximum duration of a request (s), and latest time (epoch s): the limits of a recording.
LONGEST, LATEST = 1e6, 9.9e10
# Kinds of errors by words in their messages, in lower case.
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
    # hyper (oha): the connection ended before the head of a response, or in its body.
    "closed before message completed": "closed_before_response",
    "error reading a body": "closed_early",
}
OTHER_ERROR = "other"
# Errors of parsing an invalid row. Types other than ValueError are from missing cells, which are None.
_INVALID = (ValueError, KeyError, TypeError, IndexError, RecursionError, AttributeError, OverflowError)


class ForeignRequest(NamedTuple):
    """A request: `start` in seconds (since the epoch, or since the start of the run), `seconds` until its end.

    `status` 0: unknown, or no response if there is an `error`. `passed` is the tool's own verdict on a complete
    response; None: unknown.
    """

    start: float
    seconds: float
    status: int = 0
    size: int = 0
    error: str = ""
    url: str = ""
    passed: bool | None = None


Reader = Callable[[Iterator[str]], Iterator[ForeignRequest]]


class ForeignFormat(NamedTuple):
    """A file format. `since_epoch`: times are epoch seconds. `granular`: times are whole seconds. `unlisted`: failures
    that the tool does not write; "": it writes all."""

    tool: str
    matches: Callable[[str], bool]
    read: Reader
    since_epoch: bool = True
    granular: bool = False
    unlisted: str = ""


def _delimiter(line: str) -> str:
    return max(",;\t|", key=line.count)


def _titles(line: str) -> list[str]:
    return [title.strip().strip('"') for title in line.split(_delimiter(line))]


def _has_columns(*names: str) -> Callable[[str], bool]:
    return lambda first: set(names) <= set(_titles(first))


def _requests(
    rows: Iterable[tuple[int, Any]], parse: Callable[[Any], ForeignRequest | None]
) -> Iterator[ForeignRequest]:
    """Yield the requests of rows, which have the number of their line."""
    for number, row in rows:
        try:
            request = parse(row)
        except _INVALID as error:
            raise _at_line(number, error) from None
        if request is not None:
            yield request


def _table(parse: Callable[[Mapping[str, str]], ForeignRequest | None], titles: Sequence[str] | None = None) -> Reader:
    """Return a reader of a table with any delimiter, whose first line has the titles unless they are given."""
    return lambda lines: _requests(_table_rows(lines, titles), parse)


def _table_rows(lines: Iterator[str], titles: Sequence[str] | None) -> Iterator[tuple[int, Mapping[str, str]]]:
    first = next(lines, "")
    rows = csv.DictReader(chain([first], lines), titles, delimiter=_delimiter(first))
    try:
        for row in rows:
            yield rows.line_num, row
    except csv.Error as error:
        raise _at_line(rows.line_num, error) from None


def _lines(parse: Callable[[str], ForeignRequest | None]) -> Reader:
    return lambda lines: _requests(((number, line) for number, line in enumerate(lines, 1) if line.strip()), parse)


def _at_line(line: int, error: Exception) -> ValueError:
    if isinstance(error, KeyError):
        return ValueError(f"line {line}: {error.args[0]!r} is missing")
    if isinstance(error, OverflowError):
        return ValueError(f"line {line}: a number is out of range")
    return ValueError(f"line {line}: {error if isinstance(error, ValueError) else 'too few columns'}")


def bounded(word: str | float, most: float, factor: float = 1.0) -> float:
    """Parse a number and multiply it by `factor`. Raises ValueError if the result is not from 0 to `most`."""
    value = float(word) * factor
    if not 0 <= value <= most or not math.isfinite(value):
        raise ValueError(f"{str(word)[:24]!r} is out of range")
    return value


def _instant(word: str | float, factor: float = 1.0) -> float:
    return bounded(word, LATEST, factor)


def duration(word: str | float, factor: float = 1.0) -> float:
    """Return a duration in seconds, from a number in units of `factor` seconds. Raises ValueError."""
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
    """Parse a time in RFC 3339, with up to nanoseconds, to epoch seconds. Raises ValueError."""
    head, dot, rest = text.partition(".")
    digits = len(rest) - len(rest.lstrip("0123456789"))
    fraction, zone = (rest[:digits], rest[digits:]) if dot else ("0", "")
    when = datetime.fromisoformat(head + zone if dot else head)
    if when.tzinfo is None:
        raise ValueError(f"{text[:40]!r} has no time zone")
    return _instant(when.timestamp() + float(f"0.{fraction}"))


def _hey(row: Mapping[str, str]) -> ForeignRequest:
    if "offset" not in row:
        raise ValueError("the columns status-code and offset are missing; rerun it with hey 0.1.1 or later")
    return ForeignRequest(duration(row["offset"]), duration(row["response-time"]), _status(row["status-code"]))


def _oha(row: Mapping[str, str]) -> ForeignRequest:
    start, seconds = duration(row["request-start"]), duration(row["request-duration"])
    return ForeignRequest(start, seconds, _status(row["status"]), _size(row["bytes"]))


class _JMeterSamples:
    """Converts JMeter's rows to requests: the samples that JMeter's summary counts.

    Parts of a sample (a redirect, embedded resources) also have rows, within the sample's time and named after it; they
    would count twice. So would transactions, which have the time of several samples."""

    def __init__(self) -> None:
        # The last sample of each thread: label, start and end (ms).
        self._last: dict[str, tuple[str, int, int]] = {}

    def request(self, row: Mapping[str, str]) -> ForeignRequest | None:
        if not row["timeStamp"].isdecimal():
            row = {**row, "timeStamp": str(_formatted_ms(row["timeStamp"]))}
        code, message = row["responseCode"], row.get("responseMessage") or ""
        start, seconds = _instant(row["timeStamp"], 1e-3), duration(row["elapsed"], 1e-3)
        if message.startswith(TRANSACTION) or self._is_part(row):
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
        whole, begin, until = self._last.get(thread, ("", 0, 0))
        numbered = label.removeprefix(whole).replace("-", "").isdecimal() and label.startswith(f"{whole}-")
        # The samples of a thread do not overlap. Without thread names, only the label identifies a part.
        if begin <= start and end <= until and (numbered or (thread and start < until)):
            return True
        self._last[thread] = (label, start, end)
        return False


def _formatted_ms(text: str) -> int:
    """Return a time with the year first, as UTC if it has no zone, in ms. JMeter's format is an option, and days and
    months of other orders cannot be told apart."""
    try:
        when = datetime.fromisoformat(text[:40].strip().replace("/", "-").replace(",", "."))
    except ValueError:
        raise ValueError(
            f"the time {text[:40]!r} does not begin with year, month, day; set "
            "jmeter.save.saveservice.timestamp_format=ms"
        ) from None
    return round(when.replace(tzinfo=when.tzinfo or UTC).timestamp() * 1000)


def _verdict(word: str | None) -> bool | None:
    return {"true": True, "false": False}.get(word or "")


# JMeter's first columns, without print_field_names.
_JMETER = ("timeStamp", "elapsed", "label", "responseCode", "responseMessage", "threadName", "dataType", "success")


_has_jmeter_titles = _has_columns("timeStamp", "elapsed", "responseCode")


def _jmeter(lines: Iterator[str]) -> Iterator[ForeignRequest]:
    first = next(lines, "")
    titles = None if _has_jmeter_titles(first) else _JMETER
    return _table(_JMeterSamples().request, titles)(chain([first], lines))


def _is_jmeter(first: str) -> bool:
    cells = _titles(first)
    row = len(cells) >= len(_JMETER) and len(cells[0]) == 13 and cells[0].isdecimal() and cells[7] in ("true", "false")
    return row or _has_jmeter_titles(first)


def _answered(
    start: float, seconds: float, status: str | int, problem: Any, size: int = 0, url: Any = "", passed: Any = None
) -> ForeignRequest:
    """Return a request that failed with the `problem` if it has no status."""
    known = _status(status)
    error = "" if known else error_kind(str(problem or ""))
    return ForeignRequest(start, seconds, known, size, error, str(url or ""), _verdict(passed))


def _k6_request(end: float, milliseconds: Any, tags: Mapping[str, Any]) -> ForeignRequest:
    """Return the request of a sample, whose time is its end."""
    seconds = duration(milliseconds, 1e-3)
    problem, url, passed = (tags.get(name) for name in ("error", "url", "expected_response"))
    return _answered(max(0.0, end - seconds), seconds, tags.get("status") or 0, problem, 0, url, passed)


def _k6(row: Mapping[str, str]) -> ForeignRequest | None:
    if row["metric_name"] != "http_req_duration":
        return None
    return _k6_request(_k6_instant(row["timestamp"]), row["metric_value"], row)


def _k6_instant(word: str) -> float:
    """Parse a time of k6: seconds by default, or another format of K6_CSV_TIME_FORMAT."""
    if not word.isdecimal():
        return instant_of(word)
    return _instant(word, 10.0 ** -max(0, 3 * ((len(word) - 10 + 2) // 3)))


def _k6_json(line: str) -> ForeignRequest | None:
    point = json.loads(line)
    if point.get("type") != "Point" or point.get("metric") != "http_req_duration":
        return None
    data = point["data"]
    return _k6_request(instant_of(data["time"]), data["value"], data["tags"])


def _vegeta_json(line: str) -> ForeignRequest:
    hit = json.loads(line)
    start, seconds = instant_of(hit["timestamp"]), duration(hit["latency"], 1e-9)
    return _answered(start, seconds, hit["code"], hit.get("error"), _size(hit["bytes_in"]), hit.get("url"))


def _vegeta_csv(line: str) -> ForeignRequest:
    cells = next(csv.reader([line]))
    start, seconds = _instant(cells[0], 1e-9), duration(cells[2], 1e-9)
    return _answered(start, seconds, cells[1], cells[5], _size(cells[4]), cells[10] if len(cells) > 10 else "")


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


def _starts_with(*texts: str) -> Callable[[str], bool]:
    return lambda first: first.startswith(texts)


_WITHOUT_RESPONSE = "requests without a response"
FORMATS: Iterable[ForeignFormat] = (
    ForeignFormat(
        "ab -g",
        _has_columns("starttime", "seconds", "ttime"),
        _table(lambda row: ForeignRequest(_instant(row["seconds"]), duration(row["ttime"], 1e-3))),
        granular=True,
        unlisted="failures (their rows count as completed)",
    ),
    ForeignFormat(
        "hey -o csv", _has_columns("response-time"), _table(_hey), since_epoch=False, unlisted=_WITHOUT_RESPONSE
    ),
    ForeignFormat(
        "oha --output-format csv",
        _has_columns("request-start", "request-duration"),
        _table(_oha),
        since_epoch=False,
        unlisted=_WITHOUT_RESPONSE,
    ),
    ForeignFormat("JMeter JTL (CSV)", _is_jmeter, _jmeter),
    ForeignFormat(
        "JMeter JTL (XML)",
        lambda first: first.lstrip().startswith("<testResults"),
        lambda lines: _requests(xml_rows(lines), _JMeterSamples().request),
    ),
    ForeignFormat("k6 --out csv", _has_columns("metric_name", "timestamp", "metric_value"), _table(_k6), granular=True),
    ForeignFormat("k6 --out json", _starts_with('{"type":"Metric"', '{"metric":', '{"type":"Point"'), _lines(_k6_json)),
    ForeignFormat("vegeta encode --to json", _starts_with('{"attack":'), _lines(_vegeta_json)),
    ForeignFormat("vegeta encode --to csv", _is_vegeta_csv, _lines(_vegeta_csv)),
    ForeignFormat(
        "h2load --log-file", _is_h2load, _lines(_h2load), unlisted="requests that were lost with their connection"
    ),
)
