"""Stream of JSON lines, each written as soon as it is complete."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from cockpit.export.lines import AnyLine, SessionLines
from cockpit.model.errors import UsageError
from cockpit.model.state import State
from cockpit.model.text import escaped


class NdjsonStream:
    """A stream of JSON lines to `write`. It ends when `write` raises BrokenPipeError or UsageError."""

    def __init__(self, write: Callable[[Iterable[str]], None]) -> None:
        self.trouble = ""
        self._write = write
        self._lines = SessionLines()
        self._encoder = msgspec.json.Encoder()

    async def send_new(self, state: State) -> None:
        self._put(self._lines.new_lines(state))

    async def close(self, state: State) -> None:
        self._put(self._lines.new_lines(state, last=True))

    def _put(self, lines: Iterable[AnyLine]) -> None:
        if self.trouble:
            return
        try:
            self._write(f"{escaped(self._encoder.encode(line).decode())}\n" for line in lines)
        except BrokenPipeError:
            self.trouble = "--ndjson: the reader closed the pipe; later lines were not written"
        except UsageError as error:
            self.trouble = f"--ndjson: {error}"
