"""Shipped studies on a lab: the main effects of two, in less than a minute each, and an action."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lab import web1
from tests.lab.cpus import on_generator_cpu
from tests.lab.keeper import REPOSITORY
from tests.lab.lab import Host, Lab
from tests.lab.services import PREFORK_CONF

TIMEOUT = 300.0  # s; far longer than a study takes
RESTART_MEMORY = tomllib.loads((REPOSITORY / "profiles/restart-memory.toml").read_text())


def study(lab: Lab, folder: Path, name: str, short: str) -> dict[str, Any]:
    """Run a shipped study with another short form; return its result."""
    text = (REPOSITORY / "profiles" / f"{name}.toml").read_text().partition("[study.short]")[0]
    profile = folder / f"{name}.toml"
    profile.write_text(f"{text}[study.short]\n{short}\n")
    command = [sys.executable, "-m", "cockpit", "study", "--trust", str(profile), "--short", "--json"]
    command += ["--ssh-config", str(lab.ssh_config), "-o", str(folder / "out")]
    done = subprocess.run(
        on_generator_cpu(command), capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=TIMEOUT
    )
    assert done.returncode in (0, 4), done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    assert result["ended"] and result["complete_rounds"] > 0
    return result


def cells(result: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {cell["variant"]: cell for cell in result["cells"]}


def test_spare_servers_study_shows_spawned_processes(lab: Lab, fresh_web1: Host, tmp_path: Path) -> None:
    before = fresh_web1.run(f"cat {PREFORK_CONF}").stdout
    # Enough requests: the children that end after 100 requests outnumber those of a reload.
    requests = 5000
    found = cells(study(lab, tmp_path, "spare-servers", f"requests = {requests}\nrounds = 1"))
    few, more = found["few spare"]["metrics"], found["more spare"]["metrics"]
    assert few["web1.processes.spawned_per_s"] > more["web1.processes.spawned_per_s"]
    assert all(run["completed"] == requests for cell in found.values() for run in cell["runs"])
    assert fresh_web1.run(f"cat {PREFORK_CONF}").stdout == before


def test_atime_study_shows_access_time(lab: Lab, fresh_web1: Host, tmp_path: Path) -> None:
    rows = f"grep ' {web1.ATIME_MOUNT} ' /proc/self/mountinfo"
    before = fresh_web1.run(rows).stdout
    result = study(lab, tmp_path, "atime", "requests = 500\nrounds = 1\nvariants = ['strictatime', 'noatime']")
    observed = {name: cell["runs"][0]["observations"]["atime of small.txt"] for name, cell in cells(result).items()}
    updated = {name: before != after for name, (before, after) in observed.items()}
    assert updated["strictatime"] and not updated["noatime"]
    assert [verdict["other"] for verdict in result["verdicts"]] == ["A/A control", "noatime"]
    assert fresh_web1.run(rows).stdout == before


@pytest.fixture
def steady_web1(fresh_web1: Host) -> Iterator[Host]:
    """web1 with the constant number of workers of the profile restart-memory."""
    workers = next(knob for knob in RESTART_MEMORY["knob"] if knob["name"] == "workers")
    as_configured, steady = (
        next(option["set"] for option in workers["option"] if option["name"] == name)
        for name in ("as-configured", "steady")
    )
    fresh_web1.run(f"{steady}\n{workers['reload']}")
    yield fresh_web1
    fresh_web1.run(as_configured)


@pytest.mark.parametrize("action", RESTART_MEMORY["action"], ids=lambda action: action["name"])
def test_restart_ends_with_new_workers_only(steady_web1: Host, action: dict[str, Any]) -> None:
    pids = "pgrep -u www-data -x apache2"
    before = steady_web1.run(f"until [ $({pids} -c) -ge 20 ]; do sleep 0.1; done; {pids}").stdout.split()
    steady_web1.run(action["command"])
    after = steady_web1.run(pids).stdout.split()
    assert len(before) >= 20 and len(after) >= 20 and not set(before) & set(after)
