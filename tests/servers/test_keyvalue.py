"""KEY=value files: byte order marks, here-documents, quoted blocks, `+=`, ini sections, files of another grammar."""

from __future__ import annotations

import configparser
import subprocess

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cockpit.model.knobs import Knob
from cockpit.servers.editing import BYTE_ORDER_MARK, ConfigError
from cockpit.servers.registry import GRAMMARS
from cockpit.tuning import configuration

keyvalue = GRAMMARS["keyvalue"]

SHELL_PARTS = [
    "KEY=a\n",
    'export KEY="b c"\n',
    "  KEY='d'\n",
    "A=1; KEY=e # was KEY=no\n",
    "if true; then\n  KEY=g\nfi\n",
    "f() { KEY=h; }; f\n",
    "OTHER=1\n",
    'OTHER="x\nKEY=no\n"\n',
    "OTHER='y\n  export KEY=no\n\"'\n",
    'OTHER="it\'s"\n',
    "OTHER=${Z:-'\"'}\n",
    'OTHER=$(printf "%s" "KEY=no")\n',
    'OTHER="$(printf "\nKEY=no\n")"\n',
    "OTHER=`printf '\nKEY=no'`\n",
    "OTHER=x\\\nKEY=no\n",
    ": <<EOF\nKEY=no\nit's\nEOF\n",
    ": <<'E F' # a comment\nKEY=no\nE F\n",
    ": <<-EOF\n\tKEY=no\n\tEOF\n",
    ": <<A <<B\nKEY=no\nA\nKEY=no\nB\n",
    "# don't: KEY=no\n",
    '# "\n',
    "KEY=no true\n",
    "\n",
]


@given(st.lists(st.sampled_from(SHELL_PARTS), max_size=7), st.sampled_from([b"new", b'"two words"', b"''"]))
@settings(max_examples=120)
def test_shell_reads_same_value(parts: list[str], raw: bytes) -> None:
    text = "".join(parts).encode()
    try:
        found = keyvalue.read(text, "KEY")
    except ConfigError as error:
        assert "one command" in str(error)
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


def in_shell(text: bytes) -> str:
    """The value of KEY in a shell that has sourced the text."""
    script = text + b'\nprintf "%s" "$KEY"'
    return subprocess.run(["sh"], input=script, capture_output=True, check=True).stdout.decode()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("KEY=1\nKEY+=' 2'\n", r"line 2: KEY\+= adds to its value; change it by hand"),
        ("KEY+=1\n", r"line 1: KEY\+= adds to its value"),
        ("key = 1\nKEY += 2\n", r"line 2: KEY\+= adds to its value"),
        ("KEY=1 ./start\n", "line 1: KEY: it is set for one command only"),
        ("KEY=(a b)\n", "line 1: KEY: its value is an array or the output of a command"),
        ("KEY=$(nproc)\n", "line 1: KEY: its value is an array or the output of a command"),
        ("OTHER='x\nKEY=1\n", "line 1: a quote is never closed"),
        ("cat <<EOF\nKEY=1\n", "line 2: a here-document is never closed"),
        ("a = 'x\nKEY = 1\n'\n", "line 2: KEY: it is inside a quoted value"),
        ("KEY = a \\\n  b\n", "line 1: KEY: its value spans several lines"),
        ("KEY = 'a\nb'\nc = 1\n", "line 1: KEY: its value spans several lines"),
        ("KEY = [\n  1,\n]\nc = 1\n", "line 1: KEY: its value spans several lines"),
        ('KEY = """\na\n"""\n', "line 1: KEY: its value spans several lines"),
    ],
)
def test_multiline_or_computed_values_are_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        keyvalue.read(text.encode(), "KEY")
    with pytest.raises(ConfigError, match=message):
        keyvalue.change(text.encode(), "KEY", b"2")


def test_assignment_after_append_wins() -> None:
    assert keyvalue.read(b"KEY+=1\nKEY=2\n", "KEY").value == "2"
    assert keyvalue.read(b"KEY=1 ./start\nKEY=2\n", "KEY")[::2] == ("2", 2)


def test_continuation_line_is_not_setting() -> None:
    text = b"a = 1 \\\nKEY = 2\n"
    assert keyvalue.read(text, "KEY").value is None
    assert keyvalue.change(text, "KEY", b"3") == text + b"KEY = 3\n"


