"""`python -m tests.lab.duet_builds [REPETITIONS] [--slower]`: checks against a base on a disturbed host.

Two nginx of the same build have a CPU quota each, disturbed alike as in `duet_disturbed`; with `--slower` the quota of
the head is 5% smaller. Prints the answer of each check, how many answers are wrong, and the mean ratio of head to
base. Which instance is the base alternates. PAIRS checks run at the same time. A check takes at most two minutes.
Needs root for the quotas.
"""

from __future__ import annotations

import asyncio
import math
import sys
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from statistics import fmean, stdev

from msgspec.structs import replace

from cockpit.analysis.duet import loss
from cockpit.analysis.verdicts.outcome import Outcome, Verdict
from cockpit.analysis.verdicts.segments import verdicts
from cockpit.metrics.margins import TOLERATED_LOSS
from cockpit.model.load.plan import TargetVariant
from cockpit.profiles.plan import LONGEST_DUET, until_verdict
from cockpit.profiles.profile import Profile
from cockpit.session.live_session import LiveSession
from tests.lab import quotas
from tests.lab.capacity_nginx import nginx
from tests.lab.duet_disturbed import disturbed, plan_of

# Quotas that stay far below one CPU in sum: on a full CPU the group whose period begins later loses.
PAIRS, SHARE, SLOWER = 2, 0.15, 0.95

Server = tuple[str, Path]


async def check(base: Server, head: Server) -> tuple[Verdict, float]:
    """Check the head against the base; return the verdict and the seconds of load."""
    variants = tuple(TargetVariant(name=name, url=url) for name, (url, _) in (("base", base), ("head", head)))
    plan = replace(plan_of(base[0], LONGEST_DUET), variants=variants, margin=TOLERATED_LOSS)
    async with LiveSession(Profile(name="x", plan=until_verdict(plan, LONGEST_DUET))) as live:
        state = await live.run_once()
    return verdicts(state)[0], state.segments[-1].seconds


async def check_pair(servers: tuple[Server, Server], seeds: range, speed: float) -> list[Verdict]:
    """Check a pair of servers once per seed."""
    judged = []
    for seed in seeds:
        base, head = servers if seed % 2 else servers[::-1]
        with disturbed({base[1]: SHARE, head[1]: SHARE * speed}, seed):
            verdict, seconds = await check(base, head)
        rate = verdict.effect("rate")
        change = f"{100 * rate.change:+.1f}%" if rate and rate.change is not None else "unknown"
        print(f"{seed}: {verdict.outcome} after {seconds:.0f} s, rate {change}, {loss(verdict)}", flush=True)
        judged.append(verdict)
    return judged


async def repeat(pairs: list[tuple[Server, Server]], repetitions: int, speed: float) -> None:
    each = repetitions // len(pairs)
    seeds = [range(number * each, (number + 1) * each) for number in range(len(pairs))]
    checks = (check_pair(servers, numbers, speed) for servers, numbers in zip(pairs, seeds, strict=True))
    results = await asyncio.gather(*checks)
    judged = [verdict for result in results for verdict in result]
    print("outcomes:", dict(Counter(verdict.outcome for verdict in judged)))
    print("losses:", dict(Counter(loss(verdict) for verdict in judged)))
    for name, which in (("all", slice(None)), ("even seeds", slice(0, None, 2)), ("odd seeds", slice(1, None, 2))):
        effects = [effect for result in results for verdict in result[which] if (effect := verdict.effect("rate"))]
        logs = [math.log1p(effect.change) for effect in effects if effect.change is not None]
        if len(logs) > 1:
            print(
                f"head / base, {name}: {math.exp(fmean(logs)):.4f}, standard error {stdev(logs) / len(logs) ** 0.5:.4f}"
            )
    right = Outcome.WORSE if speed < 1 else Outcome.EQUIVALENT
    wrong = [
        verdict for verdict in judged if verdict.outcome in (Outcome.BETTER, Outcome.WORSE) and verdict.outcome != right
    ]
    print(f"wrong: {len(wrong)} of {len(judged)}, right: {sum(verdict.outcome is right for verdict in judged)}")


if __name__ == "__main__":
    obstacle = quotas.obstacle()
    if obstacle:
        sys.exit(obstacle)
    numbers = [int(argument) for argument in sys.argv[1:] if argument.isdecimal()]
    with ExitStack() as stack:
        started = [(stack.enter_context(nginx(SHARE)), stack.enter_context(nginx(SHARE))) for _ in range(PAIRS)]
        asyncio.run(repeat(started, numbers[0] if numbers else PAIRS, SLOWER if "--slower" in sys.argv else 1.0))
