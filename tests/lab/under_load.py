"""Study S1 with a change of its settings under load, in one run.

    python -m tests.lab.under_load tests/recordings/under-load.cockpit [SECONDS [CONNECTIONS]]

brings up a lab, records such a session to a new file (SECONDS of load before and after the change), prints its verdict
and takes the lab down. The machine should be idle.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from msgspec.structs import replace

from cockpit.analysis.segment_verdicts import segment_verdict
from cockpit.analysis.verdict import Verdict
from cockpit.analysis.words import method_lines, verdict_line
from cockpit.model.clock import Clock
from cockpit.model.knobs import ServerAction
from cockpit.model.state import State
from cockpit.profiles.profile import Profile
from cockpit.profiles.reader import read_profile
from cockpit.recording.writer import RecordingWriter
from cockpit.session.live import LiveSource
from cockpit.session.loop import Session
from tests.lab.cpus import generator_cpu
from tests.lab.keeper import REPOSITORY
from tests.lab.lab import Host, Lab

VALUES = {"MinSpareServers": "30", "MaxSpareServers": "60", "MaxConnectionsPerChild": "10000"}
RESTART = ServerAction(name="restart", host="web1", command="service apache2 restart")


def profile_for(web1: Host, connections: int) -> Profile:
    """Return the shipped profile with a long load and two ticks per second: the recording stays small."""
    profile = read_profile(Path(REPOSITORY) / "profiles" / "spare-servers.toml")
    plan = replace(
        profile.plan,
        connect_to=f"{web1.address}:80",
        requests=None,
        duration=3600.0,
        concurrency=connections,
        tick=0.5,
        cpus=(generator_cpu(),),
    )
    return replace(profile, plan=plan, actions=(RESTART,))


async def record(web1: Host, file: Path, seconds: float, connections: int) -> Verdict:
    """Record the session and return the verdict on its change."""
    source = LiveSource(profile_for(web1, connections), Clock(), ssh_config=web1.ssh_config)
    session = Session(source, RecordingWriter(file))
    running = asyncio.create_task(session.run())

    def lasted(number: int) -> bool:
        segments = session.state.segments
        return len(segments) == number and segments[-1].seconds >= seconds

    def read_again(state: State) -> bool:
        return (state.hosts["web1"].seen or 0.0) >= (state.segments[-1].end or 0.0)

    try:
        await session.until(lambda state: bool(state.knobs) and all(knob.known for knob in state.knobs.values()))
        await source.load.start()
        await session.until(lambda _: lasted(1))
        await source.tuning.apply(VALUES)
        await session.until(lambda _: lasted(2))
        await source.load.stop()
        state = await session.until(lambda state: state.running is None and read_again(state))
    finally:
        await source.close()
        await running
    first, second = state.segments
    return segment_verdict(state, second, first)


def main() -> None:
    seconds = int(sys.argv[2]) if len(sys.argv) > 2 else 60
    connections = int(sys.argv[3]) if len(sys.argv) > 3 else 20
    with Lab.start() as lab:
        verdict = asyncio.run(record(lab.web1, Path(sys.argv[1]), seconds, connections))
    print(verdict_line(verdict), *method_lines(verdict), sep="\n")


if __name__ == "__main__":
    main()
