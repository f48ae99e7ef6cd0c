"""Short runs of shipped profiles, one with each value of their knobs."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from cockpit.metrics.results import RunResult, run_result
from cockpit.model.study import with_address
from cockpit.profiles.profile import Profile
from cockpit.profiles.reader import parse_profile
from cockpit.session.live_session import LiveSession
from tests.lab.cpus import generator_cpu

PROFILES = Path(__file__).parents[2] / "profiles"


def shipped(
    name: str, addresses: Mapping[str, str], seconds: float, replaced: Mapping[str, str] | None = None
) -> Profile:
    """A shipped profile with another duration, and parts of its text replaced."""
    text = (PROFILES / f"{name}.toml").read_text()
    for old, new in (replaced or {}).items():
        assert old in text
        text = text.replace(old, new)
    profile = parse_profile(text, name, f"{name}.toml")
    plan = with_address(profile.plan, addresses)
    return replace(profile, plan=replace(plan, cpus=(generator_cpu(),), duration=seconds))


async def runs_of(
    profile: Profile,
    changes: Sequence[Mapping[str, str | None]],
    ssh_config: Path | None = None,
    may_fail: bool = False,
    shows: Callable[..., bool] = lambda *results: True,
) -> list[RunResult]:
    """A run after each change, and then all changes are undone; without requests that fail unless they may.

    A run is repeated, at most twice, if `shows` is false for the results so far: on a busy machine it may be slow.
    """
    results: list[RunResult] = []
    async with LiveSession(profile, ssh_config=ssh_config) as live:
        await live.hosts_read()
        await live.knobs_read()
        for values in changes:
            if values:
                await live.tuning.apply(values)
            for _ in range(3):
                result = run_result(await live.run_once(), live.load.runs)
                assert result is not None and (may_fail or result.counts.failed == 0)
                if shows(*results, result):
                    break
            results.append(result)
        for change in reversed(live.state.changes):
            await live.tuning.undo(change.letter)
    return results
