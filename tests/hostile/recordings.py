"""Malicious recordings: an intact one with alterations at all levels of its format."""

import gc
import io
import json
import lzma
import os
import random
import resource
import shutil
import sqlite3
import time
import traceback
import zlib
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path

import msgspec

from cockpit.cli import main
from cockpit.recording.packing import checksum, compressed, decompressed

NUMBERS = (-1, 0, 1, 2, 255, 1 << 31, (1 << 31) - 1, 1 << 40, 1 << 62, (1 << 63) - 1, -(1 << 63), 1e300, -0.5, 10**30)
TEXTS = ("", "\0", "x" * 100_000, "\U0001f600", "[" * 50_000, "same", "text", "raw", "few", "service", "-1")
GROWN = (
    '{"seconds":1000000000000}',
    '{"seconds":-5}',
    '{"seconds":199999,"points":{"web1":199999}}',
    '{"points":{"a":1}}',
)
TABLES = ("events", "pages", "parts", "notes", "runs", "changes", "markers", "seconds")
# Tables with a checksum over these columns.
SEALED = {"events": "seq, t, kind, body", "pages": "first, last, begin, end, rows, grown", "notes": "t, text, wall"}
# Table, column and key of packed values.
BLOBS = (
    ("pages", "events", "first"),
    ("pages", "totals", "first"),
    ("pages", "series", "first"),
    ("pages", "state", "first"),
    ("parts", "body", "id"),
)
# CPU seconds of a command with an altered recording.
SECONDS = 5.0
Draw = random.Random


def alter(path: Path, draw: Draw) -> None:
    """Alter an intact recording in place, one to three times, mostly with valid checksums."""
    for _ in range(draw.randint(1, 3)):
        draw.choice(ALTERATIONS)(path, draw)
    if draw.random() < 0.8:
        seal(path)


def _any_value(value: object, draw: Draw, depth: int = 0) -> object:
    """The value with one part replaced."""
    if isinstance(value, list) and value and draw.random() < 0.9:
        at = draw.randrange(len(value))
        found = [*value[:at], _any_value(value[at], draw, depth + 1), *value[at + 1 :]]
        return found if draw.random() < 0.9 else found * draw.choice((2, 100))
    if isinstance(value, dict) and value and draw.random() < 0.9:
        key = draw.choice(sorted(value, key=str))
        new = key if draw.random() < 0.9 else str(draw.choice((*NUMBERS, *TEXTS)))
        return {**{k: v for k, v in value.items() if k != key}, new: _any_value(value[key], draw, depth + 1)}
    return draw.choice((*NUMBERS, *TEXTS, None, True, [], {}, [[]], [value], [[1], [2]]))


def _sql(path: Path, statement: str, *values: object) -> None:
    database = sqlite3.connect(path)
    try:
        database.execute(statement, values)
        database.commit()
    except (sqlite3.Error, OverflowError, UnicodeError):
        database.rollback()
    finally:
        database.close()


def _rows(path: Path, statement: str) -> list[tuple[object, ...]]:
    """Rows of a query; none if an earlier alteration has damaged the file."""
    database = sqlite3.connect(path)
    try:
        return database.execute(statement).fetchall()
    except (sqlite3.Error, UnicodeError):
        return []
    finally:
        database.close()


def flip_bytes(path: Path, draw: Draw) -> None:
    content = bytearray(path.read_bytes())
    for _ in range(draw.choice((1, 10, 100))):
        content[draw.randrange(len(content))] ^= draw.randrange(1, 256)
    path.write_bytes(content)


def cut(path: Path, draw: Draw) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: draw.randrange(len(content))])


