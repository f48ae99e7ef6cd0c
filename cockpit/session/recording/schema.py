"""The file format: what both writer and reader must agree on."""

from __future__ import annotations

import sqlite3
import zlib

from cockpit.model.events import AnyEvent, decode, encode, kind

# "ckpt" in the SQLite header tells our files from other databases; user_version is the schema's.
APPLICATION_ID = 0x636B7074
VERSION = 1

# Bodies from this size on are kept as zlib blobs, smaller ones as plain text that sqlite3 can show.
COMPRESS_FROM = 512

TABLES = f"""
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {VERSION};
CREATE TABLE events (
    seq  INTEGER PRIMARY KEY,   -- order of arrival
    t    REAL NOT NULL,         -- session seconds
    kind TEXT NOT NULL,         -- tick, host_sample, change_ended, …
    body NOT NULL               -- JSON text, or zlib-compressed JSON as a blob
);
CREATE INDEX events_t ON events (t);
"""

Row = tuple[float, str, str | bytes]


def to_row(event: AnyEvent) -> Row:
    body = encode(event)
    packed: str | bytes = zlib.compress(body, 6) if len(body) >= COMPRESS_FROM else body.decode()
    return event.t, kind(event), packed


def from_body(body: str | bytes) -> AnyEvent:
    """Raises zlib.error, UnicodeError or msgspec.MsgspecError when the body is damaged."""
    return decode(text_of(body))


def text_of(body: str | bytes) -> str | bytes:
    """A body's JSON. Raises zlib.error."""
    return body if isinstance(body, str) else zlib.decompress(body)


def last_instant(database: sqlite3.Connection) -> float:
    """The latest instant of a recording, session seconds; 0 without events. Raises sqlite3.Error."""
    return float(database.execute("SELECT max(t) FROM events").fetchone()[0] or 0.0)
