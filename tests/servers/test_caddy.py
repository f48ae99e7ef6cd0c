"""Caddy: Caddyfiles beyond the table, compared with `caddy adapt`; metrics and access log."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.servers import registry
from cockpit.servers.access_log import AccessLine, LoggedRequest
from cockpit.servers.caddy.grammar import items, tokens
from cockpit.servers.caddy.logs import parse as parse_access
from cockpit.servers.caddy.logs import parse_request
from cockpit.servers.editing import ConfigError, ConfigText
from cockpit.servers.status import NotThePageError
from tests.hosts.pages import PAGES

CADDY = registry.GRAMMARS["caddy"]


def test_missing_global_blocks_are_added() -> None:
    timeouts, plain = "{ servers { timeouts {", b":80 {\n\troot * /srv\n}\n"
    added = CADDY.change(plain, "idle", b"30s", timeouts)
    assert added == b"{\n\tservers {\n\t\ttimeouts {\n\t\t\tidle 30s\n\t\t}\n\t}\n}\n\n" + plain
    assert CADDY.read(added, "idle", timeouts).value == "30s"
    both = CADDY.change(added, "protocols", b"h1", "{ servers {")
    assert both == added.replace(b"\t\t}\n\t}", b"\t\t}\n\t\tprotocols h1\n\t}")
    inner = CADDY.change(b"{\n\tdebug\n}\n", "idle", b"30s", timeouts)
    assert inner == b"{\n\tdebug\n\tservers {\n\t\ttimeouts {\n\t\t\tidle 30s\n\t\t}\n\t}\n}\n"


def test_single_site_without_braces_has_a_section() -> None:
    text = b":80\nroot * /srv\nfile_server\n"
    assert CADDY.sections_of(text, ["encode", "root"]) == {":80 {": {"root"}}
    assert CADDY.change(text.rstrip(), "encode", b"gzip", ":80 {") == text.rstrip() + b"\nencode gzip"


def test_long_texts_are_read_in_linear_time() -> None:
    for part in (b'"', b"\\", b"{$", b"{$a}", b"a ", b"# \\\n", b"{", b"\r", b"`", b"\\\r"):
        try:
            CADDY.read(part * 60_000, "encode", ":80 {")
        except ConfigError:
            continue


def adapted(text: bytes) -> dict[str, Any] | None:
    """Caddy's own reading of the text; None: it refuses the text."""
    done = subprocess.run(["caddy", "adapt", "--config", "/dev/stdin"], input=text, capture_output=True, check=False)
    assert done.returncode == 0 or done.stderr.startswith(b"Error: ")
    return json.loads(done.stdout) if done.returncode == 0 else None


@pytest.mark.lab
def test_caddy_itself_accepts_and_refuses_the_same_texts() -> None:
    for brace in ('"{" 200', "`{` 200", '"}"', "`}`"):
        assert adapted(f":80 {{\n\trespond {brace}\n}}\n".encode()) is None
    quoted = b':80 {\n\troute "{"\n\t\tencode gzip\n\t`}`\n\trespond "\\{ {"\n}\n'
    assert CADDY.read(quoted, "respond", ":80 {").value == '"\\{ {"' and adapted(quoted)
    packaged = Path("/etc/caddy/Caddyfile").read_bytes()
    assert CADDY.sections_of(packaged, ["encode", "file_server"]) == {":80 {": {"file_server"}}


# Lines of blocks, whose nesting is compared with that of Caddy. A route keeps the order of its directives.
_ROUTES = ("route {", 'route "{"', "route `{`", "}", '"}"', "`}`")
_BODIES = ("\\{", "\\}", '"{ "', "`} `", '"{}"', "{}", '"\\{"', '"a\n{\n}"', "`\n{\nb`", "{a}", "a{", "}a")
_LINES = st.lists(st.sampled_from((*_ROUTES, *(f"respond {body}" for body in _BODIES))), min_size=1, max_size=8)


@pytest.mark.lab
@given(lines=_LINES)
def test_blocks_match_caddy_adapt(lines: list[str]) -> None:
    text = f":80 {{\nroute {{\n{chr(10).join(_closed(lines))}\n}}\n}}\n".encode()
    theirs = adapted(text)
    try:
        found = [item for item in items(ConfigText(text)) if item.name == b"respond"]
    except ConfigError:
        assert theirs is None
        return
    if theirs is not None:
        bodies = [(len(item.within), text[slice(*item.value)].decode()) for item in found]
        own = [(depth, _unquoted(body.encode()).replace("{a}", "")) for depth, body in bodies]
        assert own == [(depth, body.replace("{a}", "")) for depth, body in _responses(theirs)]


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


@pytest.mark.lab
@given(parts=st.lists(_PARTS, min_size=1, max_size=8))
def test_tokens_match_caddy_adapt(parts: list[str]) -> None:
    text = f":80 {{\n\ttry_files first {''.join(parts)}\n\ttry_files last\n}}\n".encode()
    try:
        found = [item for item in items(ConfigText(text)) if item.within == (":80",)]
        words = [[_unquoted(token.text) for token in tokens(ConfigText(text[slice(*item.value)]))] for item in found]
    except ConfigError:
        return
    if any(item.name != b"try_files" for item in found):
        return
    assert words == list(_try_files(adapted(text)))


