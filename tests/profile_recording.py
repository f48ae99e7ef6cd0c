"""`python -m tests.profile_recording`: record real CPU profiles, in which Apache forks much and then no more.

As root, with Apache and perf; takes a minute. Facts of this machine are left out.
"""

import asyncio
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec.structs import replace

from cockpit.model import events as ev
from cockpit.model.host.samples import HostConfig
from cockpit.model.load.plan import LoadPlan
from cockpit.profiles.profile import Profile
from cockpit.recording.reader import Recording
from cockpit.recording.writer import RecordingWriter
from cockpit.session.live_session import LiveSession
from tests.bench.crowded import recorded
from tests.lab.test_profiles_of_servers import PREFORK, restart_apache, running, wait_for
from tests.waiting import free_port

TARGET = Path(__file__).parent / "recordings" / "profiled.cockpit"
# Eight slices of 5 s per side; those with the first and the last seconds do not count.
SECONDS = 45.0


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        directory, port = Path(name), free_port()
        directory.chmod(0o755)
        (directory / "hello.txt").write_text("hello\n")
        config = directory / "apache.conf"
        config.write_text(PREFORK.format(directory=directory, port=port, spare=5, per_child=1))

        def change() -> None:
            config.write_text(PREFORK.format(directory=directory, port=port, spare=20, per_child=0))
            restart_apache(config)

        plan = LoadPlan(url=f"http://127.0.0.1:{port}/hello.txt", concurrency=4, duration=SECONDS, keepalive=False)
        with running("apache2", "-f", str(config), "-D", "FOREGROUND"):
            wait_for(port)
            asyncio.run(_record(plan, RecordingWriter(directory / "raw.cockpit"), change))
        with Recording(directory / "raw.cockpit") as recording:
            events = list(_anonymous(recording.events(), name))
    TARGET.unlink(missing_ok=True)
    recorded(TARGET, events)
    return 0


async def _record(plan: LoadPlan, writer: RecordingWriter, change: Callable[[], None]) -> None:
    host = HostConfig(name="web1", processes=("apache2",), profile=199)
    async with LiveSession(Profile(name="profiled", plan=plan, hosts=(host,)), writer) as live:
        await live.session.until(lambda state: bool(state.hosts) and bool(state.hosts["web1"].slices))
        await live.run_once()
        change()
        await live.run_once()


def _anonymous(events: Iterator[ev.AnyEvent], directory: str) -> Iterator[ev.AnyEvent]:
    for event in events:
        if isinstance(event, ev.SessionStarted):
            event = replace(event, environment={"python": "3.11"})
        elif isinstance(event, ev.HostChanged) and event.facts:
            event = replace(event, facts=replace(event.facts, hostname="web1", kernel="6.1.0", boot=""))
        text = ev.encode(event).decode().replace(directory, "/run/apache")
        yield ev.decode(re.sub(r"/tmp/[\w/.-]+", "/run/apache", text))


if __name__ == "__main__":
    sys.exit(main())
