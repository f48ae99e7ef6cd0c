"""`python -m tests.lab.traffic_runs [RUNS] [AT ONCE]`: rounds on the requests of users to real nginx, as root.

The rate waves and bursts, and the mix of pages drifts. Without a change of service times (the same limit, written in
another way), and with one of 10%: on one server, and on two behind HAProxy that differ by 20%. Prints per design the
share of wrong verdicts, of found changes, and the time that they took. A run takes at most ten minutes; runs at the
same time (default: 8) share this machine, on which nothing else should run. Each has PIDs of its own: a probe reads
only its run's processes.
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from tempfile import TemporaryDirectory

import msgspec

from cockpit.analysis.rounds import RoundsPlan
from cockpit.analysis.verdicts.outcome import DIFFERENT, Outcome
from cockpit.session.live_session import LiveSession
from tests.lab.balanced import HOSTS, KNOBS, PATHS, RATE, balanced
from tests.lab.users import users

RUNS, AT_ONCE = 50, 8
# Requests/s, the new limit without a change and with 10% longer responses, and how much slower the second server is.
_PER_SERVER, _SAME, _LONGER, _GAP = 40.0, f"{RATE // 1024}k", str(round(RATE / 1.1)), 1.2


class Trial(msgspec.Struct, frozen=True):
    """A run to make: with one or two `hosts`, and with or without a change."""

    hosts: tuple[str, ...]
    changed: bool
    seed: int


class Finished(msgspec.Struct, frozen=True):
    outcome: Outcome
    minutes: float


def start(trial: Trial) -> Finished:
    """Make a run in a process of its own, and print its result."""
    command = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-m", "tests.lab.traffic_runs", "--trial"]
    # Each chooses its ports by this number: their PIDs are the same.
    own = os.environ | {"PYTEST_XDIST_WORKER": f"gw{trial.seed % 16}"}
    words = [*command, msgspec.json.encode(trial).decode()]
    ran = subprocess.run(words, stdout=subprocess.PIPE, check=True, env=own)
    finished = msgspec.json.decode(ran.stdout.splitlines()[-1], type=Finished)
    print(trial, finished, file=sys.stderr)
    return finished


def measure(trial: Trial) -> None:
    with TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = state
        print(msgspec.json.encode(asyncio.run(_measured(trial))).decode())


async def _measured(trial: Trial) -> Finished:
    value, plan = _LONGER if trial.changed else _SAME, RoundsPlan(seed=trial.seed)
    rate = _PER_SERVER * len(trial.hosts)
    with balanced(_GAP, trial.hosts) as site:
        async with users(site.port, rate, PATHS, trial.seed), LiveSession(site.profile) as live:
            await live.hosts_read()
            await live.knobs_read()
            await live.load.start()
            await live.session.until(lambda state: bool(state.segment and state.segment.counts.completed > rate))
            begun = live.state.t
            proven = await live.tuning.compare_in_rounds({KNOBS[0]: value}, plan)
            outcome = Outcome.INCONCLUSIVE if proven.verdict is None else proven.verdict.outcome
            return Finished(outcome, (live.state.t - begun) / 60)


def row(name: str, none: Sequence[Finished], ten: Sequence[Finished]) -> str:
    found = [each for each in ten if each.outcome is Outcome.WORSE]
    shares = (
        100 * sum(each.outcome in DIFFERENT for each in none) / len(none),
        100 * sum(each.outcome is Outcome.INVALID for each in none) / len(none),
        100 * len(found) / len(ten),
    )
    minutes = f"{median(each.minutes for each in found):7.1f}" if found else "      –"
    return f"{name:<14}{'':2}{' '.join(f'{share:7.1f}' for share in shares)} {minutes}"


def main(runs: int, at_once: int) -> None:
    designs = {"one server": HOSTS[:1], "two servers": HOSTS}
    trials = [
        Trial(hosts, changed, seed) for hosts in designs.values() for changed in (False, True) for seed in range(runs)
    ]
    with ThreadPoolExecutor(at_once) as pool:
        finished = dict(zip(trials, pool.map(start, trials), strict=True))
    print(
        f"{runs} runs each; wrong and invalid: without a change (%); found: 10% longer responses (%); minutes: median"
    )
    print(f"{'design':<16}  wrong invalid   found minutes")
    for name, hosts in designs.items():
        none, ten = ([finished[Trial(hosts, changed, seed)] for seed in range(runs)] for changed in (False, True))
        print(row(name, none, ten))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--trial"]:
        measure(msgspec.json.decode(sys.argv[2], type=Trial))
    else:
        main(*(int(word) for word in (*sys.argv[1:], *map(str, (RUNS, AT_ONCE)[len(sys.argv) - 1 :]))))
