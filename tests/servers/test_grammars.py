"""nginx, squid and KEY=value texts: values are read and changed, and no other bytes; a shell reads the same value."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cockpit.servers import registry
from cockpit.servers.editing import ConfigError
from cockpit.servers.keyvalue.editor import spell_for_shell

nginx, squid, keyvalue = (registry.GRAMMARS[kind] for kind in ("nginx", "squid", "keyvalue"))
lighttpd, haproxy = (registry.GRAMMARS[kind] for kind in ("lighttpd", "haproxy"))

NGINX = b"""\
user www-data; # worker_processes 9;
worker_processes auto;
events { worker_connections 768; }
http {
\tlog_format main '$remote_addr { ; } "x"'; keepalive_timeout 65;
\tserver {
\t    listen 80 default_server;
\t    location / { root /var/www; }
\t    location ~ "\\.php$" {
\t        expires 1d;
\t    }
\t}
}
"""


@pytest.mark.parametrize(
    ("directive", "section", "value"),
    [
        ("worker_processes", None, "auto"),
        ("worker_connections", "events {", "768"),
        ("keepalive_timeout", "http", "65"),
        ("listen", "http { server {", "80 default_server"),
        ("root", "http { server { location / {", "/var/www"),
        ("expires", 'http { server { location ~ "\\.php$" {', "1d"),
        ("gzip", "http {", None),
    ],
)
def test_nginx_values_are_read_in_their_section(directive: str, section: str | None, value: str | None) -> None:
    assert nginx.read(NGINX, directive, section).value == value


@pytest.mark.parametrize(
    ("directive", "section", "raw", "before", "after"),
    [
        ("worker_processes", None, b"4", b"worker_processes auto;\n", b"worker_processes 4;\n"),
        ("worker_connections", "events", b"9", b"connections 768; }", b"connections 9; }"),
        ("multi_accept", "events", b"on", b"768; }", b"768; multi_accept on; }"),
        ("gzip", "http { server", b"off", b"\t    }\n\t}\n}", b"\t    }\n\t    gzip off;\n\t}\n}"),
        ("pid", None, b"/run/x", b"\t}\n}\n", b"\t}\n}\npid /run/x;\n"),
        ("keepalive_timeout", "http", None, b"'; keepalive_timeout 65;\n", b"'; \n"),
        ("listen", "http { server", None, b"\t    listen 80 default_server;\n", b""),
    ],
)
def test_nginx_change_modifies_only_value(
    directive: str, section: str | None, raw: bytes | None, before: bytes, after: bytes
) -> None:
    assert NGINX.count(before) == 1
    assert nginx.change(NGINX, directive, raw, section) == NGINX.replace(before, after)


@pytest.mark.parametrize(
    ("text", "section", "result"),
    [
        (NGINX, "http { upstream x {", r"no section http \{ upstream x \{"),
        (b"server { a 1; }\nserver { a 2; }\n", "server", "2 sections server"),
        (b"http { a 1; }\n", None, r"is in another section: set section = 'http \{'"),
        (b"a 1", None, "without ;"),
        (b"http { a 1;", None, "never closed"),
        (b"a 'x;", None, "quote is never closed"),
        (b"a 1; }", None, "unexpected }"),
        (b"a\0;", None, "NUL"),
    ],
)
def test_unsupported_nginx_text_is_refused(text: bytes, section: str | None, result: str) -> None:
    with pytest.raises(ConfigError, match=result):
        nginx.read(text, "a", section)


@pytest.mark.parametrize("value", ["", " 1", "1;", "1; load_module x", "}", "{", "# x", "1 # x", "'x", "x\\", "1\n2"])
def test_invalid_nginx_values_are_refused(value: str) -> None:
    with pytest.raises(ConfigError):
        nginx.spell(value)


@pytest.mark.parametrize("value", ["65", "65 60", "'a; b { } #'", '"$x y"', "${x}s", "a#b", "$(rm)", "-1", "~*\\.php$"])
def test_nginx_values_are_read_back(value: str) -> None:
    text = nginx.change(NGINX, "keepalive_timeout", nginx.spell(value), "http")
    assert nginx.read(text, "keepalive_timeout", "http").value == value


SQUID = b"""\
# cache_mem 1 MB
cache_mem 256 MB # of memory
cache_dir ufs /var/spool/squid \\
  100 16 256
