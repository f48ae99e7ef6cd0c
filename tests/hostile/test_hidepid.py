"""Processes hidden by /proc (hidepid) are null with a reason, not 0: in JSON, summary, thresholds, export."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from cockpit.analysis.thresholds import parse_threshold
from cockpit.model.events import AnyEvent, HostSample, RunEnded
from cockpit.model.fold import fold_all
from cockpit.model.hosts import HostConfig
from cockpit.model.metrics import RunResult, metric_value, run_result
from cockpit.report.encoding import to_json
from cockpit.report.run_json import run_json
from cockpit.report.series import series_csv
from cockpit.report.summary import summary
from tests.hostile.probe_fuzz import RUN
from tests.hosts.conftest import prepend_to_path, running
from tests.model.hosts import START, UP

# Runs the probe's shell as nobody, with a /proc that hides the processes of other users.
HIDING = """#!/bin/sh
exec unshare -m /bin/sh -c 'mount -t proc -o hidepid=2 proc /proc &&
  exec setpriv --reuid 65534 --regid 65534 --clear-groups /bin/sh -s'
"""


@pytest.fixture
async def events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[AnyEvent]:
    """A run on a host with hidden processes, read by the real probe."""
    if os.geteuid() != 0 or not shutil.which("unshare") or not shutil.which("setpriv"):
        pytest.skip("needs root, unshare and setpriv, to mount a /proc that hides processes")
    prepend_to_path(tmp_path / "bin", monkeypatch, sh=HIDING)
    host = HostConfig(name="web1", processes=("*",))
    async with running("*") as probe:
        readings = [await probe.read(), await probe.read()]
        samples = [
            HostSample(t=float(t), host="web1", round_trip=0.1, reading=replace(reading, uptime=1000.0 + t))
            for t, reading in enumerate(readings, 1)
        ]
        start = replace(START, hosts=(host,))
        return [start, replace(UP, facts=probe.facts), RUN, *samples, RunEnded(t=3.0, run=1, reason="completed")]


def result_of(events: list[AnyEvent]) -> RunResult:
    result = run_result(fold_all(events), 1)
    assert result is not None
    return result


async def test_hidden_processes_are_null_with_reason_in_json(events: list[AnyEvent]) -> None:
    data = json.loads(to_json(run_json(result_of(events))))
    for part in (data, *data["segments"]):
        assert part["missing"] == {"web1": {"processes": "hidepid"}}
        metrics = {name: value for name, value in part["hosts"]["web1"].items() if name.startswith("processes.")}
        assert {"processes.count", "processes.spawned", "processes.rss", "processes.defunct"} < set(metrics)
        assert set(metrics.values()) == {None}
        assert part["hosts"]["web1"]["memory.total"] > 0


async def test_hidden_processes_are_reported_in_summary(events: list[AnyEvent]) -> None:
    text = summary(result_of(events))
    assert "processes    hidden from this user by /proc (hidepid)" in text


async def test_hidden_processes_have_no_threshold_metric(events: list[AnyEvent]) -> None:
    assert parse_threshold("web1.processes.count<10")
    assert metric_value(result_of(events), "web1.processes.count") is None


async def test_hidden_processes_are_empty_cells_in_export(events: list[AnyEvent]) -> None:
    titles, *rows = (line.rstrip().split(",") for line in series_csv(fold_all(events)))
    processes = [column for column, title in enumerate(titles) if ".processes." in title]
    memory = titles.index("web1.memory.total_bytes")
    read = [row for row in rows if row[memory]]
    assert processes and read
    assert {row[column] for row in read for column in processes} == {""}
