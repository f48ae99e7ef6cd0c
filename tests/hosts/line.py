"""A line between the cockpit and a server that can be slow, or dead without saying so."""

from __future__ import annotations

import asyncio
from contextlib import suppress


class Line:
    """Listens on `port` of loopback and passes everything on to the server's port.

    `there` and `back` (s) is how long that takes each way; `cut`: nothing passes, and nobody is told.
    """

    def __init__(self) -> None:
        self.there = 0.0
        self.back = 0.0
        self.cut = False
        self.port = 0
        self._target = 0
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, target: int) -> Line:
        """Listen, after a `stop` on the same port again."""
        self._target = target
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        try:
            with suppress(OSError):
                await asyncio.gather(self._pass(reader, far_writer, "there"), self._pass(far_reader, writer, "back"))
        except asyncio.CancelledError:
            return
        finally:
            for end in (writer, far_writer):
                end.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: str) -> None:
        """Everything in order, each piece so much later than it came; what comes while the line is cut is lost."""
        pieces: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        async def deliver() -> None:
            while True:
                due, data = await pieces.get()
                await asyncio.sleep(due - loop.time())
                if not self.cut:
                    if not data:
                        writer.close()
                        return
                    writer.write(data)

        delivering = asyncio.ensure_future(deliver())
        try:
            while True:
                data = await reader.read(65536)
                pieces.put_nowait((loop.time() + getattr(self, way), data))
                if not data:
                    await delivering
                    return
        finally:
            delivering.cancel()
