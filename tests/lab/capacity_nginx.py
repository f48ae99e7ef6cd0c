"""`python -m tests.lab.capacity_nginx [SHARE]`: the capacity of nginx with a CPU quota (share of one CPU, default 0.3).

Each response is compressed, so that the server needs far more CPU than the generator. Prints the rate of a long
closed-loop run, the capacity by a search with a loose limit of latency, and the rate again, in less than four minutes.
Needs root for the quota.
"""

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cockpit.analysis.capacity.result import capacity_result
from cockpit.analysis.words.capacity import capacity_words, level_line
from cockpit.metrics.results import run_result
from cockpit.model.load.plan import LoadPlan
from cockpit.profiles.profile import Profile
from cockpit.session.live_session import LiveSession
from tests.data import data_of
from tests.lab import quotas
from tests.lab.cpus import generator_cpu, on_server_cpu
from tests.lab.inside import wait_until_reachable
from tests.waiting import free_port

DATA = data_of(__file__)

# Closed load that keeps one worker busy, and its time (s) before and after the search.
CONNECTIONS, SECONDS = 16, 40.0
# The longest time of the search (s), and its limits.
LONGEST, LIMITS = 120.0, "p99 < 1s, errors < 1%"
_CONFIG = DATA["config"]


@contextmanager
def nginx(share: float) -> Iterator[tuple[str, Path]]:
    """Run nginx with a CPU quota until the end of the block; yield its URL and its cgroup."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "nginx.conf"
        (Path(folder) / "page").write_text("".join(f"{number * number} " for number in range(4000)))
        config.write_text(_CONFIG.format(folder=folder, port=port))
        group = quotas.granting().create(f"cockpit-capacity-{port}")
        quotas.granting().limit(group, share)
        command = quotas.entering(group, on_server_cpu(["nginx", "-p", folder, "-c", str(config)]))
        server = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            wait_until_reachable("127.0.0.1", port)
            yield f"http://127.0.0.1:{port}/page", group
        finally:
            server.terminate()
            server.wait()
            group.rmdir()


async def measure(url: str) -> None:
    closed = LoadPlan(
        url=url,
        headers=(("Accept-Encoding", "gzip"),),
        concurrency=CONNECTIONS,
        duration=SECONDS,
        warmup=3.0,
        cpus=(generator_cpu(),),
    )
    live = LiveSession(Profile(name="x", plan=closed))
    async with live:
        for number in (1, 2):
            result = run_result(await live.run_once(), live.load.runs)
            assert result is not None
            print(f"closed loop, {CONNECTIONS} connections, {SECONDS:g} s: {result.rate:,.0f}/s", flush=True)
            if number == 1:
                state = await live.search_once(LIMITS, LONGEST)
                found = capacity_result(state, state.capacities[-1])
                print(*(level_line(*each) for each in enumerate(found.levels, 1)), sep="\n")
                print(f"search, {LIMITS}: {capacity_words(found)}", flush=True)


if __name__ == "__main__":
    obstacle = quotas.obstacle()
    if obstacle:
        sys.exit(obstacle)
    with nginx(float(sys.argv[1]) if len(sys.argv) > 1 else 0.3) as (started, _):
        asyncio.run(measure(started))
