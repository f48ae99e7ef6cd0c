"""Apache's grammar beyond the table in `grammars/`: bytes, counts, values that Apache misreads."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.servers.apache.editor import ApacheGrammar, shown
from cockpit.servers.apache.grammar import lines
from cockpit.servers.editing import ConfigError, ConfigValue

APACHE = ApacheGrammar()


def test_bytes_that_are_no_utf_8_are_kept() -> None:
    text = b"# \xff\xfe\nMaxSpareServers \xe9\n"
    found = APACHE.read(text, "MaxSpareServers")
    assert (found.value, found.raw) == ("\\xe9", b"\xe9")
    assert APACHE.change(text, "MaxSpareServers", b"30") == text.replace(b"\xe9", b"30")


def test_read_returns_line_and_count() -> None:
    text = b"Timeout 5\n#\n<IfModule x>\nTimeout 7\n</IfModule>\nTimeout \\\n10\n"
    assert APACHE.read(text, "Timeout") == ConfigValue("10", b"10", 6, 2)
    assert APACHE.read(b"A b\nTimeout\n", "Timeout") == ConfigValue("", b"", 2, 1)
    with pytest.raises(ConfigError, match="2 times"):
        APACHE.change(text, "Timeout", None)


@pytest.mark.parametrize("value", ["\ud800", "9" * 5000])
def test_unrepresentable_value_is_refused(value: str) -> None:
    with pytest.raises(ConfigError):
        APACHE.spell(value)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("Timeout", "5 10", "more than one word"),
        ("MaxSpareServers", "banana", "not a whole number"),
        ("maxspareservers", "12x", "not a whole number"),
        ("MaxSpareServers", "1.5", "not a whole number"),
        ("DirectoryIndex", '"a b"', ""),
        ("MaxSpareServers", '"30"', ""),
        ("MaxSpareServers", "${SPARE}", ""),
        ("KeepAlive", "banana", ""),
    ],
)
def test_value_misread_by_apache_is_refused(name: str, value: str, reason: str) -> None:
    found = APACHE.refusal(name, value)
    assert reason in found and bool(found) == bool(reason)


@given(text=st.binary(max_size=200) | st.text("ab\\\r\n \"'<>/#", max_size=60).map(str.encode))
def test_lines_cover_text_without_gaps(text: bytes) -> None:
    found = list(lines(text))
    assert b"".join(text[line.start : line.end] for line in found) == text
    for line in found:
        assert all(text[line.position(index)] == byte for index, byte in enumerate(line.body))


@given(value=st.text(max_size=20))
def test_accepted_value_is_read_back(value: str) -> None:
    try:
        raw = APACHE.spell(value)
    except ConfigError:
        return
    assert APACHE.spell(shown(raw), raw) == raw
    text = APACHE.change(b"<IfModule a>\nTimeout 5\n</IfModule>\n", "Timeout", raw, "IfModule a")
    assert APACHE.read(text, "Timeout", "IfModule a").raw == raw
    assert text.count(b"\n") == 3
