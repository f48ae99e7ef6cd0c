"""Shipped studies on a lab: the main effects of three, in less than a minute each, and an action."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.lab import web1
from tests.lab.cpus import on_generator_cpu
from tests.lab.lab import Host
from tests.lab.profile_runs import PROFILES
from tests.lab.services import PREFORK_CONF

RESTART_MEMORY = tomllib.loads((PROFILES / "restart-memory.toml").read_text())


def study(web: Host, folder: Path, name: str, short: str) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Run a shipped study with another short form; return its result, and its cells by variant."""
    text = (PROFILES / f"{name}.toml").read_text().partition("[study.short]")[0]
    profile = folder / f"{name}.toml"
    profile.write_text(f"{text}[study.short]\n{short}\n")
    command = [sys.executable, "-m", "cockpit", "study", "--trust", str(profile), "--short", "--json"]
    command += ["--ssh-config", str(web.ssh_config), "-o", str(folder / "out")]
    done = subprocess.run(on_generator_cpu(command), capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode in (0, 4), done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    assert result["ended"] and result["complete_rounds"] > 0
    return result, {cell["variant"]: cell for cell in result["cells"]}


def test_spare_servers_study_shows_spawned_processes(fresh_web1: Host, tmp_path: Path) -> None:
    before = fresh_web1.run(f"cat {PREFORK_CONF}").stdout
    # Enough requests: the children that end after 100 requests outnumber those of a reload.
    requests = 5000
    _, cells = study(fresh_web1, tmp_path, "spare-servers", f"requests = {requests}\nrounds = 1")
    few, more = (cells[name]["metrics"]["web1.processes.spawned_per_s"] for name in ("few spare", "more spare"))
    assert few > more
    assert all(run["completed"] == requests for cell in cells.values() for run in cell["runs"])
    assert fresh_web1.run(f"cat {PREFORK_CONF}").stdout == before


def test_atime_study_shows_access_time(fresh_web1: Host, tmp_path: Path) -> None:
    rows = f"grep ' {web1.ATIME_MOUNT} ' /proc/self/mountinfo"
    before = fresh_web1.run(rows).stdout
    short = "requests = 500\nrounds = 1\nvariants = ['strictatime', 'noatime']"
    result, cells = study(fresh_web1, tmp_path, "atime", short)
    observed = {name: cell["runs"][0]["observations"]["atime of small.txt"] for name, cell in cells.items()}
    updated = {name: before != after for name, (before, after) in observed.items()}
    assert updated["strictatime"] and not updated["noatime"]
    assert [verdict["other"] for verdict in result["verdicts"]] == ["A/A control", "noatime"]
    assert fresh_web1.run(rows).stdout == before


def test_compression_study_compresses_by_level_and_restores_the_server(fresh_web1: Host, tmp_path: Path) -> None:
    places = "ls /etc/apache2/conf-enabled; ls /srv; pgrep -x caddy | wc -l"
    before = fresh_web1.run(places).stdout
    names = ["none", "gzip 1", "gzip 4", "gzip 9", "brotli 5"]
    shown = ["gzip 4", "none", "gzip 1", "gzip 9", "brotli 5", "Caddy gzip", "Caddy zstd"]
    _, cells = study(fresh_web1, tmp_path, "compression", f"duration = '1s'\nrounds = 1\nvariants = {shown}")
    sizes = {name: cell["metrics"]["bytes.per_response"] for name, cell in cells.items()}
    assert sorted(names, key=lambda name: -sizes[name]) == names
    assert all(sizes[f"Caddy {name}"] < sizes["none"] / 2 for name in ("gzip", "zstd"))
    assert fresh_web1.run(places).stdout == before


@pytest.mark.parametrize("action", RESTART_MEMORY["action"], ids=lambda action: action["name"])
def test_restart_ends_with_new_workers_only(fresh_web1: Host, action: dict[str, Any]) -> None:
    """With the constant number of workers of the profile restart-memory."""
    workers = next(knob for knob in RESTART_MEMORY["knob"] if knob["name"] == "workers")
    settings = {option["name"]: option["set"] for option in workers["option"]}
    pids = "pgrep -u www-data -x apache2"
    fresh_web1.run(f"{settings['steady']}\n{workers['reload']}")
    before = fresh_web1.run(f"until [ $({pids} -c) -ge 20 ]; do sleep 0.1; done; {pids}").stdout.split()
    fresh_web1.run(action["command"])
    after = fresh_web1.run(pids).stdout.split()
    fresh_web1.run(settings["as-configured"])
    assert len(before) >= 20 and len(after) >= 20 and not set(before) & set(after)
