"""A server for commands, a recorded session, and sections of profiles."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.recording.test_recording import recorded
from tests.servers import http_server


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with http_server() as base:
        yield base


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the path of a recorded small session; baselines are saved in the test's folder."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return str(recorded(tmp_path / "small.cockpit"))


def keyvalue(name: str, file: Path | str, active: str = 'reload = "true"', host: str = "web1") -> str:
    """Return the profile section of a knob in a file of KEY=VALUE lines; `active` is how its values become active."""
    return f'[[knob]]\nname = "{name}"\nhost = "{host}"\nkind = "keyvalue"\nfile = "{file}"\nkey = "{name}"\n{active}\n'
