"""The file format, shared by writer and reader. README describes queries."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator, Sequence

from cockpit.analysis.words.timeline import change_label, marker_sign, marker_text, segment_label
from cockpit.model.events import AnyEvent, Note, decode, encode, kind
from cockpit.model.state import Change, State
from cockpit.recording.packing import Damaged, checksum, inflated, reading
from cockpit.recording.validity import LONGEST, checked_event

# application_id "ckpt" in the SQLite header identifies recordings; user_version is the version of the format.
APPLICATION_ID = 0x636B7074
VERSION = 7

# Bodies of at least this size (bytes) are compressed with zlib; smaller ones are text that sqlite3 can show.
COMPRESS_FROM = 512

# Database pages of 1 KiB: blobs of a few KiB waste little space.
TABLES = f"""
PRAGMA page_size = 1024;
PRAGMA auto_vacuum = INCREMENTAL;
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {VERSION};
CREATE TABLE events (
    seq  INTEGER PRIMARY KEY,   -- order of arrival
    t    REAL NOT NULL,         -- session seconds
    kind TEXT NOT NULL,         -- run_started, change_ended, …; tick, host_sample, … until they are packed into a page
    body NOT NULL,              -- JSON text, or zlib-compressed JSON as a blob
    crc  INTEGER NOT NULL       -- CRC-32 of the columns before, as a msgpack array
);
CREATE TABLE pages (
    first  INTEGER PRIMARY KEY, -- number of its first event
    last   INTEGER NOT NULL,    -- number of its last event
    begin  REAL NOT NULL,       -- time at which all earlier events were known
    end    REAL NOT NULL,       -- time at which all its events were known
    rows   INTEGER NOT NULL,    -- number of its infrequent events, which stay in `events`
    grown  TEXT NOT NULL,       -- JSON: numbers of its new seconds and points
    crc    INTEGER NOT NULL,    -- CRC-32 of the columns before, as a msgpack array
    events BLOB NOT NULL,       -- frequent events; all blobs are a CRC-32, then msgpack in raw LZMA
    totals BLOB NOT NULL,       -- histograms of its ticks by segment
    series BLOB NOT NULL,       -- its new seconds and points
    state  BLOB NOT NULL        -- state after its last event
);
CREATE TABLE parts (id INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE notes (                                                           -- added after the session
    t REAL NOT NULL, text TEXT NOT NULL, wall REAL NOT NULL, crc INTEGER NOT NULL
);
CREATE TABLE runs (                                                            -- one row per segment
    number INTEGER PRIMARY KEY, run INTEGER, label TEXT, start REAL, end REAL, completed INTEGER, failed INTEGER,
    rate REAL, p50_ms REAL, p90_ms REAL, p99_ms REAL, max_ms REAL
);
CREATE TABLE changes (
    letter TEXT PRIMARY KEY, host TEXT, label TEXT, begun REAL, active_since REAL, outcome TEXT,
    verdict TEXT, effect TEXT
);
CREATE TABLE capacities (begun REAL PRIMARY KEY, run INTEGER, limits TEXT, result TEXT);
CREATE TABLE markers (t REAL, kind TEXT, sign TEXT, text TEXT);
CREATE TABLE seconds (                                                         -- load per second
    second INTEGER PRIMARY KEY, completed INTEGER, failed INTEGER, p50_us INTEGER, p99_us INTEGER, max_us INTEGER
);
"""

# Maximum size of the JSON of an event (bytes): a sample with many thousands of processes.
LARGEST_EVENT = 32 << 20

# The columns of an event that from_row expects.
EVENTS = "SELECT seq, t, kind, body, crc FROM events"

EventRow = tuple[int, float, str, str | bytes, int]


def to_row(number: int, event: AnyEvent) -> EventRow:
    """Return the row of an event. Raises ValueError, TypeError or msgspec.MsgspecError if it is not readable again."""
    body = encode(checked_event(event))
    small: str | bytes = zlib.compress(body, 6) if len(body) >= COMPRESS_FROM else body.decode()
    # + 0.0: a float without the sign of zero, as SQLite stores it.
    values = (number, event.t + 0.0, kind(event), small)
    return *values, checksum(values)


def is_intact(row: Sequence[object]) -> bool:
    """Return whether the last value of a row is the checksum of the others."""
    return checksum(row[:-1]) == row[-1]


def from_row(row: Sequence[object]) -> AnyEvent:
    """Return the event of a row: the inverse of `to_row`. Raises Damaged."""
    if not is_intact(row):
        raise Damaged("wrong checksum")
    with reading("an event"):
        body = row[3]
        if not isinstance(body, str | bytes):
            raise TypeError("the body is neither text nor a blob")
        event = checked_event(decode(body if isinstance(body, str) else inflated(body, LARGEST_EVENT)))
        if (event.t, kind(event)) != (row[1], row[2]):
            raise ValueError("the body has another time or kind than its row")
        return event


def note_row(note: Note, wall: float) -> tuple[object, ...]:
    """Return a row of the table `notes`; `wall` is the time of writing (epoch s)."""
    values = (note.t + 0.0, note.text, wall + 0.0)
    return *values, checksum(values)


def last_instant(database: sqlite3.Connection) -> float:
    """Return the latest valid time in a recording (session s); 0 without events. Raises sqlite3.Error."""
    instants = [
        database.execute(
            f"SELECT max({column}) FROM {table} WHERE {column} >= 0 AND {column} < ?", (LONGEST,)
        ).fetchone()[0]
        for column, table in (("t", "events"), ("end", "pages"))
    ]
    return max([0.0, *(float(instant) for instant in instants if instant is not None)])


def write_tables(database: sqlite3.Connection, state: State, seconds: tuple[int, int]) -> None:
    """Update the tables for sqlite3 queries. `seconds`: range of indexes of `state.seconds`. Raises sqlite3.Error."""
    database.executemany("INSERT OR REPLACE INTO runs VALUES (?,?,?,?,?,?,?,?,?,?,?,?)", _runs(state))
    database.executemany(
        "INSERT OR REPLACE INTO changes VALUES (?,?,?,?,?,?,?,?)",
        [
            (made.letter, made.host, change_label(made), made.begun, made.active_since, made.outcome, *verdict)
            for made, verdict in _changes(state)
        ],
    )
    database.executemany("INSERT OR REPLACE INTO capacities VALUES (?,?,?,?)", _capacities(state))
    database.execute("DELETE FROM markers")
    database.executemany(
        "INSERT INTO markers VALUES (?,?,?,?)",
        [(marker.t, marker.kind, marker_sign(marker), marker_text(marker)) for marker in state.markers],
    )
    database.executemany(
        "INSERT OR REPLACE INTO seconds VALUES (?,?,?,?,?,?)",
        [
            (row.second, row.completed, row.failed, *(round(1e6 * value) for value in (row.p50, row.p99, row.max)))
            for row in state.seconds[slice(*seconds)]
        ],
    )


def _changes(state: State) -> list[tuple[Change, tuple[str, str]]]:
    """Return the changes, each with its verdict and effect once the session has ended."""
    none = "", ""
    if not state.ended or not state.own_changes:
        return [(change, none) for change in state.own_changes]
    # Imports numpy, which lists of recordings do not need.
    from cockpit.analysis.verdicts.segments import verdicts
    from cockpit.analysis.words.verdicts import headline_words

    # A label begins with the change's letter, and may end with the load.
    reached = {
        verdict.label.partition(" ")[0]: (str(verdict.outcome), headline_words(verdict)) for verdict in verdicts(state)
    }
    return [(change, reached.get(change.letter, none)) for change in state.own_changes]


def _capacities(state: State) -> Iterator[tuple[float, int, str, str]]:
    """Yield the capacity searches, with their results once the session has ended."""
    if state.ended and state.capacities:
        from cockpit.analysis.capacity.result import capacity_result
        from cockpit.analysis.words.capacity import brief_words

        for search in state.capacities:
            result = brief_words(capacity_result(state, search))
            yield search.begun.t, search.begun.run, ", ".join(search.begun.limits), result


def _runs(state: State) -> Iterator[tuple[object, ...]]:
    for row in state.segments:
        latency = row.counts.latency
        metrics = (1e3 * latency.percentile(percent) for percent in (50, 90, 99))
        counts = (row.counts.completed, row.counts.failed, row.rate)
        yield row.number, row.run, segment_label(row), row.start, row.end, *counts, *metrics, 1e3 * latency.max
