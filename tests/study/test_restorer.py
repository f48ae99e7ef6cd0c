"""The restorer of a killed study: its process, and hosts that are unreachable at first."""

import time
from pathlib import Path
from unittest.mock import AsyncMock

import pytest

from cockpit.model.errors import HostError
from cockpit.model.host.samples import HostConfig
from cockpit.model.knobs import Knob, ServerAction
from cockpit.study import restorer
from cockpit.study.journal import Journal, read_journal, write_journal
from cockpit.tuning.applied import ChangeFailed

REFUSED = 3


def recordings(folder: Path) -> int:
    return len(list(folder.glob("restored-*")))


def test_attempts_restore_each_reachable_host_and_log_each_reason_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    value = tmp_path / "value"
    value.write_text("7\n")
    set_here = f'printf "%s\\n" "$1" >{value}'
    knobs = (
        Knob(name="K", host="web1", kind="sysctl", key="vm.swappiness"),
        Knob(name="L", host="here", kind="command", get=f"cat {value}", set=set_here),
    )
    journal = Journal(
        name="study",
        fingerprint="f",
        target="http://127.0.0.1:9/",
        hosts=(HostConfig(name="web1", ssh="web1"), HostConfig(name="here"), HostConfig(name="cache")),
        knobs=knobs,
        actions=(
            ServerAction(name="act", host="here", command=f"echo acted >>{value}"),
            ServerAction(name="flush", host="cache", command=f"echo flushed >>{value}"),
        ),
        originals={"K": "60", "L": "5"},
        touched=True,
        ssh_config=str(tmp_path / "gone"),
    )
    write_journal(tmp_path, journal)
    files: list[int] = []

    async def put_back(folder: Path, left: Journal, recording: Path) -> Journal:
        if len(files) == REFUSED:
            return left
        try:
            return await real(folder, left, recording)
        finally:
            files.append(recordings(folder))

    real = restorer.restore_settings
    monkeypatch.setattr(restorer, "restore_settings", put_back)
    monkeypatch.setattr(restorer, "PAUSE", 0)
    assert restorer.attempts(tmp_path, time.monotonic() + 600) == 0
    assert files == [1] * REFUSED
    [reason] = (tmp_path / restorer.LOG).read_text().splitlines()
    assert "gone" in reason
    assert value.read_text() == "5\nacted\n", "the other host was restored once"
    left = read_journal(tmp_path)
    assert left is not None and (left.knobs, left.touched) == (knobs[:1], True)
    assert left.actions == journal.actions[1:], "it waits until all knobs are restored"


def test_incomplete_rollback_is_repeated_rarely(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each attempt reloads the server."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    write_journal(tmp_path, Journal(name="study", fingerprint="f", touched=True))
    pauses: list[float] = []
    monkeypatch.setattr(restorer.time, "sleep", pauses.append)
    failures = (ChangeFailed("a file is left"), HostError("unreachable"), None)
    monkeypatch.setattr(restorer, "restore_settings", AsyncMock(side_effect=failures))
    assert restorer.attempts(tmp_path, time.monotonic() + 600) == 0
    assert pauses == [restorer.PAUSE_AFTER_RELOAD, restorer.PAUSE]


async def test_restorer_imports_no_module_of_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cockpit.py").write_text("raise SystemExit(9)")
    monkeypatch.chdir(tmp_path)
    process = await restorer.RestorerProcess.start(tmp_path)
    await process.dismiss()
