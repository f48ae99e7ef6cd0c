"""Launcher of a session: its load workers on the profile's generators or in a cluster."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from cockpit import __version__
from cockpit.cli.terminal import can_ask, is_confirmed
from cockpit.load.workers import WorkerLauncher
from cockpit.model.errors import ExtraRequired, NotInstalled
from cockpit.model.host.samples import GeneratorConfig
from cockpit.profiles.profile import Profile

if TYPE_CHECKING:
    from distributed.security import Security


@asynccontextmanager
async def launcher_of(profile: Profile, ssh_config: Path | None) -> AsyncIterator[WorkerLauncher | None]:
    """Start the generators of a profile, or join its cluster; yield None for a profile without them.

    Everything started is stopped at the end of the block. Raises ExtraRequired, HostError.
    """
    if not profile.load_elsewhere:
        yield None
        return
    _require_dask()
    from cockpit.cluster.dask_launcher import DaskLauncher

    if profile.cluster:
        print(f"joining {profile.cluster}", file=sys.stderr)
        async with DaskLauncher(profile.cluster) as launcher:
            print(f"generators: {', '.join(launcher.names)}", file=sys.stderr)
            yield launcher
        return
    async with AsyncExitStack() as stack:
        cluster = await _start(stack, profile.generators, ssh_config)
        yield await stack.enter_async_context(DaskLauncher(*cluster, generators=len(profile.generators)))


def _require_dask() -> None:
    if find_spec("distributed") is None:
        raise ExtraRequired("load from other machines", "Dask", "cluster")


async def check_generator(config: GeneratorConfig, ssh_config: Path | None) -> None:
    """Check that the load program of a generator starts, in the versions of this machine. Raises ExtraRequired,
    HostError, UsageError."""
    _require_dask()
    from cockpit.cluster.over_ssh import load_program

    async with load_program(config, ssh_config):
        pass


async def _start(
    stack: AsyncExitStack, generators: Sequence[GeneratorConfig], ssh_config: Path | None
) -> tuple[str, Security]:
    """Start the generators; offer to install cockpit on a generator without it, once for each."""
    from cockpit.cluster.over_ssh import cluster_over_ssh

    installable = {generator.name: generator for generator in generators if not generator.python}
    while True:
        print(f"starting generators: {', '.join(generator.name for generator in generators)}", file=sys.stderr)
        try:
            return await stack.enter_async_context(cluster_over_ssh(generators, ssh_config))
        except NotInstalled as error:
            generator = installable.pop(error.subject, None)
            if generator is None or not await _confirm_install(error):
                raise
            await _install(generator, ssh_config)


async def _confirm_install(error: NotInstalled) -> bool:
    question = f"Install cockpit {__version__} there, into ~/.local/state/webcockpit/venv?"
    return can_ask() and await is_confirmed(f"{error}\n{question}")


async def _install(config: GeneratorConfig, ssh_config: Path | None) -> None:
    from cockpit.cluster.install import install

    print(f"installing cockpit on {config.name}", file=sys.stderr)
    await install(config, ssh_config)
