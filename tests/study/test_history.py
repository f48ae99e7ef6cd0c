"""The spread of earlier A/A controls: pooled per profile and form, only the newest, never a reason to fail."""

import math
from pathlib import Path

import pytest

from cockpit.study.history import FILE, earlier_spread, keep_spread
from cockpit.study.results import RoundSpread


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "webcockpit"


def test_newest_ten_spreads_of_profile_and_form_are_pooled_by_degrees_of_freedom() -> None:
    assert earlier_spread("mpm", "full") is None
    keep_spread("mpm", "full", RoundSpread(deviation=0.02, freedom=3))
    keep_spread("mpm", "full", RoundSpread(deviation=0.04, freedom=9))
    found = earlier_spread("mpm", "full")
    assert found is not None
    spread, studies = found
    assert (spread.freedom, studies) == (12, 2)
    assert spread.deviation == pytest.approx(math.sqrt((3 * 0.02**2 + 9 * 0.04**2) / 12))
    assert earlier_spread("mpm", "short") is None and earlier_spread("caches", "full") is None
    for number in range(1, 13):
        keep_spread("mpm", "full", RoundSpread(deviation=0.01 * number, freedom=1))
    found = earlier_spread("mpm", "full")
    assert found is not None and found[1] == 10
    assert found[0].deviation == pytest.approx(math.sqrt(sum((0.01 * n) ** 2 for n in range(3, 13)) / 10))


@pytest.mark.parametrize("content", ["", "{", "[]", '{"mpm/full": 3}', '{"mpm/full": [{"deviation": "x"}]}'])
def test_damaged_file_is_ignored(state: Path, content: str) -> None:
    state.mkdir()
    (state / FILE).write_text(content)
    assert earlier_spread("mpm", "full") is None
    keep_spread("mpm", "full", RoundSpread(deviation=0.02, freedom=3))
    assert earlier_spread("mpm", "full") is not None


def test_unwritable_state_directory_is_ignored(state: Path) -> None:
    state.write_text("a file in its place")
    keep_spread("mpm", "full", RoundSpread(deviation=0.02, freedom=3))
    assert earlier_spread("mpm", "full") is None
