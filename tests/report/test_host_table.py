"""A host's metrics over a run, as text."""

from __future__ import annotations

import pytest

from cockpit.report.host_table import control_group

USED = {"cgroup.cpu": 46.5, "cgroup.kbmemory": 21 * 1024.0}


@pytest.mark.parametrize(
    ("metrics", "expected"),
    [
        ({"cpu.user": 3.0}, []),
        (USED, ["46.5% of a CPU; memory 21M"]),
        (
            USED | {"cgroup.quota": 50.0, "cgroup.throttled": 85.6, "cgroup.kblimit": 256 * 1024.0},
            ["46.5% of a CPU; quota 50%, used up in 85.6% of the periods; memory 21M of 256M"],
        ),
        (
            USED | {"cgroup.scpu": 60.25, "cgroup.sio": 1.0, "cgroup.smem": 0.0},
            ["46.5% of a CPU; memory 21M", "tasks waited for CPU 60.2%, I/O 1.0%, memory 0.0% of the time"],
        ),
    ],
)
def test_control_group_of_container(metrics: dict[str, float], expected: list[str]) -> None:
    assert [line.removeprefix("    cgroup").strip() for line in control_group(metrics)] == expected
