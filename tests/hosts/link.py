"""A TCP proxy that delays data, or drops it silently, between cockpit and a server."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from tests.load.servers import stop_listening
from tests.waiting import until


class Link:
    """Listens on `port` of loopback and forwards all connections to the server's port.

    `request_delay` and `response_delay` are added per direction, in seconds. `drops`: all data is lost, and
    connections stay open.
    """

    def __init__(self) -> None:
        self.request_delay = 0.0
        self.response_delay = 0.0
        self.drops = False
        self.port = 0
        self._target = 0
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, target: int) -> Link:
        """Listen; after `stop`, on the same port, which another test may use for a moment."""

        async def listen() -> asyncio.Server | None:
            with suppress(OSError):
                return await asyncio.start_server(self._serve, "127.0.0.1", self.port)
            return None

        self._target = target
        self._server = await until(listen)
        assert self._server is not None
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def stop(self) -> None:
        assert self._server is not None
        await stop_listening(self._server)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        ends = [writer]
        try:
            with suppress(OSError):
                server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self._target)
                ends.append(server_writer)
                await asyncio.gather(
                    self._pass(reader, server_writer, "request_delay"),
                    self._pass(server_reader, writer, "response_delay"),
                )
        except asyncio.CancelledError:
            return
        finally:
            for end in ends:
                end.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay: str) -> None:
        """Forward data in order, each chunk after the delay; lose chunks that are due while the link drops data."""
        chunks: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        loop = asyncio.get_running_loop()

        async def deliver() -> None:
            while True:
                due, data = await chunks.get()
                await asyncio.sleep(due - loop.time())
                if not self.drops:
                    if not data:
                        writer.close()
                        return
                    writer.write(data)

        delivering = asyncio.ensure_future(deliver())
        try:
            while True:
                data = await reader.read(65536)
                chunks.put_nowait((loop.time() + getattr(self, delay), data))
                if not data:
                    await delivering
                    return
        finally:
            delivering.cancel()
