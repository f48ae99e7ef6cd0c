"""An import format: a title, then start (s), duration (ms) and status per line."""

from collections.abc import Iterator

from cockpit.imports.formats import ForeignFormat, ForeignRequest


def read(lines: Iterator[str]) -> Iterator[ForeignRequest]:
    next(lines)
    for line in lines:
        start, milliseconds, status = line.split()
        yield ForeignRequest(float(start), float(milliseconds) / 1000, int(status))


FORMAT = ForeignFormat("example log", lambda first: first.startswith("#example"), read, since_epoch=False)
