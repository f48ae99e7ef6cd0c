"""Damaged JSON files of the user are reported with one line, without a traceback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cockpit.model.errors import UsageError
from cockpit.report import baselines
from cockpit.study.journal import read_journal
from cockpit.tui.hints import Hints, hints_file
from cockpit.tui.terminal.appearance import read_settings, settings_file

READERS: list[Callable[[], object]] = [read_settings, lambda: baselines.load("deep"), lambda: read_journal(Path())]


@pytest.mark.parametrize("read", READERS, ids=["settings", "baseline", "journal"])
@pytest.mark.parametrize("content", ['{"a": ' + "[" * 200_000, " " * (65 << 20)], ids=["nested", "large"])
def test_json_that_exhausts_reader_is_refused_with_single_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Callable[[], object], content: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for path in (settings_file(), baselines.folder() / "deep.json", tmp_path / "study.json", hints_file()):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    with pytest.raises(UsageError) as caught:
        read()
    assert "\n" not in str(caught.value)
    Hints()