FRAGMENTS = [
    "KEY",
    "=",
    "+=",
    "=1",
    "export ",
    "'",
    '"',
    "\n",
    "\n",
    " ",
    "\\",
    "$(",
    "`",
    "${",
    ")",
    "}",
    "#",
    "<<E\n",
]
FRAGMENTS += ["E\n", ";", "&&", "[a]\n", "[b]\n", " = ", "a", "\r\n", "\xef\xbb\xbf", "(", "<Macro>\n", "true ", "\t"]


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=14), st.sampled_from([None, "", "a"]))
def test_any_text_is_refused_or_keeps_other_bytes(fragments: list[str], section: str | None) -> None:
    text = "".join(fragments).encode("latin-1")
    try:
        old = keyvalue.read(text, "KEY", section)
        changed = keyvalue.change(text, "KEY", b"new", section)
    except ConfigError:
        return
    assert keyvalue.read(changed, "KEY", section).raw == b"new"
    assert keyvalue.change(changed, "KEY", old.raw, section) == text
    if old.raw is not None:
        assert len(changed) - len(text) == len(b"new") - len(old.raw)


MY_CNF = b"""\
# The server and its tools
[client]
port = 3306

[mysqld]
port=3306
key_buffer_size = 16M
skip-name-resolve
# the end

[mysqldump]
quick
!includedir /etc/mysql/conf.d/
"""


def test_ini_sections_are_read_and_changed() -> None:
    with pytest.raises(ConfigError, match=r"port is in \[client\] \(line 3\) and \[mysqld\] \(line 6\); set the"):
        keyvalue.read(MY_CNF, "port")
    assert keyvalue.read(MY_CNF, "port", "mysqld").line == 6
    assert keyvalue.read(MY_CNF, "key_buffer_size").value == "16M"
    assert keyvalue.change(MY_CNF, "port", b"3307", "mysqld") == MY_CNF.replace(b"port=3306", b"port=3307")
    added = keyvalue.change(MY_CNF, "max_connections", b"500", "mysqld")
    assert added == MY_CNF.replace(b"skip-name-resolve\n", b"skip-name-resolve\nmax_connections = 500\n")
    assert keyvalue.change(added, "max_connections", None, "mysqld") == MY_CNF
    with pytest.raises(ConfigError, match=r"name a section in the knob to add it: \[client\], \[mysqld\]"):
        keyvalue.change(MY_CNF, "max_connections", b"500")
    with pytest.raises(ConfigError, match=r"no section \[server\]; its sections: \[client\]"):
        keyvalue.read(MY_CNF, "port", "server")
    with pytest.raises(ConfigError, match="no section"):
        keyvalue.read(b"KEY=1\n", "KEY", "server")
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


def test_configparser_reads_same_sections() -> None:
    changed = keyvalue.change(MY_CNF, "max_connections", b"500", "mysqld")
    reader = configparser.ConfigParser(allow_no_value=True)
    reader.read_string(changed.decode())
    assert reader["mysqld"]["max_connections"] == "500" and "max_connections" not in reader["mysqldump"]


@pytest.mark.parametrize(
    "text",
    [
        "global\n    maxconn 4096\n    log /dev/log local0\nfrontend x\n    bind *:80\n",
        "global\n    nbthread = 4\n    maxconn 4096\n",
        "maxmemory 100mb\nsave 900 1\n",
        "<Server port='8005'>\n</Server>\n",
        "worker_processes auto;\nevents { worker_connections 768; }\n",
        "server:\n  port: 80\n",
        "one\ntwo\n",
    ],
)
@pytest.mark.parametrize("key", ["maxmemory_samples", "vm.swappiness"])
def test_no_key_is_added_to_other_grammar(text: str, key: str) -> None:
    with pytest.raises(ConfigError, match=f"cannot add {key}: .* is not a KEY=value line"):
        keyvalue.change(text.encode(), key, b"1")


@pytest.mark.parametrize(
    "text", ["", "# only a comment\n", "A=1\n", "[ -r /x ] && . /x\nexport A=1\n", "a.b = 1\nflag\n"]
)
def test_key_is_added_to_keyvalue_file(text: str) -> None:
    assert keyvalue.read(keyvalue.change(text.encode(), "KEY", b"1"), "KEY").raw == b"1"


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
    raw = configuration.spell(knob, text, "7")
    changed = configuration.change(knob, text, raw)
    assert changed == BYTE_ORDER_MARK + configuration.change(knob, text.removeprefix(BYTE_ORDER_MARK), raw)
    assert configuration.read(knob, changed).raw == raw and configuration.change(knob, changed, old.raw) == text
    assert configuration.change(knob, text, None).startswith(BYTE_ORDER_MARK)