def _try_files(node: object) -> list[list[str]]:
    values = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    own = [node["try_files"]] if isinstance(node, dict) and "try_files" in node else []
    return own + [found for value in values for found in _try_files(value)]


PAGE = registry.STATUS_PAGES["caddy"]


def test_metrics_are_parsed() -> None:
    assert not any("_bucket" in name or "quantile" in name for name in PAGE.parse(PAGES["caddy"]).values)
    page = PAGES["caddy"] + "caddy_config_last_reload_success_timestamp_seconds 1.795479e+09\n"
    assert PAGE.parse(page).values[PAGE.generation] == 1795479000 and not PAGE.is_counter(PAGE.generation)
    lines = [line for line in PAGES["caddy"].splitlines() if not line.startswith("caddy_http")]
    values = PAGE.parse("\n".join(lines)).values
    assert "requests" not in values and "in_flight" not in values and values["process_cpu_seconds_total"] == 0.25
    labels = 'handler="' + "\\" * 3000
    page = "process_cpu_seconds_total 1\n" + f"a{{{labels}}} 1\n" * 300 + "b 1\n" * 100_000 + 'c{d="' * 50_000
    assert PAGE.parse(page).values["process_cpu_seconds_total"] == 1


@pytest.mark.parametrize("page", ["", "<html>", "process_cpu_seconds_total", "process_cpu_seconds_total NaN", "a 1"])
def test_other_page_is_refused(page: str) -> None:
    with pytest.raises(NotThePageError, match="localhost:2019/metrics"):
        PAGE.parse(page)


LINE = (
    b'{"level":"info","ts":1795396200.5,"logger":"http.log.access.log0","msg":"handled request","request":{"remote_ip":'
    b'"127.0.0.1","proto":"HTTP/2.0","method":"GET","host":"localhost","uri":"/a%20b?x=\\"1","headers":{"X":["y"]}},'
    b'"user_id":"","duration":0.25,"size":14970,"status":200,"resp_headers":{"Server":["Caddy"]}}'
)


def test_access_log_line_is_parsed() -> None:
    for line in (LINE, b"Nov 23 01:10:00 web1 caddy[7]: " + LINE + b"\n"):
        assert parse_access(line) == AccessLine(200, 0.25)
        assert parse_request(line) == LoggedRequest(1795396200.25, b"GET", b'/a%20b?x="1')
    assert parse_access(LINE.replace(b'"status":200', b'"status":0')) == AccessLine(0, 0.25)


@pytest.mark.parametrize(
    ("stamp", "at"),
    [
        (b'"2026-11-23T01:10:00.500Z"', 1795396200.25),
        (b'"2026-11-23T02:40:00.500+0130"', 1795396200.25),
        (b'"2026-11-23T01:10:00.500000107Z"', 1795396200.25),
        (b'"2026/11/23 01:10:00.500"', 1795396200.25),
        (b"1795396200500.0", 1795396200.25),
        (b"1795396200500000000", 1795396200.25),
        # Times in whole seconds are spread over their second by a replay.
        (b'"2026-11-23T01:10:00Z"', 1795396200),
        (b'"2026/11/23 01:10:00"', 1795396200),
        (b'"23/Nov/2026:02:10:00 +0100"', 1795396200),
    ],
)
def test_each_format_of_time_and_duration_is_read(stamp: bytes, at: float) -> None:
    for duration in (b"0.25", b'"250ms"', b'"0m0.25s"', '"249999.999µs1ns"'.encode()):
        line = LINE.replace(b"1795396200.5", stamp).replace(b"0.25", duration)
        access, request = parse_access(line), parse_request(line)
        assert access is not None and access.seconds == pytest.approx(0.25)
        assert request is not None and request.at == pytest.approx(at, abs=1e-5, rel=0)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"http.log.access.log0", b"http.log.error"),
        (b'"status":200', b'"status":1000'),
        (b'"status":200', b'"status":true'),
        (b"0.25", b"-1"),
        (b"0.25", b"1e400"),
        (b"1795396200.5", b'"2026/13/23 01:10:00"'),
        (b"1795396200.5", b'"noon"'),
        (b"0.25", b'"soon"'),
        (b"0.25", b'"5ms and more"'),
        (b"0.25", b'""'),
        (b"1795396200.5", b"1e300"),
        (b'"GET"', b"null"),
        (b'{"X":["y"]}', b"[" * 5000),
        (b'"X"', b'"' + b"x" * 20_000 + b'"'),
        (b"}}", b"}"),
    ],
)
def test_other_log_lines_are_not_requests(old: bytes, new: bytes) -> None:
    assert parse_access(LINE.replace(old, new)) is None and parse_request(LINE.replace(old, new)) is None


@given(st.binary(max_size=100), st.integers(0, len(LINE)))
def test_any_line_is_parsed_or_none(noise: bytes, at: int) -> None:
    for line in (noise, LINE[:at] + noise + LINE[at:], LINE[:at] + noise):
        access, request = parse_access(line), parse_request(line)
        assert access is None or (
            0 <= access.status <= 999 and access.seconds is not None and 0 <= access.seconds < 1e7
        )
        assert request is None or (request.at > 0 and request.method and request.target)
