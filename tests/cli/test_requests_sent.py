"""Requests that a server receives for given request flags."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from cockpit.model.events import RunStarted
from cockpit.recording.reader import Recording
from tests.commands import cockpit

Requests = list[tuple[str, list[tuple[str, str]]]]


@pytest.fixture
def server() -> Iterator[tuple[str, Requests]]:
    """Yield a server's URL, and method and headers of its requests; the body is the header `:body`."""
    requests: Requests = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            headers = [(name.lower(), value) for name, value in self.headers.items()]
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            requests.append((self.command, [*headers, (":body", body.decode("latin-1"))]))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_POST = do_GET

        def log_message(self, format: str, *args: object) -> None:
            """Print nothing: tests read stderr."""

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield f"http://127.0.0.1:{listening.server_address[1]}/", requests
    listening.shutdown()
    thread.join()
    listening.server_close()


def values(requests: Requests, name: str) -> list[str]:
    """Return the values of a header of the last request."""
    return [value for key, value in requests[-1][1] if key == name]


@pytest.mark.parametrize("command", [("run", "-d", "x", "--no-tui"), ("ab", "-q", "-p")])
def test_repeated_headers_are_sent_and_content_type_once(
    server: tuple[str, Requests], tmp_path: Path, command: tuple[str, ...]
) -> None:
    url, requests = server
    (tmp_path / "body").write_text("x")
    file = [tmp_path / "body"] if command[-1] == "-p" else []
    headers = ("-H", "X-A: 1", "-H", "X-A: 2", "-T", "a/b", "-H", "content-type: c/d")
    done = cockpit(*command, *file, "-n", "3", *headers, url)
    assert done.returncode == 0, done.stderr
    assert [method for method, _ in requests if method == "POST"] == ["POST"] * 3
    assert (values(requests, "x-a"), values(requests, "content-type")) == (["1", "2"], ["c/d"])


def test_header_flag_replaces_profile_header(server: tuple[str, Requests], tmp_path: Path) -> None:
    url, requests = server
    profile = tmp_path / "p.toml"
    profile.write_text(f'[target]\nurl = "{url}"\n[load]\nrequests = 3\nheaders = {{X-A = "1", X-B = "2"}}\n')
    done = cockpit("run", profile, "--no-tui", "-H", "x-a: 3")
    assert done.returncode == 0, done.stderr
    assert (values(requests, "x-a"), values(requests, "x-b")) == (["3"], ["2"])
    limited = cockpit("ab", "-q", "-t", "0.3", url)
    assert limited.returncode == 0 and "stopped before its plan" not in limited.stderr


@pytest.mark.parametrize("source", ["profile", "request block", "-D", "ab"])
def test_binary_body_is_sent_exactly_and_recorded_as_digest(
    server: tuple[str, Requests], tmp_path: Path, source: str
) -> None:
    url, requests = server
    raw = bytes(range(256)) * 3
    (tmp_path / "body").write_bytes(raw)
    profile, recording = tmp_path / "p.toml", tmp_path / "s.cockpit"
    block = '[[request]]\nname = "a"\n' if source == "request block" else ""
    profile.write_text(f'[target]\nurl = "{url}"\n[load]\nrequests = 3\n{block}method = "POST"\nbody_file = "body"\n')
    commands: dict[str, tuple[str | Path, ...]] = {
        "-D": ("run", url, "-n", "3", "-D", tmp_path / "body", "--no-tui", "--record", recording),
        "ab": ("ab", "-q", "-n", "3", "-p", tmp_path / "body", url),
    }
    done = cockpit(*commands.get(source, ("run", "--trust", profile, "--no-tui", "--record", recording)))
    assert done.returncode == 0, done.stderr
    assert [dict(headers)[":body"] for _, headers in requests if dict(headers)[":body"]] == [raw.decode("latin-1")] * 3
    if source != "ab":
        with Recording(recording) as recorded:
            [plan] = [event.plan for event in recorded.events() if isinstance(event, RunStarted)]
        request = plan.mix[0] if plan.mix else plan
        assert request.body == f"sha256:{hashlib.sha256(raw).hexdigest()} ({len(raw)} bytes)"
        assert request.binary is None
