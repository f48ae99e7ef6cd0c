"""Properties for any configuration text: only the value's bytes change, and a change can be reverted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.servers.apache.editor import ApacheGrammar
from cockpit.servers.apache.grammar import lines
from cockpit.servers.editing import ConfigError

APACHE = ApacheGrammar()

ENDS = st.sampled_from([b"\n", b"\r\n", b"\n\n", b" \n", b" \\\n\n", b"\\\r\n \r\n"])
GAPS = st.sampled_from([b" ", b"  ", b"\t", b" \\\n ", b"\\\r\n\t"])
WORDS = st.text(st.characters(codec="ascii", exclude_categories=["Cc", "Z"], exclude_characters="\\\"'<>#"), min_size=1)
ARGUMENTS = st.one_of(
    WORDS.map(str.encode),
    st.lists(WORDS.map(str.encode), min_size=1, max_size=3).map(b" ".join),
    WORDS.map(lambda word: f'"{word}"'.encode()),
    WORDS.map(lambda word: f"'{word} x'".encode()),
)
NAMES = st.sampled_from([b"Timeout", b"TIMEOUT", b"timeout", b"KeepAlive", b"TimeoutX"])
NOISE = st.sampled_from([b"", b"# Timeout 5", b" #", b"\t", b"# \xff\xfe", b"Listen 80", b"#<IfModule x>"])
HEADERS = ["IfModule mpm_prefork_module", "Directory /a", "IfModule x"]


@st.composite
def directives(draw: st.DrawFn) -> bytes:
    indent = draw(st.sampled_from([b"", b"  ", b"\t"]))
    return indent + draw(NAMES) + draw(GAPS) + draw(ARGUMENTS) + draw(ENDS)


@st.composite
def blocks(draw: st.DrawFn, inner: st.SearchStrategy[bytes]) -> bytes:
    header = draw(st.sampled_from(HEADERS)).encode()
    end = draw(st.sampled_from([b"\n", b"\r\n"]))
    return b"<" + header + b">" + end + draw(inner) + b"</" + header.split()[0] + b">" + end


PARTS = st.one_of(directives(), st.tuples(NOISE, ENDS).map(b"".join))
TEXTS = st.recursive(
    st.lists(PARTS, max_size=5).map(b"".join),
    lambda inner: st.lists(st.one_of(PARTS, blocks(inner)), max_size=5).map(b"".join),
    max_leaves=6,
)


@given(text=TEXTS, stripped=st.booleans(), section=st.sampled_from([None, *HEADERS]), value=ARGUMENTS)
def test_change_and_revert_restore_bytes(text: bytes, stripped: bool, section: str | None, value: bytes) -> None:
    text = text.rstrip(b"\r\n \\") if stripped else text
    try:
        old = APACHE.read(text, "Timeout", section)
    except ConfigError:
        with pytest.raises(ConfigError):
            APACHE.change(text, "Timeout", value, section)
        return
    try:
        changed = APACHE.change(text, "Timeout", value, section)
    except ConfigError as error:
        assert "ends in a backslash" in str(error)
        return
    new = APACHE.read(changed, "Timeout", section)
    assert new.raw == value
    assert APACHE.change(changed, "Timeout", old.raw, section) == text
    if old.raw is None:
        assert new.times == 1
        return
    assert new.times == old.times and new.line == old.line
    assert len(changed) - len(value) == len(text) - len(old.raw)
    before = next(
        n for n in range(len(text) + 1) if text[n:].startswith(old.raw) and _spliced(text, n, old.raw, value) == changed
    )
    assert text[:before] == changed[:before]


def _spliced(text: bytes, at: int, old: bytes, new: bytes) -> bytes:
    return text[:at] + new + text[at + len(old) :]


@given(text=st.binary(max_size=200) | st.text("ab\\\r\n \"'<>/#", max_size=60).map(str.encode))
def test_lines_cover_text_without_gaps(text: bytes) -> None:
    found = list(lines(text))
    assert b"".join(text[line.start : line.end] for line in found) == text
    for line in found:
        assert all(text[line.position(index)] == byte for index, byte in enumerate(line.body))


@given(text=st.text("Timeout \\\r\n\t\"'<>/#0a", max_size=80).map(str.encode))
def test_any_text_is_read_or_refused(text: bytes) -> None:
    try:
        old = APACHE.read(text, "Timeout")
        changed = APACHE.change(text, "Timeout", b"30")
    except ConfigError:
        return
    assert APACHE.read(changed, "Timeout").value == "30"
    if old.raw is not None:
        assert APACHE.change(changed, "Timeout", old.raw) == text


@given(value=st.text(max_size=20))
def test_accepted_value_is_read_back(value: str) -> None:
    try:
        raw = APACHE.spell(value)
    except ConfigError:
        return
    text = APACHE.change(b"<IfModule a>\nTimeout 5\n</IfModule>\n", "Timeout", raw, "IfModule a")
    assert APACHE.read(text, "Timeout", "IfModule a").raw == raw
    assert text.count(b"\n") == 3
