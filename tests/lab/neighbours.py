"""Other load on a host of the lab: A/A changes under load, with and without a hog that starts between the sides.

    python -m tests.lab.neighbours [TIMES [SECONDS]]

applies a change without effect TIMES times with and without the hog, SECONDS of load before and after it, and prints
each verdict. The hog is `yes` on the servers' CPU. All processes of the machine except the hog and this program are
watched as servers: only the hog is other load, even on a busy machine.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec.structs import replace

from cockpit.analysis.outcome import Cause, Outcome, Verdict
from cockpit.analysis.segment_verdicts import segment_verdict
from cockpit.analysis.words import verdict_words
from cockpit.model.clock import Clock
from cockpit.model.hosts import HostConfig
from cockpit.model.state import State
from cockpit.profiles.profile import Profile
from cockpit.profiles.reader import read_profile
from cockpit.session.live import LiveSource
from cockpit.session.loop import Session
from tests.lab import quotas
from tests.lab.cpus import generator_cpu, on_server_cpu
from tests.lab.keeper import REPOSITORY
from tests.lab.lab import Host, Lab

# Process names of the hog and of this program; MACHINE watches all others.
HOG, OWN = "zz-hog", "zz-cockpit"
MACHINE = HostConfig(name="machine", processes=("[!z]*",))


def profile_for(web1: Host) -> Profile:
    profile = read_profile(Path(REPOSITORY) / "profiles" / "spare-servers.toml")
    plan = replace(
        profile.plan, connect_to=f"{web1.address}:80", duration=3600.0, concurrency=8, cpus=(generator_cpu(),)
    )
    hosts = (*(replace(host, processes=(), tail=(), status=()) for host in profile.hosts), MACHINE)
    return replace(profile, plan=plan, hosts=hosts)


async def judged(web1: Host, seconds: float, value: str, hog: Path | None) -> Verdict:
    """Return the verdict on a change of MaxSpareServers that has no effect under this load."""
    source = LiveSource(profile_for(web1), Clock(), ssh_config=web1.ssh_config)
    session = Session(source)
    running = asyncio.create_task(session.run())
    hogs: list[asyncio.subprocess.Process] = []

    def lasted(number: int) -> bool:
        segments = session.state.segments
        return len(segments) >= number and segments[-1].seconds >= seconds

    def read(state: State) -> bool:
        known = all(knob.known for knob in state.knobs.values())
        return known and all(len(host.points) > 4 for host in state.hosts.values())

    try:
        await session.until(lambda state: bool(state.knobs) and read(state))
        await source.load.start()
        await session.until(lambda _: lasted(1))
        if hog:
            silent = asyncio.subprocess.DEVNULL
            hogs.append(await asyncio.create_subprocess_exec(*on_server_cpu([str(hog)]), stdout=silent))
        await source.tuning.apply({"MaxSpareServers": value})
        await session.until(lambda _: lasted(2))
        await source.load.stop()
        state = await session.until(lambda state: state.running is None)
    finally:
        for process in hogs:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        await source.close()
        await running
    return segment_verdict(state, state.segments[1], state.segments[0])


def main() -> None:
    """Start `measure` through a link to Python, so that its processes have a unique name."""
    if Path(sys.executable).name == OWN:
        measure(Path(sys.executable).with_name(HOG))
        return
    with TemporaryDirectory() as folder:
        for name, program in ((OWN, sys.executable), (HOG, shutil.which("yes") or "yes")):
            Path(folder, name).symlink_to(os.path.realpath(program))
        path = os.pathsep.join(filter(None, sys.path))
        command = [str(Path(folder, OWN)), "-m", "tests.lab.neighbours", *sys.argv[1:]]
        sys.exit(subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, check=False).returncode)


def measure(hog: Path) -> None:
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 30.0
    correct = 0
    with Lab.start("web1", share=quotas.SHARE) as lab:
        for number in range(times):
            for load in (None, hog):
                value = str(20 + 2 * number + (load is not None))
                verdict = asyncio.run(judged(lab.web1, seconds, value, load))
                invalid = verdict.objection is not None and verdict.objection.cause is Cause.OTHER_LOAD
                correct += invalid == (load is not None)
                loads = ", ".join(f"{each.host} {each.before:.1%} {each.after:.1%}" for each in verdict.other_loads)
                text = verdict_words(verdict) if verdict.outcome is Outcome.INVALID else str(verdict.outcome)
                print(f"{'hog   ' if load else 'no hog'}  {text}  ({loads})", flush=True)
    print(f"{correct} of {2 * times} correct")


if __name__ == "__main__":
    main()
