"""`cockpit run` with streams to other tools, against a real server."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import jsonschema
import pytest

from tests.cli.terminals import COCKPIT
from tests.commands import cockpit


def test_ndjson_matches_schema_and_ends_with_result(url: str) -> None:
    done = cockpit("run", url, "-q", "50", "-z", "1.5s", "--ndjson", "--no-record", "--prometheus", "0")
    assert done.returncode == 0, done.stderr
    assert "metrics at http://127.0.0.1:" in done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    schema = json.loads(cockpit("schema", "ndjson").stdout)
    for line in lines:
        jsonschema.validate(line, schema)
    seconds = [line for line in lines if line["type"] == "second"]
    assert lines[0]["type"] == "session" and lines[-1]["type"] == "run"
    assert lines[-1]["result"]["completed"] == sum(line["load"].get("completed", 0) for line in seconds) > 0
    assert [line["t"] for line in seconds] == list(range(len(seconds)))


def test_run_continues_if_ndjson_reader_closes(url: str, tmp_path: Path) -> None:
    file = tmp_path / "s.cockpit"
    command = [*COCKPIT, "run", url, "-q", "50", "-z", "1.5s", "--ndjson", "--record", str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        assert '"type":"session"' in process.stdout.readline()
        process.stdout.close()
        errors = process.stderr.read()
    assert process.returncode == 0 and "cockpit: --ndjson: the reader closed the pipe" in errors
    assert json.loads(cockpit("report", file, "--json").stdout)[0]["duration"] == pytest.approx(1.5, abs=0.5)
