"""Processes hidden by /proc (hidepid) are null with a reason, not 0: in JSON, summary, thresholds, export."""

from __future__ import annotations

import json

from msgspec.structs import replace

from cockpit.analysis.thresholds import parse_threshold
from cockpit.model.events import RunEnded
from cockpit.model.fold import fold_all
from cockpit.model.hosts import HostConfig
from cockpit.model.metrics import metric_value, run_result
from cockpit.report.encoding import to_json
from cockpit.report.run_json import run_json
from cockpit.report.series import series_csv
from cockpit.report.summary import summary
from tests.hostile.probe_fuzz import RUN
from tests.model.hosts import START, UP, sample


def test_hidden_processes_are_null_with_reason() -> None:
    start = replace(START, hosts=(HostConfig(name="web1", processes=("*",)),))
    samples = [sample(t, hidden=True) for t in (1.0, 2.0)]
    state = fold_all([start, UP, RUN, *samples, RunEnded(t=3.0, run=1, reason="completed")])
    result = run_result(state, 1)
    assert result is not None
    data = json.loads(to_json(run_json(result)))
    for part in (data, *data["segments"]):
        assert part["missing"] == {"web1": {"processes": "hidepid"}}
        metrics = {name: value for name, value in part["hosts"]["web1"].items() if name.startswith("processes.")}
        assert {"processes.count", "processes.spawned", "processes.rss", "processes.defunct"} < set(metrics)
        assert set(metrics.values()) == {None}
        assert part["hosts"]["web1"]["memory.total"] > 0
    assert "processes    hidden from this user by /proc (hidepid)" in summary(result)
    assert parse_threshold("web1.processes.count<10") and metric_value(result, "web1.processes.count") is None
    titles, *rows = (line.rstrip().split(",") for line in series_csv(state))
    processes = [column for column, title in enumerate(titles) if ".processes." in title]
    read = [row for row in rows if row[titles.index("web1.memory.total_bytes")]]
    assert processes and read and {row[column] for row in read for column in processes} == {""}
