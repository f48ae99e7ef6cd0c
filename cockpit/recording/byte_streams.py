"""Where columns are written to and read from: small facts in a head, arrays of whole numbers behind it."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from cockpit.recording.packing import Damaged, packed, unpacked

Ints = npt.NDArray[np.int64]


class ByteWriter:
    """Takes columns in: small facts into the head, arrays into the body."""

    def __init__(self) -> None:
        self.head: list[Any] = []
        self._body: list[bytes] = []

    def array(self, values: npt.NDArray[np.unsignedinteger[Any]]) -> None:
        """Unsigned 64-bit numbers, byte by byte: all lowest bytes, all next ones, as far as any is needed."""
        width = max(1, (int(values.max(initial=0)).bit_length() + 7) // 8)
        self.head.append(width)
        self._body.append(np.ascontiguousarray(values).view(np.uint8).reshape(-1, 8).T[:width].tobytes())

    def raw(self) -> bytes:
        """All of it."""
        head = msgspec.json.encode(self.head)
        return len(head).to_bytes(4, "little") + head + b"".join(self._body)

    def blob(self) -> bytes:
        """All of it, compressed."""
        return packed(self.raw())


# Bytes of memory that the values of one blob may take, and how many for each byte of it beyond a base.
_MOST = 256 << 20
_BASE = 8 << 20
_RATIO = 10_000
# Bytes that a value takes in an array, and as an object.
_NUMBER, _OBJECT = 8, 64


class Budget:
    """The memory that a blob of so many bytes may still take: a short one may stand for values without end."""

    def __init__(self, size: int) -> None:
        self._left = min(_MOST, _BASE + _RATIO * size)

    def take(self, count: object, each: int) -> None:
        """Raises Damaged for a count that is none, or for more than is left."""
        if not isinstance(count, int) or count < 0:
            raise Damaged("a count is none")
        self._left -= count * each
        if self._left < 0:
            raise Damaged("unpacks to too many values")


class ByteReader:
    """Gives back what a Sink took in, in the same order, within a budget. Raises Damaged."""

    def __init__(self, raw: bytes | memoryview, budget: Budget) -> None:
        size = int.from_bytes(raw[:4], "little")
        self._budget = budget
        self._budget.take(size, _NUMBER)
        try:
            self._head = iter(msgspec.json.decode(raw[4 : 4 + size], type=list[Any]))
        except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
            raise Damaged(str(error)) from None
        self._body = memoryview(raw)[4 + size :]

    @classmethod
    def of(cls, blob: bytes) -> ByteReader:
        """Of what is compressed."""
        return cls(unpacked(blob), Budget(len(blob)))

    def objects(self, count: int) -> None:
        """Announce that many Python objects. Raises Damaged if they are too many."""
        self._budget.take(count, _OBJECT)

    def next(self) -> Any:
        """The next fact of the head."""
        try:
            return next(self._head)
        except StopIteration:
            raise Damaged("columns are cut short") from None

    def texts(self) -> list[str]:
        """The next fact, which is a list of texts."""
        found = self.next()
        if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
            raise Damaged("texts are none")
        return found

    def count(self) -> int:
        """The next fact, which is how many values follow."""
        found = self.next()
        self._budget.take(found, _NUMBER)
        return int(found)

    def ints(self, count: int) -> None:
        """Announce an array of so many numbers. Raises Damaged if they are too many."""
        self._budget.take(count, _NUMBER)

    def array(self, count: int) -> npt.NDArray[np.uint64]:
        """The next array, of that many numbers."""
        self._budget.take(count, 2 * _NUMBER)
        width = self.next()
        if not isinstance(width, int) or not 0 < width <= 8 or len(self._body) < count * width:
            raise Damaged("columns are cut short")
        planes = np.zeros((count, 8), dtype=np.uint8)
        planes[:, :width] = np.frombuffer(self._body[: count * width], dtype=np.uint8).reshape(width, count).T
        self._body = self._body[count * width :]
        return planes.view(np.uint64).reshape(count)


def _bits(values: Ints) -> float:
    return float(np.log2(np.abs(values.astype(np.float64)) + 1).sum())


def _folded(values: Ints) -> npt.NDArray[np.uint64]:
    """Signed as unsigned, small ones small."""
    return ((values << 1) ^ (values >> 63)).view(np.uint64)


def _unfolded(values: npt.NDArray[np.uint64]) -> Ints:
    signed = (values >> np.uint64(1)).view(np.int64)
    return signed ^ -(values & np.uint64(1)).view(np.int64)


def _steps(values: Ints) -> Ints:
    """The first value, and each other one less the one before it. np.diff takes three times as long."""
    steps = values.copy()
    steps[1:] -= values[:-1]
    return steps


def write_ints(values: Ints, sink: ByteWriter) -> None:
    """One number where all are the same; else themselves, their differences, or the differences of these."""
    if values.size == 0:
        return
    if (values == values[0]).all():
        sink.head += ["same", int(values[0])]
        return
    once = _steps(values)
    twice = _steps(once)
    # The first of each is a jump, not a step.
    costs = [_bits(values[1:] - values.min()), _bits(once[1:]), _bits(twice[2:])]
    best = costs.index(min(costs))
    sink.head.append(best)
    if best == 0:
        least = int(values.min())
        sink.head.append(least)
        sink.array((values - least).view(np.uint64))
    else:
        sink.array(_folded(once if best == 1 else twice))


def read_ints(count: int, spring: ByteReader) -> Ints:
    """The inverse of `write_ints`."""
    spring.ints(count)
    if count == 0:
        return np.empty(0, dtype=np.int64)
    way = spring.next()
    if way == "same":
        return np.full(count, np.int64(_number(spring)), dtype=np.int64)
    if way == 0:
        least = np.int64(_number(spring))
        return spring.array(count).view(np.int64) + least
    if way not in (1, 2):
        raise Damaged("numbers of an unknown form")
    steps = _unfolded(spring.array(count))
    return np.cumsum(steps) if way == 1 else np.cumsum(np.cumsum(steps))


def read_places(count: int, spring: ByteReader, places: int) -> Ints:
    """Numbers that are places in a list of that length. Raises Damaged for others."""
    found = read_ints(count, spring)
    if count and (found.min() < 0 or found.max() >= places):
        raise Damaged("a place lies outside its list")
    return found


def _number(spring: ByteReader) -> int:
    found = spring.next()
    if not isinstance(found, int) or isinstance(found, bool):
        raise Damaged("a number is none")
    return found
