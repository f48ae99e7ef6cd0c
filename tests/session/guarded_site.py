"""A web server with users and an access log: a setting decides which share of its responses fails."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from cockpit.session import guard
from cockpit.tuning.change_options import Guard

# Seconds between two requests of each user, and the number of users: 200 requests/s.
_PACE, _USERS = 0.02, 4
# With Level=7 every 20th response fails.
_FAILING, _BAD = 20, "Level=7"
_OK, _FAILED = (f"HTTP/1.1 {words}\r\nContent-Length: 0\r\n\r\n".encode() for words in ("200 OK", "503 Busy"))


def set_lease(monkeypatch: pytest.MonkeyPatch, seconds: int = 60) -> None:
    """Set the lease of changes under limits: a stalled machine may renew it late."""
    monkeypatch.setattr(guard, "Guard", partial(Guard, lease=seconds))


class GuardedSite:
    """`failed`: number of failed responses."""

    def __init__(self, conf: Path, log: Path) -> None:
        self.failed = 0
        self._conf, self._log = conf, log
        self._served = 0

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Serve users until the end of the block."""
        self._log.write_text(_line(200))
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        users = [asyncio.create_task(_browse(*server.sockets[0].getsockname()[:2])) for _ in range(_USERS)]
        try:
            yield
        finally:
            for user in users:
                user.cancel()
            await asyncio.gather(*users, return_exceptions=True)
            server.close()
            await server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer), self._log.open("a", buffering=1) as log:
            while await reader.readline():
                await reader.readline()
                self._served += 1
                fails = self._served % _FAILING == 0 and _BAD in self._conf.read_text()
                log.write(_line(503 if fails else 200))
                if fails:
                    self.failed += 1
                writer.write(_FAILED if fails else _OK)


async def _browse(host: str, port: int) -> None:
    reader, writer = await asyncio.open_connection(host, port)
    with contextlib.closing(writer):
        while True:
            writer.write(b"GET / HTTP/1.1\r\n\r\n")
            await reader.readuntil(b"\r\n\r\n")
            await asyncio.sleep(_PACE)


def _line(status: int) -> str:
    return f'1.2.3.4 - - [x] "GET / HTTP/1.1" {status} 0 "-" "agent" 1500\n'
