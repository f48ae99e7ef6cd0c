"""Pack values as compressed msgpack with a checksum. Packed bytes are not trusted: size and content are checked."""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from cockpit.model.histogram import EMPTY, Histogram
from cockpit.model.sums import Sums
from cockpit.recording.validity import checked

_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 1 << 20}]
_CHECKSUM_SIZE = 4
# Maximum unpacked size (bytes); a page with 200 processes has 2 MiB, 60 times its packed size.
LARGEST = 48 << 20
_LARGEST_BASE, _MAX_RATIO = 8 << 20, 500
# Exceptions that decoding of damaged or forged bytes may raise.
UNREADABLE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
    msgspec.MsgspecError,
    zlib.error,
)


class Damaged(ValueError):
    """Bytes that cannot be decoded."""


@contextmanager
def reading(subject: str) -> Iterator[None]:
    """Convert all exceptions of damaged bytes into Damaged, with a message on one line about the subject."""
    try:
        with np.errstate(all="ignore"):
            yield
    except UNREADABLE as error:
        reason = "out of memory" if isinstance(error, MemoryError) else " ".join(str(error).split())[:120]
        raise Damaged(f"{subject} cannot be read: {reason or type(error).__name__}") from None


def pack(value: object) -> bytes:
    """Return a value as compressed msgpack. Raises OverflowError or TypeError if it cannot be encoded."""
    return compressed(_encoder.encode(value))


def unpack(blob: object, kind: Any, subject: str) -> Any:
    """Return the value of a blob: the inverse of `packed`. `subject` is its name in errors. Raises Damaged."""
    with reading(subject):
        return checked(_decoder(kind).decode(decompressed(blob)))


@cache
def _decoder(kind: Any) -> msgspec.msgpack.Decoder[Any]:
    return msgspec.msgpack.Decoder(kind, dec_hook=_from_wire)


def compressed(raw: bytes) -> bytes:
    """Return a checksum, then the compressed bytes."""
    return zlib.crc32(raw).to_bytes(_CHECKSUM_SIZE, "little") + lzma.compress(raw, lzma.FORMAT_RAW, filters=_FILTERS)


def decompressed(blob: object) -> bytes:
    """Return the bytes of a blob: the inverse of `compressed`. Raises Damaged, also if the value is not bytes."""
    if not isinstance(blob, bytes):
        raise Damaged("not a blob")
    largest = min(LARGEST, _LARGEST_BASE + _MAX_RATIO * len(blob))
    try:
        unpacker = lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=_FILTERS)
        raw = unpacker.decompress(blob[_CHECKSUM_SIZE:], largest)
    except (lzma.LZMAError, EOFError) as error:
        raise Damaged(str(error) or "truncated") from None
    except MemoryError:
        raise Damaged("out of memory") from None
    if not unpacker.eof:
        raise Damaged(f"unpacks to more than {largest >> 20} MiB" if len(raw) >= largest else "truncated")
    if zlib.crc32(raw).to_bytes(_CHECKSUM_SIZE, "little") != blob[:_CHECKSUM_SIZE]:
        raise Damaged("wrong checksum")
    return raw


def checksum(values: Sequence[object]) -> int:
    """Return the CRC-32 of the values of a row, encoded as a msgpack array."""
    return zlib.crc32(msgspec.msgpack.encode(values))


def inflated(body: bytes, largest: int) -> bytes:
    """Decompress zlib data. Raises zlib.error, also if it is more than `largest` bytes."""
    unpacker = zlib.decompressobj()
    raw = unpacker.decompress(body, largest)
    if not unpacker.eof:
        raise zlib.error("too large" if len(raw) >= largest else "truncated")
    return raw


def _to_wire(value: Any) -> Any:
    if isinstance(value, Histogram):
        gaps = np.diff(value.indices, prepend=0)
        return [value.total_ns, value.min_ns, value.max_ns, _to_bytes(gaps), _to_bytes(value.counts)]
    if isinstance(value, Sums):
        return value.wire()
    if isinstance(value, MappingProxyType):
        return dict(value)
    raise TypeError(f"no wire form for {type(value)}")


def _from_wire(kind: type, wire: Any) -> Any:
    if kind is Sums:
        return Sums.from_wire(wire)
    if kind is not Histogram:
        raise TypeError(f"no wire form for {kind}")
    total, least, most, gaps, counts = wire
    indices = np.cumsum(_from_bytes(gaps))
    return Histogram(indices, _from_bytes(counts), total, least, most) if len(indices) else EMPTY


def _to_bytes(values: npt.NDArray[np.int64]) -> bytes:
    """Encode numbers that are not negative: first their width in bytes, then each number in that width."""
    width = np.min_scalar_type(int(values.max(initial=0))).itemsize
    return bytes([width]) + values.astype(f"<u{width}").tobytes()


def _from_bytes(raw: bytes) -> npt.NDArray[np.int64]:
    return np.frombuffer(raw, dtype=f"<u{raw[0]}", offset=1).astype(np.int64)


_encoder = msgspec.msgpack.Encoder(enc_hook=_to_wire)