if 1 = 1
http_port 3128
endif
"""


def test_squid_values_are_read_and_changed() -> None:
    assert squid.read(SQUID, "cache_mem").value == "256 MB"
    assert squid.read(SQUID, "cache_dir").value == "ufs /var/spool/squid   100 16 256"
    assert squid.read(SQUID, "maximum_object_size").value is None
    assert squid.change(SQUID, "cache_mem", b"8 MB") == SQUID.replace(b"256 MB", b"8 MB")
    rock = squid.change(SQUID, "cache_dir", b"rock /var/spool/squid 100")
    assert rock == SQUID.replace(b"ufs /var/spool/squid \\\n  100 16 256", b"rock /var/spool/squid 100")
    assert squid.change(SQUID, "workers", b"2") == SQUID + b"workers 2\n"
    above = squid.change(SQUID, "cache_replacement_policy", b"heap GDSF")
    assert above == SQUID.replace(b"cache_dir ufs", b"cache_replacement_policy heap GDSF\ncache_dir ufs")
    assert squid.change(above, "cache_replacement_policy", None) == SQUID
    assert squid.change(SQUID, "cache_mem", None) == SQUID.replace(b"cache_mem 256 MB # of memory\n", b"")


@pytest.mark.parametrize("value", ["", "1 ", "x # y", "#x", "x\\", "a\nhttp_access allow all"])
def test_invalid_squid_values_are_refused(value: str) -> None:
    with pytest.raises(ConfigError):
        squid.spell(value)


SHELL = b"""\
# JAVA_OPTS="x"
JAVA_HOME=/usr/lib/jvm
export JAVA_OPTS="-Djava.awt.headless=true $MORE -Dx=\\"y\\""  # all of it
\tNAME='it is'\\''s'
LONG="one \\
two"
"""


def test_shell_values_are_read_and_changed() -> None:
    assert keyvalue.read(SHELL, "JAVA_HOME").value == "/usr/lib/jvm"
    assert keyvalue.read(SHELL, "JAVA_OPTS").value == '-Djava.awt.headless=true $MORE -Dx="y"'
    assert keyvalue.read(SHELL, "NAME").value == "it is's"
    assert keyvalue.read(SHELL, "LONG").value == "one two"
    old = keyvalue.read(SHELL, "JAVA_OPTS").raw
    new = spell_for_shell("-Xmx1g $MORE $(touch pwned)", old)
    assert new == b'"-Xmx1g $MORE \\$(touch pwned)"'
    assert keyvalue.change(SHELL, "JAVA_OPTS", new).endswith(
        b'pwned)"  # all of it\n' + SHELL[SHELL.index(b"\tNAME") :]
    )
    assert keyvalue.change(SHELL, "LANG", b"C") == SHELL + b"LANG=C\n"
    assert keyvalue.change(SHELL, "JAVA_HOME", None) == SHELL.replace(b"JAVA_HOME=/usr/lib/jvm\n", b"")


def test_command_substitution_is_not_changed() -> None:
    for raw in (b'"$(nproc)"', b'"`nproc`"'):
        with pytest.raises(ConfigError, match="by hand"):
            spell_for_shell("4", raw)
    with pytest.raises(ConfigError, match="by hand"):
        keyvalue.read(b"A=$(nproc)\n", "A")


def test_plain_values_are_read_and_changed() -> None:
    text = b"# vm.swappiness = 1\nvm.swappiness = 60\n-net/ipv4/tcp_rmem=4096 87380 6291456 \n"
    assert keyvalue.read(text, "vm.swappiness").value == "60"
    assert keyvalue.read(text, "net.ipv4.tcp_rmem").value == "4096 87380 6291456"
    assert keyvalue.change(text, "vm.swappiness", b"10") == text.replace(b"= 60", b"= 10")
    assert keyvalue.change(text, "vm.dirty_ratio", b"5") == text + b"vm.dirty_ratio = 5\n"
    for value in ("", "# x", "; x", "x\\", "1\n2"):
        with pytest.raises(ConfigError):
            keyvalue.spell(value)


TEXTS = st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=20).map(str.strip)
LIKES = st.sampled_from([None, b"old", b'"old $MORE"', b"'old'", b'""', b'old"er"'])


@given(value=TEXTS, like=LIKES)
@settings(max_examples=60, deadline=None)
def test_shell_reads_spelled_value(value: str, like: bytes | None) -> None:
    assume("$MORE" not in value)
    text = keyvalue.change(b"" if like is None else b"KEY=" + like + b"\nOTHER=1\n", "KEY", None)
    text = keyvalue.change(text, "KEY", spell_for_shell(value, like))
    result = subprocess.run(["sh", "-c", text.decode() + '\nprintf %s "$KEY"'], capture_output=True, check=True)
    assert (result.stdout.decode(), result.stderr) == (value, b"")
    assert keyvalue.read(text, "KEY").value == value


Read = Callable[[bytes], bytes | None]
Change = Callable[[bytes, bytes | None], bytes]
WORD = st.text("abc019_-./", min_size=1, max_size=6).filter(lambda word: word[0] not in "-")
GRAMMARS: dict[str, tuple[Read, Change, list[bytes]]] = {
    "nginx": (
        lambda text: nginx.read(text, "key", "http").raw,
        lambda text, raw: nginx.change(text, "key", raw, "http"),
        [b"http {", b"}", b"\n", b" ", b"key old;", b"key 'a b' ;", b"other 1;", b"# key 2;\n", b"\r\n", b"\tkey\n3;"],
    ),
    "squid": (
        lambda text: squid.read(text, "key").raw,
        lambda text, raw: squid.change(text, "key", raw),
        [b"key old", b"\n", b" ", b"key a \\\n b", b"other 1", b"# key 2\n", b"\r\n", b"\tkey 3", b" # x"],
    ),
    "lighttpd": (
        lambda text: lighttpd.read(text, "key", '$HTTP["a"] == "{"').raw,
        lambda text, raw: lighttpd.change(text, "key", raw, '$HTTP["a"] == "{"'),
        [b'$HTTP["a"] == "{" {', b"}", b"\n", b" ", b"key = 1", b'key="a b"', b"x = (\n1)", b"# key = 2\n", b"\r\n"],
    ),
    "haproxy": (
        lambda text: haproxy.read(text, "key", "global").raw,
        lambda text, raw: haproxy.change(text, "key", raw, "global"),
        [
            b"global\n",
            b"defaults",
            b"\n",
            b" ",
            b"key old",
            b"key 'a b' # c",
            b"other 1",
            b"# key 2\n",
            b"\r\n",
            b".if x\n",
            b"\n.endif\n",
        ],
    ),
    "shell": (
        lambda text: keyvalue.read(text, "key").raw,
        lambda text, raw: keyvalue.change(text, "key", raw),
        [b"key=old", b"\n", b" ", b'key="a b"', b"other=1", b"# key=2\n", b"\r\n", b"\texport key='3'", b"\nkey = 4\n"],
    ),
}


@pytest.mark.parametrize("grammar", GRAMMARS)
@given(data=st.data(), word=WORD)
def test_change_and_revert_restore_bytes(grammar: str, data: st.DataObject, word: str) -> None:
    read, change, parts = GRAMMARS[grammar]
    text = b"".join(data.draw(st.lists(st.sampled_from(parts), max_size=12)))
    raw = word.encode()
    try:
        old = read(text)
        changed = change(text, raw)
    except ConfigError:
        return
    assert read(changed) == raw
    assert change(changed, old) == text
    if old is not None:
        assert len(changed) - len(text) == len(raw) - len(old)


LUA_BLOCK = b"""\
content_by_lua_block {
    -- it's } a comment; key 9;
    local t = { a = "}", b = '{ key 8; ' , c = [==[ ]] } key 7; ]==] }
    --[[ }
    key 6; ]]
    ngx.say("x\\"}")
}
"""


@pytest.mark.parametrize("name", [b"content_by_lua_block", b"set_by_lua_block $x"])
def test_lua_code_has_no_nginx_directives(name: bytes) -> None:
    block = LUA_BLOCK.replace(b"content_by_lua_block", name)
    text = b"http {\nkey 1;\nserver { " + block + b"key 2; }\n}\n"
    assert nginx.read(text, "key", "http {").value == "1"
    assert nginx.read(text, "key", "http { server {").value == "2"
    assert nginx.change(text, "key", b"3", "http { server {") == text.replace(b"key 2;", b"key 3;")
    added = nginx.change(text, "other", b"4", "http { server {")
    assert added == text.replace(b"key 2; }", b"key 2; other 4; }")
    with pytest.raises(ConfigError, match="line 3: a block of Lua code is never closed"):
        nginx.read(text[: text.index(b"}\nkey 2")], "key", "http {")


def test_nginx_strings_may_span_lines() -> None:
    text = b"http {\nlog_format x 'a {\nkey 9;\n}' \"b\n;\";\nkey 1;\n}\n"
    assert nginx.read(text, "key", "http {")[::3] == ("1", 1) and nginx.read(text, "key", "http {").line == 6
    assert nginx.change(text, "key", b"2", "http {") == text.replace(b"key 1", b"key 2")


def test_squid_joins_continued_lines_but_not_comments() -> None:
    text = b"# cache_dir x \\\ncache_mem 8 MB\nacl a src 1.1.1.1 \\\n# cache_mem 9 MB \\\n\n  2.2.2.2\nworkers 1\n"
    assert squid.read(text, "cache_mem")[:1] == ("8 MB",) and squid.read(text, "cache_mem").times == 1
    assert squid.change(text, "cache_mem", b"7 MB") == text.replace(b"8 MB", b"7 MB")
    assert squid.read(text, "acl").value == "a src 1.1.1.1   2.2.2.2"
    assert squid.change(text, "workers", b"2") == text.replace(b"workers 1", b"workers 2")
    assert squid.change(text, "cache_mem", None) == text.replace(b"cache_mem 8 MB\n", b"")
