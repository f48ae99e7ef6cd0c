"""A real server is killed, stopped (SIGSTOP) or responds with 503 under load; the screen shows the failure live."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from textual.pilot import Pilot

from cockpit.analysis.failures import stall
from cockpit.analysis.warnings import WarningKind, segment_warnings
from cockpit.model.clock import Clock
from cockpit.model.load import LoadPlan
from cockpit.model.state import State
from cockpit.profiles.profile import Profile
from cockpit.session.live import LiveSource
from cockpit.session.loop import Session
from cockpit.tui.app import CockpitApp
from cockpit.tui.banner import Banner
from cockpit.tui.charts.throughput import Throughput
from cockpit.tui.status_lines import TopLine
from tests.tui.driving import main, press, screen_text, text_of, until

SIZES = ((120, 40), (80, 24), (200, 50))
CONNECTIONS = 5

# Responds with 200 after 2 ms, and with 503 after SIGUSR1.
SERVER = """
import asyncio, signal

async def main():
    lines = [b"HTTP/1.1 200 OK"]
    asyncio.get_running_loop().add_signal_handler(
        signal.SIGUSR1, lambda: lines.__setitem__(0, b"HTTP/1.1 503 Service Unavailable")
    )

    async def serve(reader, writer):
        try:
            while True:
                await reader.readuntil(b"\\r\\n\\r\\n")
                await asyncio.sleep(0.002)
                writer.write(lines[0] + b"\\r\\nContent-Length: 2\\r\\n\\r\\nok")
        except (EOFError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"""


@dataclass
class Target:
    """A server process, and the app that generates its load."""

    process: Process
    session: Session
    pilot: Pilot[object]

    @property
    def state(self) -> State:
        return self.session.state

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def pane(self, kind: type[Banner | Throughput | TopLine]) -> str:
        return text_of(main(self.pilot.app).query_one(kind))

    async def until(self, condition: Callable[[], bool]) -> None:
        await until(self.pilot, condition)

    async def until_banner(self, *parts: str) -> str:
        await self.until(lambda: all(part in self.pane(Banner) for part in parts))
        return self.pane(Banner)


@asynccontextmanager
async def loaded(size: tuple[int, int]) -> AsyncIterator[Target]:
    """Run the app on a server that has been under load for at least one complete second."""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", SERVER, stdout=PIPE)
    assert process.stdout is not None
    try:
        port = int(await process.stdout.readline())
        plan = LoadPlan(url=f"http://127.0.0.1:{port}/", concurrency=CONNECTIONS, duration=600.0, timeout=500.0)
        session = Session(LiveSource(Profile(name="x", plan=plan), Clock()))
        app = CockpitApp(session)
        async with app.run_test(size=size) as pilot:
            await press(pilot, "space")
            await until(pilot, lambda: len(session.state.seconds) >= 2)
            yield Target(process, session, pilot)
    finally:
        if process.returncode is None:
            os.kill(process.pid, signal.SIGKILL)
        await process.wait()


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_killed_server_shows_down_since_and_errors_by_kind(size: tuple[int, int]) -> None:
    async with loaded(size) as target:
        await target.until(lambda: "/10:00" in target.pane(TopLine) and not target.pane(Banner))
        target.send(signal.SIGKILL)
        banner = await target.until_banner("TARGET DOWN since 0:0", "failed (100%)", "refused ")
        assert "/s failed (100%): refused" in banner
        await target.until(lambda: target.pane(Throughput).count("x") > 5)
        assert " failed" in target.pane(Throughput)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_503_responses_are_failures_by_status(size: tuple[int, int]) -> None:
    async with loaded(size) as target:
        target.send(signal.SIGUSR1)
        banner = await target.until_banner("FAILING since 0:0", "failed (100%)")
        assert "(100%): 503 " in banner
        assert "DOWN" not in banner, "it responds"
        assert "x" in target.pane(Throughput)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_stopped_server_shows_stall_and_coordinated_omission(size: tuple[int, int]) -> None:
    async with loaded(size) as target:
        target.send(signal.SIGSTOP)
        banner = await target.until_banner("NO RESPONSE for ", f"{CONNECTIONS} in flight, oldest ")
        assert "failed" not in banner, "nothing has failed yet"
        await target.until(lambda: "■" in target.pane(Throughput) and target.state.seconds[-1].stalled)
        assert target.state.seconds[-1].completed == 0
        await target.until(lambda: (found := stall(target.state)) is not None and found.seconds >= 2.0)
        before = target.state.segments[-1].counts.completed
        target.send(signal.SIGCONT)
        await target.until(lambda: not target.pane(Banner) and target.state.seconds[-1].completed > CONNECTIONS)
        await press(target.pilot, "space")
        await target.until(lambda: target.state.running is None)
        segment = target.state.segments[-1]
        assert segment.counts.completed > before
        assert segment.stalled > 1.5
        assert segment.counts.latency.max >= 2.0
        [warning] = [candidate for candidate in segment_warnings(segment) if candidate.kind is WarningKind.STALLED]
        assert warning.values["seconds"] == segment.stalled
        if size != (80, 24):
            assert "coordinated omission" in " ".join(screen_text(target.pilot).split())
