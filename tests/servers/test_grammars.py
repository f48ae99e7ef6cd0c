"""Reading and changing configuration texts by the tables of `grammars/`: only the bytes of the value change.

A file has `[[text]]` blocks with rows on their text, and rows with texts of their own. In a row, «» marks the value as
it is written, or what is added or removed; the value that is written is 77; the section "" is none.
"""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.servers import registry
from cockpit.servers.apache.editor import ApacheGrammar, shown
from cockpit.servers.apache.grammar import lines
from cockpit.servers.editing import BYTE_ORDER_MARK, ConfigError, ConfigText, ConfigValue
from tests.data import data_of

DATA = data_of(__file__)

FILES: dict[str, dict[str, Any]] = {
    path.stem: tomllib.loads(path.read_text()) for path in sorted(Path(__file__).with_name("grammars").glob("*.toml"))
}


class Row(NamedTuple):
    kind: str
    text: str
    name: str
    section: str | None
    rest: tuple[str, ...]


def rows(table: str) -> list[Any]:
    return [
        pytest.param(row, id=f"{row.kind} {number}")
        for kind, file in FILES.items()
        for number, row in enumerate(_rows_of(kind, file, table))
    ]


def _rows_of(kind: str, file: dict[str, Any], table: str) -> Iterator[Row]:
    for block in file.get("text", ()):
        for name, section, *rest in block.get(table, ()):
            yield Row(kind, block["text"], name, section or None, tuple(rest))
    for row in file.get(table, ()):
        name, section, *rest = row if file.get("name") is None or table in ("refused", "unchangeable") else ("", *row)
        text = rest.pop(1 if table in ("refused", "unchangeable") else 0)
        yield Row(kind, "", name or file["name"], section or None, (text, *rest))


def marked(row: Row) -> tuple[str, str, str]:
    """The text before the mark, within and behind it."""
    before, within, behind = re.split("[«»]", row.rest[0])
    if row.text:
        around = before + behind if before + within + behind not in row.text else before + within + behind
        start, end = row.text.split(around) if row.text.count(around) == 1 else pytest.fail(f"{around!r} is ambiguous")
        before, behind = start + before, behind + end
    return before, within, behind


def encoded(row: Row, ends: str) -> list[bytes]:
    before, within, behind = marked(row)
    # The only line has no end to copy, and shells and systemd continue no line that ends in CRLF.
    if "\n" not in before + behind or row.kind in ("keyvalue", "systemd", "varnish"):
        ends = "\n"
    return [part.replace("\n", ends).encode() for part in (before, within, behind)]


