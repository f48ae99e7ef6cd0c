"""Two of the shipped studies on a lab, in a form that takes less than a minute: what they must bring out they do."""

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

LONGEST = 300.0  # seconds; far more than either takes


def study(lab: Lab, folder: Path, name: str, short: str) -> dict[str, Any]:
    """The result of a shipped study with another short form."""
    text = (REPOSITORY / "profiles" / f"{name}.toml").read_text().partition("[study.short]")[0]
    profile = folder / f"{name}.toml"
    profile.write_text(f"{text}[study.short]\n{short}\n")
    command = [sys.executable, "-m", "cockpit", "study", "--trust", str(profile), "--short", "--json"]
    command += ["--ssh-config", str(lab.ssh_config), "-o", str(folder / "out")]
    done = subprocess.run(
        on_generator_cpu(command), capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=LONGEST
    )
    assert done.returncode in (0, 4), done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    assert result["ended"] and result["whole_rounds"] > 0
    return result


def cells(result: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {cell["variant"]: cell for cell in result["cells"]}


def test_spare_servers_shows_the_churn(lab: Lab, fresh_web1: Host, tmp_path: Path) -> None:
    before = fresh_web1.run(f"cat {PREFORK_CONF}").stdout
    # So many that the processes which a reload starts are few beside those that end after 100 requests.
    requests = 5000
    found = cells(study(lab, tmp_path, "spare-servers", f"requests = {requests}\nrounds = 1"))
    few, more = found["few spare"]["metrics"], found["more spare"]["metrics"]
    assert few["web1.processes.spawned_per_s"] > more["web1.processes.spawned_per_s"]
    assert all(run["completed"] == requests for cell in found.values() for run in cell["runs"])
    assert fresh_web1.run(f"cat {PREFORK_CONF}").stdout == before


def test_atime_shows_the_access_time(lab: Lab, fresh_web1: Host, tmp_path: Path) -> None:
    rows = f"grep ' {web1.ATIME_MOUNT} ' /proc/self/mountinfo"
    before = fresh_web1.run(rows).stdout
    result = study(lab, tmp_path, "atime", "requests = 500\nrounds = 1\nvariants = ['strictatime', 'noatime']")
    seen = {name: cell["runs"][0]["observations"]["atime of small.txt"] for name, cell in cells(result).items()}
    moved = {name: before != after for name, (before, after) in seen.items()}
    assert moved["strictatime"] and not moved["noatime"]
    assert [one["other"] for one in result["verdicts"]] == ["A/A control", "noatime"]
    assert fresh_web1.run(rows).stdout == before
