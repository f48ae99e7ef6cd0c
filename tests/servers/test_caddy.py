"""Caddy: Caddyfile grammar, running servers, settings."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cockpit.servers import registry
from cockpit.servers.caddy.grammar import items, tokens
from cockpit.servers.editing import ConfigError

CADDY = registry.GRAMMARS["caddy"]
CONFIG = b"""\
# encode br
{
	admin localhost:2020 # not :2019
	servers :443 {
		protocols h1 h2
	}
}

(common) {
	header X-Text "encode \\"gzip\\" {"
	log
}

example.com,
www.example.com:8443 {
	import common
	import sites/*.caddy a
	encode gzip zstd
	reverse_proxy /api/* localhost:9000 10.0.0.1:9001 {
		lb_policy first
		transport http {
			keepalive 30s
		}
	}
	respond `{
	encode br }` 200
}

:{$PORT:80 81} { root * /srv
	encode @text {
		gzip 5
	}
	encode \\
		gzip
}
"""
SITE = "example.com, www.example.com:8443 {"
TRANSPORT = f"{SITE} reverse_proxy /api/* localhost:9000 10.0.0.1:9001 {{ transport http {{"
PLAIN = b":80 {\n\troot * /srv\n\tencode @text {\n\t\tgzip 5\n\t}\n}\n"


@pytest.mark.parametrize(
    ("name", "section", "value"),
    [
        ("admin", "{", "localhost:2020"),
        ("protocols", "{ servers :443 {", "h1 h2"),
        ("protocols", "{ servers {", None),
        ("idle", "{ servers { timeouts {", None),
        ("encode", SITE, "gzip zstd"),
        ("reverse_proxy", SITE, "/api/* localhost:9000 10.0.0.1:9001"),
        ("keepalive", TRANSPORT, "30s"),
        ("header", "(common) {", 'X-Text "encode \\"gzip\\" {"'),
        ("respond", SITE, "`{\n\tencode br }` 200"),
        ("root", ":{$PORT:80 81} {", "* /srv"),
        ("max_conns_per_host", TRANSPORT, None),
    ],
)
def test_settings_are_read(name: str, section: str, value: str | None) -> None:
    assert CADDY.read(CONFIG, name, section).value == value
    assert CADDY.read(CONFIG.replace(b"\n", b"\r\n"), name, section).value == (value and value.replace("\n", "\r\n"))


def test_change_modifies_only_one_setting() -> None:
    assert CADDY.change(CONFIG, "encode", b"gzip", SITE) == CONFIG.replace(b"encode gzip zstd", b"encode gzip")
    assert CADDY.change(CONFIG, "keepalive", b"off", TRANSPORT) == CONFIG.replace(b"keepalive 30s", b"keepalive off")
    assert CADDY.change(CONFIG, "encode", None, SITE) == CONFIG.replace(b"\tencode gzip zstd\n", b"")
    assert CADDY.change(CONFIG, "admin", b"off", "{") == CONFIG.replace(b"localhost:2020 #", b"off #")
    added = CADDY.change(CONFIG, "max_header_size", b"16KB", "{ servers :443 {")
    assert added == CONFIG.replace(b"h1 h2\n", b"h1 h2\n\t\tmax_header_size 16KB\n")
    assert CADDY.change(added, "max_header_size", None, "{ servers :443 {") == CONFIG


def test_change_of_arguments_keeps_block() -> None:
    assert CADDY.read(PLAIN, "encode", ":80 {").value == "@text"
    assert CADDY.change(PLAIN, "encode", b"gzip", ":80 {") == PLAIN.replace(b"@text {", b"gzip {")
    assert CADDY.change(PLAIN, "encode", None, ":80 {") == b":80 {\n\troot * /srv\n}\n"
    with pytest.raises(ConfigError, match="line 3: encode has no value"):
        CADDY.change(PLAIN.replace(b" @text", b""), "encode", b"gzip", ":80 {")


def test_missing_global_blocks_are_added() -> None:
    timeouts = "{ servers { timeouts {"
    added = CADDY.change(PLAIN, "idle", b"30s", timeouts)
    assert added == b"{\n\tservers {\n\t\ttimeouts {\n\t\t\tidle 30s\n\t\t}\n\t}\n}\n\n" + PLAIN
    assert CADDY.read(added, "idle", timeouts).value == "30s"
    both = CADDY.change(added, "protocols", b"h1", "{ servers {")
    assert both == added.replace(b"\t\t}\n\t}", b"\t\t}\n\t\tprotocols h1\n\t}")
    inner = CADDY.change(b"{\n\tdebug\n}\n", "idle", b"30s", timeouts)
    assert inner == b"{\n\tdebug\n\tservers {\n\t\ttimeouts {\n\t\t\tidle 30s\n\t\t}\n\t}\n}\n"
    with pytest.raises(ConfigError, match="on one line"):
        CADDY.change(b"{ }\n", "idle", b"30s", timeouts)


def test_single_site_without_braces_is_edited() -> None:
    text = b":80\nroot * /srv\nfile_server\n"
    assert CADDY.sections_of(text, ["encode", "root"]) == {":80 {": {"root"}}
    added = CADDY.change(text, "encode", b"gzip", ":80 {")
    assert added == text + b"encode gzip\n" and CADDY.change(added, "encode", None, ":80 {") == text
    assert CADDY.change(text.rstrip(), "encode", b"gzip", ":80 {") == text.rstrip() + b"\nencode gzip"
    with pytest.raises(ConfigError, match="the last line contains a backslash"):
        CADDY.change(text + b"# C:\\x\n", "encode", b"gzip", ":80 {")


def test_imported_file_has_no_section() -> None:
    text = b"header -Server\nencode gzip\n"
    assert CADDY.change(text, "encode", b"zstd") == text.replace(b"gzip", b"zstd")
    with pytest.raises(ConfigError, match="name a section in the knob"):
        CADDY.change(text, "root", b"* /srv")


def test_imports_of_site_are_listed() -> None:
    assert CADDY.includes(CONFIG, SITE) == [("common", 16), ("sites/*.caddy", 17)]


@pytest.mark.parametrize(
    ("text", "section", "reason"),
    [
        (CONFIG, ":{$PORT:80 81} {", "line 34: encode is set 2 times in this section"),
        (CONFIG, None, "encode is not at the top level; encode is in another section: set section = ':"),
        (CONFIG, ":81 {", "no section :81 {"),
        (CONFIG + CONFIG[CONFIG.index(b"example.com") :], SITE, "2 sections example.com"),
        (b":80 {\n", ":80 {", "line 1: the block :80 { is never closed"),
        (b":80 {\n}\n}\n", ":80 {", "line 3: unexpected }"),
        (b":80 {\n\troot * /srv }\n", ":80 {", "line 2: unexpected }"),
        (b":80 {\n\troot * /srv\n} x\n", ":80 {", "line 3: unexpected text after a brace"),
        (b":80 {\n\thandle {\n\t}\n\troute { root /srv\n}\n}\n", ":80 {", "line 4: unexpected text after a brace"),
        (b":80\n{\n}\n", ":80 {", "line 2: unexpected {: no name before it"),
        (b":80 {\n\trespond \"{\" 200\n}\n", ":80 {", "line 2: unexpected text after a brace"),
        (b":80 {\n\trespond \"}\" 200\n}\n", ":80 {", "line 2: unexpected }"),
        (b":80 {\n\trespond <<END\n\thi\n}\n", ":80 {", r"line 2: a heredoc \(<<\) is never closed"),
        (b":80 {\n\trespond <<\n\thi\n}\n", ":80 {", r"line 2: a heredoc \(<<\) is never closed"),
        (b":80 {\n\trespond <<END\n\thi END\n\tEND\n}\n", ":80 {", "line 3: the closing marker of a heredoc shares"),
        (b":80 {\n\trespond \"hi\n}\n", ":80 {", "line 2: a quote is never closed"),
        (b":80 {\n\trespond `hi\n}\n", ":80 {", "line 2: a quote is never closed"),
        (b":80 {\n\trespond a\\ b\n}\n", ":80 {", "line 2: a backslash before a space"),
        (b":80 {\n\trespond {$TEXT}\"a\"\n}\n", ":80 {", "line 2: a backslash or a {\\$NAME} before a quote"),
        (b":80 {\n\trespond {$TEXT\n}\n", ":80 {", "line 2: a {\\$ is not closed on its line"),
        (b":80 {\n\trespond a\rb\n}\n", ":80 {", "line 2: a carriage return within a line"),
        (b":80 {\n\trespond \\\n`a\nb`\n}\n", ":80 {", "line 3: a multi-line text on a continuation line"),
        (b"\0", ":80 {", "NUL"),
    ],
)  # fmt: skip
def test_unsupported_text_is_refused(text: bytes, section: str | None, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        CADDY.read(text, "encode", section)


HEREDOC = b""":80 {
	respond <<END
	encode br {
	}
	"quoted
	END 200
	encode gzip
}
"""


def test_a_heredoc_is_one_word() -> None:
    assert CADDY.read(HEREDOC, "encode", ":80 {").value == "gzip"
    assert CADDY.read(HEREDOC.replace(b"\n", b"\r\n"), "encode", ":80 {").value == "gzip"
    shown = CADDY.read(HEREDOC, "respond", ":80 {").value
    assert shown and shown.startswith("<<END\n") and shown.endswith("\tEND 200")
    assert CADDY.change(HEREDOC, "encode", b"zstd", ":80 {") == HEREDOC.replace(b"gzip", b"zstd")
    assert CADDY.change(HEREDOC, "respond", None, ":80 {") == b":80 {\n\tencode gzip\n}\n"
    # A space behind the marker makes it a plain word.
    assert CADDY.read(b":80 {\n\trespond <<END 200\n}\n", "respond", ":80 {").value == "<<END 200"


def adapted(text: bytes) -> subprocess.CompletedProcess[bytes]:
    if shutil.which("caddy") is None:
        pytest.skip("caddy is not installed")
    return subprocess.run(["caddy", "adapt", "--config", "/dev/stdin"], input=text, capture_output=True, check=False)


def test_caddy_itself_reads_a_heredoc_as_this_does_or_refuses_it() -> None:
    done = adapted(HEREDOC)
    if done.returncode == 0:
        assert b'"body":"encode br {\\n}\\n\\"quoted"' in done.stdout and b'"gzip"' in done.stdout
    else:
        assert done.stderr.startswith(b"Error: ")


@pytest.mark.parametrize("brace", ['"{" 200', "`{` 200", '"}"', "`}`"])
def test_a_quoted_brace_as_an_argument_is_refused_as_by_caddy(brace: str) -> None:
    text = f":80 {{\n\trespond {brace}\n}}\n".encode()
    with pytest.raises(ConfigError):
        CADDY.read(text, "respond", ":80 {")
    assert adapted(text).returncode != 0


def test_a_quoted_brace_is_that_of_a_block() -> None:
    text = b':80 {\n\troute "{"\n\t\tencode gzip\n\t`}`\n\trespond "\\{ {"\n}\n'
    assert CADDY.read(text, "encode", ":80 { route {").value == "gzip"
    assert CADDY.read(text, "respond", ":80 {").value == '"\\{ {"'
    assert CADDY.change(text, "encode", b"zstd", ":80 { route {") == text.replace(b"gzip", b"zstd")
    assert adapted(text).returncode == 0


# Lines of blocks, whose nesting is compared with that of Caddy. A route keeps the order of its directives.
_ROUTES = ("route {", 'route "{"', "route `{`", "}", '"}"', "`}`")
_BODIES = ("\\{", "\\}", '"{ "', "`} `", '"{}"', "{}", '"\\{"', '"a\n{\n}"', "`\n{\nb`", "{a}", "a{", "}a")
_LINES = st.lists(st.sampled_from((*_ROUTES, *(f"respond {body}" for body in _BODIES))), min_size=1, max_size=8)


@given(lines=_LINES)
@settings(max_examples=80, deadline=None)
def test_blocks_match_caddy_adapt(lines: list[str]) -> None:
    text = f":80 {{\nroute {{\n{chr(10).join(_closed(lines))}\n}}\n}}\n".encode()
    done = adapted(text)
    try:
        found = [item for item in items(text) if item.name == b"respond"]
    except ConfigError:
        assert done.returncode != 0
        return
    if done.returncode == 0:
        bodies = [(len(item.within), text[slice(*item.value)].decode()) for item in found]
        own = [(depth, _unquoted(body.encode()).replace("{a}", "")) for depth, body in bodies]
        assert own == [(depth, body.replace("{a}", "")) for depth, body in _responses(json.loads(done.stdout))]


def _closed(lines: list[str]) -> list[str]:
    """The lines without those that close more than was opened, and with those that close the rest."""
    opened, kept = 0, []
    for line in lines:
        if line in _ROUTES[3:] and not opened:
            continue
        opened += (line in _ROUTES[:3]) - (line in _ROUTES[3:])
        kept.append(line)
    return [*kept, *["}"] * opened]


def _responses(node: object, depth: int = 1) -> list[tuple[int, str]]:
    """The bodies of responses, each with the number of blocks around it."""
    if isinstance(node, list):
        return [found for each in node for found in _responses(each, depth)]
    if not isinstance(node, dict):
        return []
    if node.get("handler") == "static_response":
        return [(depth, node.get("body", ""))]
    inner = depth + (node.get("handler") == "subroute")
    return [found for value in node.values() for found in _responses(value, inner)]


@pytest.mark.parametrize(
    "value", ["gzip", "gzip zstd", "@text gzip", '"a b"', '`a "b`', "{$CODES}", "{path}", "a#b", "é"]
)
def test_values_are_spelled(value: str) -> None:
    text = CADDY.change(PLAIN, "vars", CADDY.spell(value), ":80 {")
    assert CADDY.read(text, "vars", ":80 {").value == value


@pytest.mark.parametrize(
    "value", ["", "a ", "a\nb", '"a', "`a", "a # b", "a {", "}", '"{"', "a\\", "<<END", "a\x00", "{$A", '\\"a"']
)
def test_invalid_values_are_refused(value: str) -> None:
    with pytest.raises(ConfigError):
        CADDY.spell(value)


# Parts of a line, whose tokens are compared with those of Caddy.
_PARTS = st.sampled_from(
    (
        *("a", "é", '"x y"', '"q\\"r"', '"m\nn"', "`b t`", "`m\nn`", "#c", "# c\\d", "\\\n", "\n", " ", "\t", "\r\n"),
        *("\\n", "{path}", "a#b", 'a"b', "\\{", '"{', "`}", "\u00a0", "\u2003", "\\\\", '"un', "<<E", "\\", "\r"),
    )
)


def _unquoted(word: bytes) -> str:
    text = word.decode().replace("{path}", "{http.request.uri.path}")
    if text[0] == "`":
        return text[1:-1]
    return text[1:-1].replace('\\"', '"') if text[0] == '"' else text


@given(parts=st.lists(_PARTS, min_size=1, max_size=8))
@settings(max_examples=60, deadline=None)
def test_tokens_match_caddy_adapt(parts: list[str]) -> None:
    if shutil.which("caddy") is None:
        pytest.skip("caddy is not installed")
    text = f":80 {{\n\ttry_files first {''.join(parts)}\n\ttry_files last\n}}\n".encode()
    try:
        found = [item for item in items(text) if item.within == (":80",)]
        words = [[_unquoted(token.text) for token in tokens(text[slice(*item.value)])] for item in found]
    except ConfigError:
        return
    if any(item.name != b"try_files" for item in found):
        return
    done = subprocess.run(["caddy", "adapt", "--config", "/dev/stdin"], input=text, capture_output=True, check=True)
    assert words == list(_try_files(json.loads(done.stdout)))


def _try_files(node: object) -> list[list[str]]:
    values = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    own = [node["try_files"]] if isinstance(node, dict) and "try_files" in node else []
    return own + [found for value in values for found in _try_files(value)]


WORDS = st.lists(st.sampled_from(("gzip", "zstd", "@a", '"x y"', "`z`")), min_size=1, max_size=3)
LINES = (
    *(b":80 {\n", b":81 {\n", b"}\n", b"\n", b"\tencode gzip\n", b"\tencode {\n", b"\tgzip 5\n", b"# encode br\n"),
    *(b"\tencode zstd # c\n", b"{\n", b"\tservers {\n", b":80\n", b"\troot * /srv\r\n", b"\tencode gzip \\\n", b"\t x"),
)


@given(lines=st.lists(st.sampled_from(LINES), max_size=12), words=WORDS)
def test_change_and_revert_restore_bytes(lines: list[bytes], words: list[str]) -> None:
    text, raw = b"".join(lines), " ".join(words).encode()
    try:
        old = CADDY.read(text, "encode", ":80 {").raw
        changed = CADDY.change(text, "encode", raw, ":80 {")
    except ConfigError:
        return
    assert CADDY.read(changed, "encode", ":80 {").raw == raw
    assert CADDY.change(changed, "encode", old, ":80 {") == text


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    for source in (text, f":80 {{\n\t{text}\n}}\n"):
        try:
            CADDY.read(source.encode(), "encode", ":80 {")
        except ConfigError:
            continue


def test_long_texts_are_read_in_linear_time() -> None:
    for part in (b'"', b"\\", b"{$", b"{$a}", b"a ", b"# \\\n", b"{", b"\r", b"`", b"\\\r"):
        try:
            CADDY.read(part * 200_000, "encode", ":80 {")
        except ConfigError:
            continue


def test_packaged_caddyfile_is_read() -> None:
    file = Path("/etc/caddy/Caddyfile")
    if not file.exists():
        pytest.skip("caddy is not installed")
    assert CADDY.sections_of(file.read_bytes(), ["encode", "file_server"]) == {":80 {": {"file_server"}}