def point_pages_in_circles(path: Path, draw: Draw) -> None:
    """Redirect page numbers in interior B-tree pages to other pages, or to themselves."""
    content = bytearray(path.read_bytes())
    size = 1024
    for page in range(len(content) // size):
        at = page * size + (100 if page == 0 else 0)
        if content[at] in (2, 5):
            target = draw.choice((page + 1, draw.randrange(1, len(content) // size + 1)))
            content[at + 8 : at + 12] = target.to_bytes(4, "big")
    path.write_bytes(content)


def seal(path: Path) -> None:
    """Give all rows that have a checksum a valid one."""
    for table, columns in SEALED.items():
        for number, *values in _rows(path, f"SELECT rowid, {columns} FROM {table}"):
            _sql(path, f"UPDATE {table} SET crc = ? WHERE rowid = ?", checksum(values), number)


def alter_event(path: Path, draw: Draw) -> None:
    rows = _rows(path, "SELECT seq, body FROM events")
    if not rows:
        return
    number, body = draw.choice(rows)
    try:
        event = json.loads(zlib.decompress(body) if isinstance(body, bytes) else body)  # type: ignore[arg-type]
    except (ValueError, zlib.error, TypeError):
        return
    text = json.dumps(_any_value(event, draw))
    _sql(path, "UPDATE events SET body = ? WHERE seq = ?", draw.choice((text, zlib.compress(text.encode()))), number)


def replace_body(path: Path, draw: Draw) -> None:
    """Replace an event's body: decompression bomb, deep nesting, invalid JSON, other types."""
    bodies: list[object] = [
        zlib_bomb(50 << 20, b"", b"["),
        zlib_bomb(50 << 20, b'{"event":"note","t":1,"text":"', b"x"),
        "[" * 1_000_000,
        '{"event":"note","t":1,"text":"x","odd":' + "[" * 100_000 + "]" * 100_000 + "}",
        '{"event":"run_started","t":1,"run":4611686018427387904,"plan":{"url":"http://a/","concurrency":1}}',
        '{"event":"tick","t":99999999,"run":1,"worker":0,"start":0}',
        b"\x78\x9c",
        7,
        1e308,
        None,
    ]
    _sql(
        path,
        "UPDATE events SET body = ? WHERE seq = (SELECT seq FROM events ORDER BY random() LIMIT 1)",
        draw.choice(bodies),
    )


def alter_packed(path: Path, draw: Draw) -> None:
    """Alter a part of a packed value, with a valid checksum."""
    _repack(path, draw, lambda raw: _as_msgpack(_any_value(msgspec.msgpack.decode(raw), draw)))


def alter_packed_bytes(path: Path, draw: Draw) -> None:
    """Alter bytes of a packed value, with a valid checksum."""

    def altered(raw: bytes) -> bytes:
        found = bytearray(raw)
        for _ in range(draw.choice((1, 5, 50))):
            found[draw.randrange(len(found))] = draw.choice((0, 1, 127, 128, 255, draw.randrange(256)))
        return bytes(found)

    _repack(path, draw, altered)


def _repack(path: Path, draw: Draw, alter_raw: Callable[[bytes], bytes]) -> None:
    table, column, key = draw.choice(BLOBS)
    rows = _rows(path, f"SELECT {key}, {column} FROM {table}")
    if not rows:
        return
    number, blob = draw.choice(rows)
    try:
        raw = alter_raw(decompressed(blob))
    except (ValueError, msgspec.MsgspecError):
        return
    _sql(path, f"UPDATE {table} SET {column} = ? WHERE {key} = ?", compressed(raw), number)


def _as_msgpack(value: object) -> bytes:
    """Raises ValueError for a number that msgpack cannot represent."""
    try:
        return msgspec.msgpack.encode(value)
    except OverflowError as error:
        raise ValueError(str(error)) from None


def bomb(path: Path, draw: Draw) -> None:
    """Replace blobs with ones that unpack to gigabytes or to huge arrays."""
    length = draw.choice((100, 1 << 20, (1 << 32) - 1)).to_bytes(4, "big")
    blobs = (
        zlib.crc32(b"").to_bytes(4, "little") + zeros(80 << 20),
        _packed_zeros(),
        # Huge arrays and maps, empty strings, deep nesting.
        compressed(b"\xdd" + length),
        compressed(b"\xdf" + length),
        compressed(b"\x93" + b"\xdd" + (7 << 20).to_bytes(4, "big") + b"\xa0" * (7 << 20)),
        compressed(b"\x91" * (1 << 20)),
        compressed(b"\xff" * 100),
        b"",
    )
    table, column, _ = draw.choice(BLOBS)
    _sql(path, f"UPDATE {table} SET {column} = ?", draw.choice(blobs))


@cache
def _packed_zeros() -> bytes:
    return compressed(b"\0" * (40 << 20))


@cache
def zlib_bomb(size: int, start: bytes, repeated: bytes) -> bytes:
    packer = zlib.compressobj(1)
    piece = repeated * (1 << 20)
    return b"".join([packer.compress(start), *(packer.compress(piece) for _ in range(size >> 20)), packer.flush()])


@cache
def zeros(size: int) -> bytes:
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 20, "lc": 0, "lp": 0, "pb": 0}]
    packer = lzma.LZMACompressor(lzma.FORMAT_RAW, filters=filters)
    piece = b"\0" * (1 << 20)
    return b"".join([*(packer.compress(piece) for _ in range(size >> 20)), packer.flush()])


def alter_cells(path: Path, draw: Draw) -> None:
    """Set a column of a table to a value of another type."""
    table = draw.choice(TABLES)
    columns = [str(row[1]) for row in _rows(path, f"PRAGMA table_info({table})")]
    if columns:
        value = draw.choice((*NUMBERS[:-1], *TEXTS, *GROWN, b"\xff", None))
        where = "" if draw.random() < 0.3 else f"WHERE rowid = (SELECT rowid FROM {table} ORDER BY random() LIMIT 1)"
        _sql(path, f"UPDATE OR IGNORE {table} SET {draw.choice(columns)} = ? {where}", value)


ALTERATIONS: tuple[Callable[[Path, Draw], None], ...] = (
    flip_bytes,
    cut,
    point_pages_in_circles,
    alter_event,
    alter_event,
    replace_body,
    alter_packed,
    alter_packed,
    alter_packed,
    alter_packed_bytes,
    alter_packed_bytes,
    bomb,
    alter_cells,
    alter_cells,
)


def fuzz(intact: Path, folder: Path, count: int, memory: tuple[int, int], problems: Connection) -> None:
    """Alter `intact` with `count` seeds, read each file with every command, and send the first problem or ""."""
    resource.setrlimit(resource.RLIMIT_AS, memory)
    os.environ["XDG_STATE_HOME"] = str(folder)
    library = folder / "webcockpit" / "recordings"
    library.mkdir(parents=True)
    for seed in range(count):
        for old in library.iterdir():
            old.unlink()
        file = Path(shutil.copy(intact, library / "altered.cockpit"))
        # An alteration may have to read an earlier one: a bomb, or a deeply nested value.
        with suppress(MemoryError, RecursionError):
            alter(file, random.Random(seed))
        problems.send(_problem(str(file), folder))
        gc.collect()


def _problem(file: str, folder: Path) -> str:
    page, events = str(folder / "page.html"), folder / "events.jsonl"
    events.unlink(missing_ok=True)
    reports = (["report", file], ["report", file, "--format", "html", "-o", page], ["export", file, "-o", str(events)])
    for command in (*reports, ["compare", file, file], ["check", file], ["recordings", "list"]):
        out, err, started = io.StringIO(), io.StringIO(), time.process_time()
        try:
            with redirect_stdout(out), redirect_stderr(err):
                code = main(command)
        except BaseException:
            return f"{command}: {traceback.format_exc()}"
        seconds = time.process_time() - started
        quiet = all(line.startswith("cockpit: ") for line in err.getvalue().splitlines())
        if code not in (0, 2, 4, 99) or seconds > SECONDS or not quiet:
            return f"{command}: exit {code} after {seconds:.1f} s: {err.getvalue()[:2000]}"
    return ""
