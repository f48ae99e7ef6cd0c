"""The cgroup of a server with a CPU quota, on this machine's kernel."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from cockpit.model import sar
from tests.hosts.conftest import TAG, running
from tests.lab import quotas

# Quota, of one CPU.
SHARE = 0.2
# Version 1 may account CPU usage in a separate hierarchy.
USAGE = Path("/sys/fs/cgroup/cpuacct")


@pytest.fixture
def busy(tmp_path: Path) -> Iterator[str]:
    """Run a CPU-bound process in a cgroup with a quota; yield its name."""
    controller = quotas.controller()
    assert controller is not None
    name = f"cockpit-test-{os.getpid()}"
    group = controller.create(name)
    groups = [group]
    program = tmp_path / f"{TAG}-busy"
    program.symlink_to("/bin/sh")
    try:
        controller.limit(group, SHARE)
        if controller.version == 1 and not (USAGE / name).exists():
            groups.append(USAGE / name)
            groups[-1].mkdir()
        enter = "".join(f"echo $$ >{each}/cgroup.procs; " for each in groups)
        with subprocess.Popen([program, "-c", f"{enter}echo; while :; do :; done"], stdout=subprocess.PIPE) as process:
            assert process.stdout and process.stdout.readline()
            yield program.name
            process.kill()
    finally:
        for each in groups:
            each.rmdir()


async def test_used_quota_and_throttling_are_measured(busy: str) -> None:
    async with running(busy) as probe:
        first = await probe.read()
        while (last := await probe.read()).uptime < first.uptime + 2:
            pass
    levels, rates = sar.levels(last), sar.rates(first, last, last.uptime - first.uptime)
    assert levels["cgroup.quota"] == pytest.approx(100 * SHARE)
    # On a busy machine the process gets less than its quota.
    assert 0 < rates["cgroup.cpu"] <= 100 * SHARE * 1.2
    assert rates["cgroup.throttled"] > 0
