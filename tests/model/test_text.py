import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.model.text import clock, escaped, milliseconds, sanitize, si, size
from cockpit.model.units import parse_count, parse_duration
from tests.data import data_of

DATA = data_of(__file__)


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        *DATA["hostile_text_is_neutralized"],
        ("\ue000\U000e0041\ufffe\ud800", "····"),
    ],
)
def test_hostile_text_is_neutralized(hostile: str, shown: str) -> None:
    assert sanitize(hostile, limit=10 if hostile.startswith("xx") else 4096) == shown


@given(st.text())
def test_escaped_json_is_equal_and_without_hidden_characters(text: str) -> None:
    line = json.dumps({text: 1}, ensure_ascii=False)
    assert json.loads(escaped(line)) == {text: 1}
    assert sanitize(escaped(line)) == escaped(line)


def test_numbers_are_formatted_short() -> None:
    assert [si(v) for v in (0, 7, 940, 999.6, 12_400, 1_350_000)] == ["0", "7", "940", "1k", "12.4k", "1.35M"]
    assert [milliseconds(v) for v in (0.00008, 0.0012, 0.061, 2.658)] == ["0.08", "1.2", "61", "2658"]
    assert [size(v) for v in (512, 142 * 1024**2, 1.4 * 1024**3)] == ["512", "142M", "1.4G"]
    assert clock(3723.9) == "01:02:03"


def test_durations_and_counts_are_parsed() -> None:
    assert [parse_duration(t) for t in ("10s", "500ms", "3m", "1h", "2", "1.5s")] == [10, 0.5, 180, 3600, 2, 1.5]
    assert [parse_duration(t) for t in ("5m20s", "1h30m", "2min5s")] == [320, 5400, 125]
    assert [parse_count(t) for t in ("200", "10k", "1.5m")] == [200, 10_000, 1_500_000]
    for wrong in ("", "10x", "-1", "ten"):
        with pytest.raises(ValueError, match="is not a"):
            parse_duration(wrong)
        with pytest.raises(ValueError, match="is not a"):
            parse_count(wrong)
    with pytest.raises(ValueError, match="whole number"):
        parse_count("1.5")
