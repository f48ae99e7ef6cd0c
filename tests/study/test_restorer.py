"""The restorer of a killed study whose host is unreachable at first."""

import time
from pathlib import Path

import pytest

from cockpit.model.host.samples import HostConfig
from cockpit.model.knobs import Knob
from cockpit.study import restorer
from cockpit.study.journal import Journal, write_journal

REFUSED = 3


def recordings(folder: Path) -> int:
    return len(list(folder.glob("restored-*")))


def test_attempts_share_a_recording_and_log_each_reason_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(
        name="study",
        fingerprint="f",
        target="http://127.0.0.1:9/",
        hosts=(HostConfig(name="web1", ssh="web1"),),
        knobs=(Knob(name="K", host="web1", kind="sysctl", key="vm.swappiness"),),
        originals={"K": "60"},
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
