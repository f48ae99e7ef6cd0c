"""Two shipped studies on a lab, in less than a minute each: their main effects are measured."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.lab import web1
from tests.lab.cpus import on_generator_cpu
from tests.lab.keeper import REPOSITORY
from tests.lab.lab import Host, Lab
from tests.lab.services import PREFORK_CONF

TIMEOUT = 300.0  # s; far longer than a study takes


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
