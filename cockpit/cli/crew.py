"""The crew of a session: load workers of this machine, of the profile's generators, or of a cluster."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from cockpit import __version__
from cockpit.cli.terminal import can_ask, confirmed
from cockpit.load.workers import Crew
from cockpit.model.errors import NotInstalled, UsageError
from cockpit.model.hosts import GeneratorConfig
from cockpit.profiles.profile import Profile

if TYPE_CHECKING:
    from distributed.security import Security


@asynccontextmanager
async def crew_of(profile: Profile, ssh_config: Path | None) -> AsyncIterator[Crew | None]:
    """Start the generators of a profile, or join its cluster; None for a profile without. All that was started ends
    with the block. Raises UsageError, HostError."""
    if not profile.generators and not profile.cluster:
        yield None
        return
    if find_spec("distributed") is None:
        raise UsageError("load from other machines needs Dask: pip install 'cockpit[cluster]'")
    from cockpit.cluster.crew import DaskCrew

    if profile.cluster:
        print(f"joining {profile.cluster}", file=sys.stderr)
        async with DaskCrew(profile.cluster) as crew:
            print(f"generators: {', '.join(crew.names)}", file=sys.stderr)
            yield crew
        return
    async with AsyncExitStack() as stack:
        cluster = await _started(stack, profile.generators, ssh_config)
        yield await stack.enter_async_context(DaskCrew(*cluster, generators=len(profile.generators)))


async def _started(
    stack: AsyncExitStack, generators: Sequence[GeneratorConfig], ssh_config: Path | None
) -> tuple[str, Security]:
    """Start the generators; offer to install cockpit on those that lack it."""
    from cockpit.cluster.over_ssh import cluster_over_ssh

    left = {one.name: one for one in generators if not one.python}
    while True:
        print(f"starting generators: {', '.join(one.name for one in generators)}", file=sys.stderr)
        try:
            return await stack.enter_async_context(cluster_over_ssh(generators, ssh_config))
        except NotInstalled as error:
            lacking = left.pop(error.subject, None)
            if lacking is None or not await asyncio.to_thread(_agreed, error):
                raise
            await _install(lacking, ssh_config)


def _agreed(error: NotInstalled) -> bool:
    """Ask whether to install cockpit on the generator; no without a terminal."""
    question = f"Install cockpit {__version__} there, into ~/.local/state/cockpit/venv?"
    return can_ask() and confirmed(f"{error}\n{question}")


async def _install(config: GeneratorConfig, ssh_config: Path | None) -> None:
    from cockpit.cluster.install import install

    print(f"installing cockpit on {config.name}", file=sys.stderr)
    await install(config, ssh_config)
