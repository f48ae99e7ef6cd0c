"""The kernel's named counters, merged from frames that have only the changed lines. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import pairwise

from cockpit.hosts.probe.frames import Frame
from cockpit.hosts.probe.numbers import count, shown
from cockpit.model.host.sar import COUNTERS

# Maximum number of ports with an accept queue; exclusive limits of a port number and of a queue's length.
_PORTS, _PORT_LIMIT, _QUEUE_LIMIT = 256, 1 << 16, 1 << 32
_LISTEN = "/proc/net/tcp"
_BACKLOG = "/proc/net/backlog"

_Pairs = Iterator[tuple[str, bytes]]


class CounterTable:
    """The current counters of one probe. Must take every frame."""

    def __init__(self) -> None:
        self.counters: dict[str, int] = {}
        self.accept: dict[int, int] = {}
        self.backlog: dict[int, int] = {}

    def feed(self, frame: Frame) -> None:
        """Set the counters to those of the frame; a frame of changes keeps all others. Raises ValueError."""
        values = dict(self.counters) if frame.pids is not None else {}
        for path, parse in _FILES.items():
            for name, number in _parsed(frame.files, path, parse):
                if name in COUNTERS:
                    values[name] = _number(path, name, number)
        if not values.get("cgroup.version"):
            values = {name: number for name, number in values.items() if not name.startswith("cgroup.")}
        self.counters = values
        self.accept = _ports(frame, _LISTEN, self.accept, 16)
        self.backlog = _ports(frame, _BACKLOG, self.backlog, 10)


def _parsed(files: Mapping[str, bytes], path: str, parse: Callable[[bytes], _Pairs]) -> _Pairs:
    content = files.get(path)
    if content:
        yield from parse(content)


def _number(path: str, name: str, number: bytes) -> int:
    try:
        return count(number)
    except ValueError as error:
        raise ValueError(f"{path}: {name}: {error}") from None


def _words(content: bytes) -> _Pairs:
    """Parse lines `name number …`; the name may end with a colon."""
    for line in content.splitlines():
        words = line.split(maxsplit=2)
        if len(words) > 1:
            yield _text(words[0]).removesuffix(":"), words[1]


def _sockets(content: bytes) -> _Pairs:
    """Parse lines `TCP: inuse 51 orphan 0`."""
    for line in content.splitlines():
        head, *words = line.split() or [b""]
        for name, number in zip(words[::2], words[1::2], strict=False):
            yield f"{_text(head)[:-1]}.{_text(name)}", number


def _tables(content: bytes) -> _Pairs:
    """Parse pairs of lines: `Tcp:` with names, `Tcp:` with their numbers."""
    for names, numbers in pairwise(line.split() for line in content.splitlines()):
        if names and numbers and names[0] == numbers[0] and not names[-1].isdigit():
            for name, number in zip(names[1:], numbers[1:], strict=False):
                yield f"{_text(names[0])[:-1]}.{_text(name)}", number


def _pressure(resource: str) -> Callable[[bytes], _Pairs]:
    """Return a parser of lines `some avg10=0.00 … total=1218`."""

    def parse(content: bytes) -> _Pairs:
        for line in content.splitlines():
            words = line.split()
            if words and words[-1].startswith(b"total="):
                yield f"{resource}.{_text(words[0])}", words[-1].removeprefix(b"total=")

    return parse


def _tasks(content: bytes) -> _Pairs:
    """Parse running and all tasks from `8.37 3.06 1.21 2/168 18307`."""
    words = content.split()
    if len(words) > 3:
        runnable, slash, tasks = words[3].partition(b"/")
        if slash:
            yield from (("runnable", runnable), ("tasks", tasks))


def _ports(frame: Frame, path: str, known: dict[int, int], base: int) -> dict[int, int]:
    """Parse `0050 00000003 01BB 00000000` to numbers by port, summed over a port's sockets.

    A file replaces all `known` numbers; a frame of changes without the file keeps them.
    """
    content = frame.files.get(path)
    if content is None:
        return known if frame.pids is not None else {}
    words = content.split()
    queues: dict[int, int] = {}
    for port, number in zip(words[::2], words[1::2], strict=False):
        at = _integer(port, base, _PORT_LIMIT)
        if at in queues or len(queues) < _PORTS:
            queues[at] = queues.get(at, 0) + _integer(number, base, _QUEUE_LIMIT)
    return queues


def _integer(word: bytes, base: int, limit: int) -> int:
    with suppress(ValueError):
        number = int(word, base) if len(word) <= 10 and word.isalnum() else limit
        if number < limit:
            return number
    raise ValueError(f"/proc/net/tcp: {shown(word)} is not a number below {limit}")


def _text(word: bytes) -> str:
    return word.decode("ascii", "replace")


_FILES: Mapping[str, Callable[[bytes], _Pairs]] = {
    "/proc/vmstat": _words,
    "/proc/meminfo": _words,
    "/proc/stat": _words,
    "/proc/loadavg": _tasks,
    # Not a file: counters that the probe names itself.
    "/proc/named": _words,
    "/proc/net/sockstat": _sockets,
    "/proc/net/snmp": _tables,
    "/proc/net/netstat": _tables,
    **{f"/proc/pressure/{resource}": _pressure(resource) for resource in ("cpu", "io", "memory")},
}
