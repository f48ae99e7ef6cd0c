"""Fixtures of autopilot searches, whose load workers are forked."""

from pathlib import Path

import pytest

from cockpit.analysis import thresholds
from cockpit.autopilot import runner
from cockpit.session import rounds as session_rounds
from cockpit.tui.dialogs import prompt
from tests.load.conftest import fork_server, forked_workers

__all__ = ["fork_server", "forked_workers"]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Shorten evaluations and rounds to less than a second, and run two rounds, too few for a verdict."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for module, values in (
        (runner, {"GUARD": 0, "UNCOUNTED": 0.0, "WINDOW": 0.6, "FIRST_TEST": 2, "ROUNDS": 2, "_SET_UP": 0.1}),
        (thresholds, {"_FIRST": 0.1}),
        (prompt, {"UNSEEN": 0.0}),
        (session_rounds, {"UNCOUNTED": 0.0, "_METRICS_DELAY": 0.0}),
    ):
        for name, value in values.items():
            monkeypatch.setattr(module, name, value)
