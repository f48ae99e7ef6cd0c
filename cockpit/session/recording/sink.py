"""Where columns are written to and read from: small facts in a head, arrays of whole numbers behind it."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from cockpit.session.recording.packing import Damaged, packed, unpacked

Ints = npt.NDArray[np.int64]


class Sink:
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


class Spring:
    """Gives back what a Sink took in, in the same order. Raises Damaged."""

    def __init__(self, raw: bytes | memoryview) -> None:
        size = int.from_bytes(raw[:4], "little")
        try:
            self._head = iter(msgspec.json.decode(raw[4 : 4 + size]))
        except msgspec.MsgspecError as error:
            raise Damaged(str(error)) from None
        self._body = memoryview(raw)[4 + size :]

    @classmethod
    def of(cls, blob: bytes) -> Spring:
        """Of what is compressed."""
        return cls(unpacked(blob))

    def next(self) -> Any:
        """The next fact of the head."""
        try:
            return next(self._head)
        except StopIteration:
            raise Damaged("columns are cut short") from None

    def array(self, count: int) -> npt.NDArray[np.uint64]:
        """The next array, of that many numbers."""
        width = self.next()
        if len(self._body) < count * width:
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


def write_ints(values: Ints, sink: Sink) -> None:
    """One number where all are the same; else themselves, their differences, or the differences of these."""
    if values.size == 0:
        return
    if (values == values[0]).all():
        sink.head += ["same", int(values[0])]
        return
    once = np.diff(values, prepend=np.int64(0))
    twice = np.diff(once, prepend=np.int64(0))
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


def read_ints(count: int, spring: Spring) -> Ints:
    """The inverse of `write_ints`."""
    if count == 0:
        return np.empty(0, dtype=np.int64)
    way = spring.next()
    if way == "same":
        return np.full(count, spring.next(), dtype=np.int64)
    if way == 0:
        least = spring.next()
        return spring.array(count).view(np.int64) + np.int64(least)
    steps = _unfolded(spring.array(count))
    return np.cumsum(steps) if way == 1 else np.cumsum(np.cumsum(steps))
