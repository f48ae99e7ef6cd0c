"""Parses text of sar (`sar -A -f FILE`, `sar -u -r 1 60`) to the same intervals of a host as `sadf -j`. Pure.

Each activity is a table. A header has the start time of its first interval and the names of the columns, which are the
same in all languages; a row has the end time of its interval. The time, as the locale writes it, is what stands before
the columns. Headers repeat, rows of averages have no time, and unknown tables are ignored. A table that lacks a row for
any time of the CPU table is left out.

A file is hostile: every number is checked. Raises ValueError with the line of an invalid row.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from importlib.resources import files
from typing import Any

import msgspec

from cockpit.imports.sysstat import SysstatHost, checked_host

INSTEAD = "write it with sadf -j FILE -- -A"
# Maximum characters of a file; a parsed row takes ten times as much memory.
_LARGEST = 1 << 26
_DAY = 86_400
_HEAD = re.compile(r"Linux (\S{1,64}) \(([^()]{1,64})\)\s+(?:(\S.{0,60}?)\s+)?_\S{1,32}_\s+\((\d{1,5}) CPU\)\s*$")
# Hours, minutes and perhaps seconds; a time zone; the words between them.
_CLOCK = re.compile(r"(\d{1,2})(?:[:.]|\s?[時时點点시]\s?)(\d\d?)(?:(?:[:.]|\s?[分분]\s?)(\d\d?)(?:[秒초])?)?")
_ZONE = re.compile(r"[+-]\d{4}\b|\b[A-Z]{3,5}\b")
_NUMBER = re.compile(r"\d{1,20}(?:[.,٫]\d{1,6})?")


def _plain(text: str) -> str:
    """Return text in one form of its letters, without spaces and dots."""
    return re.sub(r"[\s.:፡]", "", unicodedata.normalize("NFKC", text)).casefold()


# The words for the two halves of a day in the locales of glibc.
_AM, _PM = (
    set(map(_plain, line.split())) for line in (files(__package__) / "day_halves.txt").read_text("utf-8").splitlines()
)
_ISO = "write it with S_TIME_FORMAT=ISO sar"


@dataclass(frozen=True, eq=False)
class _Table:
    """A table of sar: its path in the JSON of sadf (`place`), the path below it of each column, and the columns that it
    must have (`needs`). `name`: the column with the device; such a table has one row per device and time."""

    place: str
    columns: Mapping[str, str]
    needs: frozenset[str]
    name: str = ""


def _table(place: str, columns: str, needs: str = "", name: str = "") -> _Table:
    """Make a table. `columns` are words NAME=PATH, or only NAME: `kbmemfree` is at memfree, `pgpgin/s` at pgpgin."""
    paths = {}
    for word in columns.split():
        column, _, path = word.partition("=")
        paths[column] = path or column.removeprefix("%").removeprefix("kb").removesuffix("/s")
    return _Table(place, paths, frozenset(needs.split() or paths), name)


_TABLES = (
    _table(
        "cpu-load",
        "CPU=cpu %user %usr %nice %system %sys %iowait %steal %irq %soft %guest %gnice %idle",
        "CPU %nice %iowait %steal %idle",
        "CPU",
    ),
    _table("process-and-context-switch", "proc/s cswch/s"),
    _table("swap-pages", "pswpin/s pswpout/s"),
    _table("paging", "pgpgin/s pgpgout/s fault/s majflt/s pgfree/s pgscank/s pgscand/s pgsteal/s"),
    _table(
        "io",
        "rtps=io-reads.rtps bread/s=io-reads.bread wtps=io-writes.wtps bwrtn/s=io-writes.bwrtn dtps=io-discard.dtps",
        "rtps bread/s wtps bwrtn/s",
    ),
    _table(
        "memory",
        "kbmemfree kbavail kbmemused %memused=memused-percent kbbuffers kbcached kbcommit kbactive kbinact=inactive "
        "kbdirty kbslab",
        "kbmemfree kbmemused %memused kbbuffers kbcached kbcommit kbactive kbinact",
    ),
    _table("memory", "kbswpfree kbswpused kbswpcad"),
    _table("queue", "runq-sz plist-sz ldavg-1 ldavg-5 ldavg-15 blocked", "runq-sz plist-sz ldavg-1 ldavg-5 ldavg-15"),
    _table(
        "disk",
        "DEV=disk-device tps rd_sec/s wr_sec/s rkB/s wkB/s dkB/s aqu-sz avgqu-sz await %util=util-percent",
        "DEV tps await %util",
        "DEV",
    ),
    _table("network.net-dev", "IFACE=iface rxpck/s txpck/s rxkB/s txkB/s", name="IFACE"),
    _table("network.net-edev", "IFACE=iface rxerr/s txerr/s rxdrop/s txdrop/s", name="IFACE"),
    _table("network.net-sock", "totsck tcpsck udpsck rawsck ip-frag tcp-tw"),
    _table("network.net-tcp", "active/s passive/s iseg/s oseg/s"),
    _table("network.net-etcp", "atmptf/s estres/s retrans/s retrseg/s isegerr/s orsts/s", "atmptf/s estres/s orsts/s"),
    _table("psi.psi-cpu", "%scpu=some_avg"),
    _table("psi.psi-io", "%sio=some_avg %fio=full_avg"),
    _table("psi.psi-mem", "%smem=some_avg %fmem=full_avg"),
)
_CPU, _MEMORY = _TABLES[0], _TABLES[5]
_TITLES = frozenset(title for table in _TABLES for title in (*table.columns, *table.needs))


def is_sar_text(first: str) -> bool:
    return _HEAD.match(first) is not None


def parse_sar(lines: Iterable[str], offset: float = 0.0, day: date | None = None) -> SysstatHost:
    """Return the host of a file, with at least two intervals. `offset` (s) is the UTC offset of the file's times, `day`
    the day of the first one (None: as in the file).

    Raises ValueError.
    """
    reader = _Reader()
    size = 0
    for number, line in enumerate(lines, 1):
        size += len(line)
        if size > _LARGEST:
            raise ValueError(f"larger than {_LARGEST >> 20} MiB; choose a time range with -s and -e")
        try:
            reader.feed(line)
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
    return reader.host(offset, day)


class _Reader:
    """The rows read so far. Times are seconds since midnight of the first day. `_before` is the latest time of each
    table, `_starts` the start of the interval by the time of each row in the CPU table."""

    def __init__(self) -> None:
        self._head: re.Match[str] | None = None
        self._titles: list[str] = []
        self._table: _Table | None = None
        self._rows: dict[_Table, dict[int, list[dict[str, Any]]]] = {}
        self._before: dict[_Table, int] = {}
        self._starts: dict[int, int] = {}
        self._twelve_hours = False

    def feed(self, line: str) -> None:
        """Read a line. Raises ValueError for an invalid row of a known table."""
        # sysstat 11.5 ends numbers with NUL.
        line = line.replace("\0", "")
        if head := _HEAD.match(line):
            if self._head is not None:
                raise ValueError("a second file starts here; import each file separately")
            self._head = head
            return
        words = line.split()
        if not words:
            self._table = None
        elif "COM" in words[1:3]:
            # A comment (sar -C).
            return
        elif not _TITLES.isdisjoint(words):
            self._title(words)
        elif self._table is not None:
            self._row(self._table, words)

    def _title(self, words: list[str]) -> None:
        # Shares have columns that are not read before those that are.
        first = next(place for place, word in enumerate(words) if word in _TITLES or word.startswith("%"))
        self._titles = words[first:]
        self._table = next((table for table in _TABLES if table.needs <= frozenset(self._titles)), None)
        if self._table is None:
            return
        when = self._time(words[:first])
        if when is not None:
            self._before[self._table] = _later(when, self._before.get(self._table))
        elif re.search(r"\d", " ".join(words[:first])):
            raise _unknown_time(words[:first])
        else:
            # Averages.
            self._table = None

    def _time(self, words: list[str]) -> int | None:
        """Return the seconds since midnight; None for the words of an average. Raises ValueError."""
        text = " ".join(words)
        clock = _CLOCK.search(text)
        if clock is None:
            return None
        rest = _ZONE.sub("", text[: clock.start()] + " " + text[clock.end() :])
        half = _plain(rest.removeprefix("kl."))
        if half and half not in _AM | _PM:
            raise _unknown_time(words)
        self._twelve_hours = self._twelve_hours or bool(half)
        return _seconds(clock, "PM" if half in _PM else "AM" if half else "")

    def _row(self, table: _Table, words: list[str]) -> None:
        surplus = len(words) - len(self._titles)
        if surplus < 1 and _NUMBER.fullmatch(words[-1]):
            raise ValueError(f"{len(words) - 1} columns instead of {len(self._titles)}")
        cells, seconds = words[surplus:], self._time(words[: max(0, surplus)])
        if surplus < 1 or seconds is None:
            # A restart, or an average.
            return
        before = self._before[table]
        t = self._before[table] = _later(seconds, before)
        if table is _CPU and t > before:
            self._starts[t] = before
        row: dict[str, Any] = {}
        for title, cell in zip(self._titles, cells, strict=True):
            if title in table.columns:
                _put(row, table.columns[title], cell if title == table.name else _value(cell))
        at = self._rows.setdefault(table, {}).setdefault(t, [])
        if at and not table.name:
            raise ValueError(f"two rows have the same time; {_ISO}")
        at.append(row)

    def host(self, offset: float, day: date | None) -> SysstatHost:
        """Return the host with all intervals that were read. Raises ValueError."""
        if self._head is None:
            raise ValueError("not text of sar")
        release, node, written, cpus = self._head.groups()
        first = day or _date(written or "", self._twelve_hours)
        midnight = datetime(first.year, first.month, first.day, tzinfo=UTC) - timedelta(seconds=offset)
        if not self._starts:
            raise ValueError(f"no CPU utilization (sar -u); {INSTEAD}")
        tables = {table: rows for table, rows in self._rows.items() if all(t in rows for t in self._starts)}
        if _MEMORY in tables:
            _add_slab([rows[0] for rows in tables[_MEMORY].values()])
        host = {
            "nodename": node,
            "release": release,
            "number-of-cpus": int(cpus),
            "statistics": [self._interval(t, tables, midnight) for t in sorted(self._starts)],
        }
        try:
            return checked_host(msgspec.convert(host, SysstatHost))
        except msgspec.ValidationError as error:
            raise ValueError(f"{error}; {INSTEAD}") from None

    def _interval(
        self, t: int, tables: Mapping[_Table, dict[int, list[dict[str, Any]]]], midnight: datetime
    ) -> dict[str, Any]:
        end = midnight + timedelta(seconds=t)
        interval: dict[str, Any] = {
            "timestamp": {
                "date": f"{end:%Y-%m-%d}",
                "time": f"{end:%H:%M:%S}",
                "utc": 1,
                "interval": t - self._starts[t],
            }
        }
        for table, rows in tables.items():
            *parents, last = table.place.split(".")
            place = interval
            for parent in parents:
                place = place.setdefault(parent, {})
            if table.name:
                place[last] = rows[t]
            else:
                place.setdefault(last, {}).update(rows[t][0])
        if "memfree" not in interval.get("memory", {}):
            interval.pop("memory", None)
        return interval


def _unknown_time(words: list[str]) -> ValueError:
    return ValueError(
        f"{' '.join(words)[:40]!r} is no known time, or the row has other columns than its header; {_ISO}"
    )


def _seconds(time: re.Match[str], am_pm: str) -> int:
    """Return the seconds since midnight; `am_pm` is AM, PM or "". Few locales print it beside 24 hours."""
    hours, minutes, seconds = (int(number or 0) for number in time.groups())
    if hours > 23 or minutes > 59 or seconds > 59:
        raise ValueError(f"{time[0]!r} is not a time")
    hours = hours % 12 + 12 * (am_pm == "PM") if am_pm and hours <= 12 else hours
    return 3600 * hours + 60 * minutes + seconds


def _later(seconds: int, before: int | None) -> int:
    """Return a time of day as seconds since the first midnight, not before `before`. Raises ValueError."""
    if before is None:
        return seconds
    t = before // _DAY * _DAY + seconds
    if t < before - _DAY // 2:
        t += _DAY
    if t < before:
        raise ValueError("the time jumps back; write it with TZ=UTC sar")
    return t


def _date(text: str, twelve_hours: bool) -> date:
    """Return the day. With slashes, the month is first if years have two digits (locale C) or times have AM and PM.

    Raises ValueError for names of months, other calendars, and digits whose order is unknown: those of other scripts,
    and those that follow a letter.
    """
    numbers = re.findall(r"(?<!\w)[0-9]+", re.sub("[年月日년월일]", " ", text))
    with suppress(ValueError, OverflowError):
        first, second, third = map(int, numbers)
        if len(numbers[0]) == 4:
            day_of = date(first, second, third)
        else:
            month_first = "/" in text and (twelve_hours or len(numbers[2]) == 2)
            month, day = (first, second) if (month_first and first <= 12) or second > 12 else (second, first)
            day_of = date(2000 + third if third < 100 else third, month, day)
        if day_of.year < 2100 and not re.search(r"\d", re.sub("[0-9]", "", text)):
            return day_of
    raise ValueError(f"unknown date format {text[:40]!r}; add the day of the first row: --date 2026-11-24")


def _value(cell: str) -> int | float:
    if not _NUMBER.fullmatch(cell):
        raise ValueError(f"{cell[:24]!r} is not a number; write it without --human")
    return int(cell) if cell.isdecimal() else float(re.sub("[,٫]", ".", cell))


def _put(row: dict[str, Any], place: str, value: str | int | float) -> None:
    head, _, rest = place.partition(".")
    if rest:
        _put(row.setdefault(head, {}), rest, value)
    else:
        row[head] = value


def _add_slab(rows: Iterable[dict[str, Any]]) -> None:
    """Add the slab to rows of memory without it (`sar -r` without ALL), from the total memory, which no column has.

    The total is derived from the rounded %memused of all rows. Nothing is added if that of the oldest or the newest
    versions fits (see Memory.total).
    """
    without = [row for row in rows if "slab" not in row]
    if all(_fits(row, row["memused"] + row["memfree"]) for row in without):
        return
    low = max(row["memused"] + row["memfree"] + row["buffers"] + row["cached"] for row in without)
    high = float("inf")
    for row in without:
        share = row["memused-percent"]
        low = max(low, 100 * row["memused"] / (share + _HALF))
        high = min(high, 100 * row["memused"] / (share - _HALF)) if share > _HALF else high
    if not low <= high and all("avail" in row and _fits(row, row["memused"] + row["avail"]) for row in without):
        return
    if not low <= high < float("inf"):
        raise ValueError("the total memory is ambiguous; write it with sar -r ALL")
    for row in without:
        known = row["memused"] + row["memfree"] + row["buffers"] + row["cached"]
        row["slab"] = round((low + high) / 2) - known


# Maximum rounding error of %memused, which has two decimal places.
_HALF = 0.005


def _fits(row: Mapping[str, Any], total: int) -> bool:
    return bool(abs(100 * row["memused"] - row["memused-percent"] * total) <= 0.006 * total)