@pytest.mark.parametrize("ends", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("row", rows("set"))
def test_a_value_is_read_and_only_the_value_changes(row: Row, ends: str) -> None:
    grammar = registry.GRAMMARS[row.kind]
    before, raw, behind = encoded(row, ends)
    text = before + raw + behind
    found = grammar.read(text, row.name, row.section)
    value = row.rest[1] if len(row.rest) > 1 else marked(row)[1]
    assert found.value is not None and found.value.replace("\r\n", "\n") == value and found.raw == raw
    changed = grammar.change(text, row.name, b"77", row.section)
    assert changed == before + b"77" + behind
    again = grammar.read(changed, row.name, row.section)
    assert (again.value, again.line, again.times) == ("77", found.line, found.times)
    assert grammar.change(changed, row.name, raw, row.section) == text


@pytest.mark.parametrize("ends", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("row", rows("added"))
def test_a_missing_setting_is_added_and_removed_again(row: Row, ends: str) -> None:
    grammar = registry.GRAMMARS[row.kind]
    before, new, behind = encoded(row, ends)
    found = grammar.read(before + behind, row.name, row.section)
    assert (found.value, found.raw) == (None, None)
    changed = grammar.change(before + behind, row.name, b"77", row.section)
    assert changed == before + new + behind
    assert grammar.read(changed, row.name, row.section).times == 1
    assert grammar.change(changed, row.name, None, row.section) == before + behind


@pytest.mark.parametrize("row", rows("removed"))
def test_a_setting_is_removed(row: Row) -> None:
    before, _, behind = marked(row)
    assert (
        registry.GRAMMARS[row.kind].change(row.text.encode(), row.name, None, row.section).decode() == before + behind
    )


@pytest.mark.parametrize("row", rows("unset"))
def test_a_setting_is_not_there(row: Row) -> None:
    assert registry.GRAMMARS[row.kind].read(row.text.encode(), row.name, row.section).value is None


@pytest.mark.parametrize("reads", [False, True])
@pytest.mark.parametrize(("table", "row"), [(t, *p.values) for t in ("refused", "unchangeable") for p in rows(t)])
def test_what_is_ambiguous_or_invalid_is_refused(table: str, row: Row, reads: bool) -> None:
    grammar = registry.GRAMMARS[row.kind]
    text, reason = (row.text, *row.rest) if row.text else row.rest
    if reads and table == "unchangeable":
        grammar.read(text.encode(), row.name, row.section)
        return
    with pytest.raises(ConfigError, match=re.escape(reason)):
        if reads:
            grammar.read(text.encode(), row.name, row.section)
        else:
            grammar.change(text.encode(), row.name, b"77", row.section)


@pytest.mark.parametrize("kind", FILES)
def test_values_are_encoded_or_refused(kind: str) -> None:
    grammar, file = registry.GRAMMARS[kind], FILES[kind]
    for value, like, raw in file.get("encoded", ()):
        assert grammar.encode(value, like.encode() or None).decode() == raw, value
    accepted = [value for value in file.get("invalid", ()) if not _is_refused(kind, value)]
    assert accepted == []


def _is_refused(kind: str, value: str) -> bool:
    try:
        registry.GRAMMARS[kind].encode(value)
    except ConfigError:
        return True
    return False


WORDS = st.text("abc019_-./", min_size=1, max_size=6).filter(lambda word: word[0] != "-")


@pytest.mark.parametrize("kind", [kind for kind, file in FILES.items() if "pieces" in file])
@given(data=st.data(), word=WORDS)
def test_any_text_is_refused_or_only_the_value_changes(kind: str, data: st.DataObject, word: str) -> None:
    grammar, (name, section) = registry.GRAMMARS[kind], FILES[kind]["place"]
    text = "".join(data.draw(st.lists(st.sampled_from(FILES[kind]["pieces"]), max_size=12))).encode()
    where = data.draw(st.sampled_from([None, section or None]))
    try:
        old = grammar.read(text, name, where)
        changed = grammar.change(text, name, word.encode(), where)
    except ConfigError:
        return
    new = grammar.read(changed, name, where)
    assert new.raw == word.encode()
    assert grammar.change(changed, name, old.raw, where) == text
    if old.raw is not None:
        assert (new.times, new.line) == (old.times, old.line)
        assert len(changed) - len(text) == len(word) - len(old.raw)


def test_includes_are_listed_with_lines() -> None:
    def includes(kind: str, section: str) -> list[tuple[str, int]]:
        return list(registry.GRAMMARS[kind].includes(FILES[kind]["text"][0]["text"].encode(), section))

    assert includes("mariadb", "mysqld") == [("/etc/mysql/conf.d/*.cnf", 1), ("/etc/mysql/more.cnf", 2)]
    assert includes("caddy", "example.com, www.example.com:8443 {") == [("common", 16), ("sites/*.caddy", 17)]
    pools = b"[global]\ninclude=/etc/php/8.2/fpm/pool.d/*.conf\n"
    assert registry.GRAMMARS["php-fpm"].includes(pools, "www") == [("/etc/php/8.2/fpm/pool.d/*.conf", 2)]


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
        APACHE.encode(value)


@pytest.mark.parametrize(("name", "value", "reason"), DATA["value_misread_by_apache_is_refused"])
def test_value_misread_by_apache_is_refused(name: str, value: str, reason: str) -> None:
    found = APACHE.refusal(name, value)
    assert reason in found and bool(found) == bool(reason)


@given(text=st.binary(max_size=200) | st.text("ab\\\r\n \"'<>/#", max_size=60).map(str.encode))
def test_lines_cover_text_without_gaps(text: bytes) -> None:
    found = list(lines(ConfigText(text.replace(b"\0", b""))))
    text = text.replace(b"\0", b"").removeprefix(BYTE_ORDER_MARK)
    assert b"".join(text[line.start : line.end] for line in found) == text
    for line in found:
        assert all(text[line.position(index)] == byte for index, byte in enumerate(line.body))


@given(value=st.text(max_size=20))
def test_accepted_value_is_read_back(value: str) -> None:
    try:
        raw = APACHE.encode(value)
    except ConfigError:
        return
    assert APACHE.encode(shown(raw), raw) == raw
    text = APACHE.change(b"<IfModule a>\nTimeout 5\n</IfModule>\n", "Timeout", raw, "IfModule a")
    assert APACHE.read(text, "Timeout", "IfModule a").raw == raw
    assert text.count(b"\n") == 3
