"""KEY=value files: byte order marks, here-documents, quoted blocks, `+=`, ini sections, files of another grammar."""

import configparser
import subprocess

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from cockpit.model.knobs import Knob
from cockpit.servers.editing import BYTE_ORDER_MARK, ConfigError
from cockpit.servers.keyvalue.editor import quote_for_shell
from cockpit.servers.registry import GRAMMARS
from cockpit.tuning.discovery import configuration
from tests.data import data_of

DATA = data_of(__file__)

keyvalue = GRAMMARS["keyvalue"]

SHELL_PARTS = DATA["shell_parts"]


@pytest.mark.parametrize("comment", ["#", ";", "# x", "; KEY=no"])
def test_comment_may_be_the_last_line_without_its_end(comment: str) -> None:
    text = f"KEY=1\n{comment}".encode()
    assert keyvalue.read(text, "KEY").value == "1"
    assert keyvalue.change(text, "KEY", b"2") == text.replace(b"=1", b"=2")


@given(st.lists(st.sampled_from(SHELL_PARTS), max_size=7), st.sampled_from([b"new", b'"two words"', b"''"]))
def test_shell_reads_same_value(parts: list[str], raw: bytes) -> None:
    text = "".join(parts).encode()
    try:
        found = keyvalue.read(text, "KEY")
    except ConfigError as error:
        assert "one command" in str(error) or "depends on a condition" in str(error)
        return
    assert in_shell(text) == (found.value or "")
    changed = keyvalue.change(text, "KEY", raw)
    assert keyvalue.read(changed, "KEY").raw == raw
    assert in_shell(changed) == raw.decode().strip("'\"")
    if found.raw is None:
        assert changed == text + b"KEY=" + raw + b"\n"
        assert keyvalue.change(changed, "KEY", None) == text
    else:
        assert keyvalue.change(changed, "KEY", found.raw) == text
        assert len(changed) - len(text) == len(raw) - len(found.raw)


LIKES = st.sampled_from([None, b"old", b'"old $MORE"', b"'old'", b'""', b'old"er"'])


@given(value=st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=20).map(str.strip), like=LIKES)
def test_shell_reads_quoted_value(value: str, like: bytes | None) -> None:
    assume("$MORE" not in value)
    text = keyvalue.change(b"" if like is None else b"KEY=" + like + b"\nOTHER=1\n", "KEY", None)
    text = keyvalue.change(text, "KEY", quote_for_shell(value, like))
    assert in_shell(text) == keyvalue.read(text, "KEY").value == value


def in_shell(text: bytes) -> str:
    """The value of KEY in a shell that has sourced the text."""
    script = text + b'\nprintf "%s" "$KEY"'
    return subprocess.run(["sh"], input=script, capture_output=True, check=True).stdout.decode()


def test_variables_stay_and_command_substitutions_are_not_changed() -> None:
    assert quote_for_shell("-Xmx1g $MORE $(touch pwned)", b'"-Xms1g $MORE"') == b'"-Xmx1g $MORE \\$(touch pwned)"'
    assert quote_for_shell("b $MORE", b'"a\\$1 $MORE"') == b'"b $MORE"'
    for raw in (b"\"$MORE\"'$X'", b"'$X'\"$MORE\"", b'"$MORE \\$X"'):
        assert quote_for_shell("b $MORE $X", raw) == b'"b $MORE \\$X"', "a character stays one"
    for raw in (
        b"\"$A\"'$A'",
        b'"$A"B',
        b'"\\\\$1"',
        b'"$(nproc)"',
        b'"`nproc`"',
        b'"-Xmx${HEAP:-512m}"',
        b'"$# $HOME"',
        b"$1",
    ):
        with pytest.raises(ConfigError, match="by hand"):
            quote_for_shell("4", raw)


def test_ini_sections_are_read_and_changed() -> None:
    values = [keyvalue.encode_in(text, "key", None, "two words", None) for text in (b"key=1\n", b"[a]\nkey = 1\n")]
    assert values == [b'"two words"', b"two words"]
    text = b"[mysqld]\nport=3306\n[mysqldump]\nquick\n"
    changed = keyvalue.change(text, "max_connections", b"500", "mysqld")
    reader = configparser.ConfigParser(allow_no_value=True)
    reader.read_string(changed.decode())
    assert reader["mysqld"]["max_connections"] == "500" and "max_connections" not in reader["mysqldump"]
    assert keyvalue.change(b"[a]\nb = 1\n", "b", b"2", "") == b"b = 2\n[a]\nb = 1\n"


INI_PARTS = ["[a]\n", "[b]\n", "key = 1\n", "key=2\n", "other = 3\n", "; key = 9\n", "# [c]\n", "\n", "long = x \\\n"]


@given(st.lists(st.sampled_from(INI_PARTS), max_size=8), st.sampled_from(["a", "b", "", None]))
@example(["long = x \\\n", "\n"], "")
def test_ini_change_keeps_other_bytes(parts: list[str], section: str | None) -> None:
    text = "".join(parts).encode()
    try:
        old = keyvalue.read(text, "key", section).raw
        changed = keyvalue.change(text, "key", b"new", section)
    except ConfigError:
        return
    assert keyvalue.read(changed, "key", section).raw == b"new"
    assert keyvalue.change(changed, "key", old, section) == text
    assert len(changed) - len(text) == (
        len("new") - len(old) if old else len(b"key = new\n") - 2 * (b"key=new" in changed)
    )


@pytest.mark.parametrize("text", DATA["no_key_is_added_to_other_grammar"])
@pytest.mark.parametrize("key", ["maxmemory_samples", "vm.swappiness"])
def test_no_key_is_added_to_other_grammar(text: str, key: str) -> None:
    with pytest.raises(ConfigError, match=f"cannot add {key}: .* is not a KEY=value line"):
        keyvalue.change(text.encode(), key, b"1")


KNOBS = {
    "keyvalue": ("key=1\nother=2\n", Knob(name="k", host="h", kind="keyvalue", file="/f", key="key")),
    "apache": ("KeepAlive On\n# x\n", Knob(name="k", host="h", file="/f", directive="KeepAlive")),
    "nginx": ("pid /run/x;\nuser x;\n", Knob(name="k", host="h", kind="nginx", file="/f", directive="pid")),
    "squid": ("workers 1\n# x\n", Knob(name="k", host="h", kind="squid", file="/f", directive="workers")),
}


@pytest.mark.parametrize("kind", KNOBS)
@given(end=st.sampled_from(["", "\n", "\n\n"]))
def test_byte_order_mark_is_kept_outside_first_key(kind: str, end: str) -> None:
    plain, knob = KNOBS[kind]
    text = BYTE_ORDER_MARK + (plain + end).encode()
    old = configuration.read(knob, text)
    assert old.value == configuration.read(knob, text.removeprefix(BYTE_ORDER_MARK)).value != None  # noqa: E711
    raw = configuration.encode(knob, text, "7")
    changed = configuration.change(knob, text, raw)
    assert changed == BYTE_ORDER_MARK + configuration.change(knob, text.removeprefix(BYTE_ORDER_MARK), raw)
    assert configuration.read(knob, changed).raw == raw and configuration.change(knob, changed, old.raw) == text
    assert configuration.change(knob, text, None).startswith(BYTE_ORDER_MARK)
