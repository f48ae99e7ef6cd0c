"""`python -m tests.lab.duet_disturbed [REPETITIONS]`: a duet and rounds of the same total time on a disturbed host.

Two nginx of the same build have a CPU quota each. At random times both quotas change by up to 20%, and a program in
each cgroup takes CPU for some seconds. Prints the 95% intervals of the ratio of both rates, whose true value is 1, and
the ratio of their widths. A repetition takes less than five minutes. Needs root for the quotas.
"""

import asyncio
import math
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from msgspec.structs import replace

from cockpit.analysis.verdicts.outcome import Verdict
from cockpit.analysis.verdicts.verdict import judge_duet, judge_rounds
from cockpit.analysis.windows import Window, segment_window
from cockpit.analysis.words.verdicts import change_words, verdict_line
from cockpit.model.load.plan import LoadPlan, TargetVariant
from cockpit.profiles.profile import Profile
from cockpit.session.live_session import LiveSession
from tests.lab import quotas
from tests.lab.capacity_nginx import nginx
from tests.lab.cpus import generator_cpu, on_server_cpu

SHARE, CONNECTIONS = 0.3, 8
# Seconds of the duet; windows of the rounds, which fill the same time.
SECONDS, WINDOW = 120, 10
_SPIN = [sys.executable, "-c", "while True: pass"]


@contextmanager
def disturbed(groups: Mapping[Path, float], seed: int) -> Iterator[None]:
    """Disturb the cgroups alike, each with its share of a CPU, until the end of the block."""
    spinners = [subprocess.Popen(quotas.entering(group, on_server_cpu(_SPIN))) for group in groups]
    ended = threading.Event()

    def disturb() -> None:
        chance = random.Random(seed)
        while True:
            speed, burst = chance.uniform(0.8, 1.2), chance.random() < 0.4
            # In random order: setting a quota begins a period, and the group that begins first is served first.
            for (group, share), spinner in chance.sample(list(zip(groups.items(), spinners, strict=True)), len(groups)):
                quotas.granting().limit(group, share * speed)
                spinner.send_signal(signal.SIGCONT if burst else signal.SIGSTOP)
            if ended.wait(chance.uniform(2, 10)):
                return

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        for spinner in spinners:
            spinner.kill()
            spinner.wait()


def plan_of(url: str, seconds: float) -> LoadPlan:
    return LoadPlan(
        url=url,
        headers=(("Accept-Encoding", "gzip"),),
        concurrency=CONNECTIONS,
        duration=seconds,
        extend=0.0,
        cpus=(generator_cpu(),),
    )


async def run(plan: LoadPlan) -> Window:
    """Run the plan once; return its window."""
    async with LiveSession(Profile(name="x", plan=plan)) as live:
        state = await live.run_once()
    return segment_window(state, state.segments[-1])


async def duet(urls: list[str]) -> Verdict:
    variants = tuple(TargetVariant(name=name, url=url) for name, url in zip("AB", urls, strict=True))
    return judge_duet(await run(replace(plan_of(urls[0], SECONDS), variants=variants)))


async def rounds(urls: list[str], seed: int) -> Verdict:
    chance, pairs = random.Random(seed), []
    for _ in range(SECONDS // WINDOW // 2):
        order = chance.sample(range(2), 2)
        # The targets differ in their port, which is no difference of the load.
        windows = {at: replace(await run(plan_of(urls[at], WINDOW)), plan=plan_of(urls[0], WINDOW)) for at in order}
        pairs.append(([windows[0]], [windows[1]]))
    return judge_rounds(pairs, budget=len(pairs))


def width(verdict: Verdict) -> float:
    """Return the width of the interval of the rate (logarithm); infinite if it is open."""
    effect = verdict.effect("rate")
    if effect is None or effect.low is None or effect.high is None:
        return math.inf
    return math.log1p(effect.high) - math.log1p(effect.low)


async def repeat(urls: list[str], groups: Mapping[Path, float], repetitions: int) -> None:
    for number in range(repetitions):
        with disturbed(groups, 2 * number):
            together = await duet(urls)
        with disturbed(groups, 2 * number + 1):
            apart = await rounds(urls, number)
        for name, verdict in (("duet", together), ("rounds", apart)):
            rate = verdict.effect("rate")
            print(f"{name}: {verdict_line(verdict)}; rate {change_words(rate) if rate else 'unknown'}", flush=True)
        print(f"width of the interval, rounds / duet: {width(apart) / width(together):.1f}", flush=True)


if __name__ == "__main__":
    obstacle = quotas.obstacle()
    if obstacle:
        sys.exit(obstacle)
    with ExitStack() as stack:
        servers = [stack.enter_context(nginx(SHARE)) for _ in range(2)]
        urls, groups = [url for url, _ in servers], {group: SHARE for _, group in servers}
        asyncio.run(repeat(urls, groups, int(sys.argv[1]) if len(sys.argv) > 1 else 1))
