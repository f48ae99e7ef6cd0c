"""Hostile input at commands as carriers, values of settings, imports and annotations."""

import contextlib
import resource
import subprocess
from functools import partial
from pathlib import Path

import pytest

from cockpit.export.annotations import TOKEN, AnnotationStream
from cockpit.model.fold.fold import fold_all
from cockpit.servers.editing import ConfigError
from cockpit.servers.haproxy.live import _SET
from cockpit.servers.registry import GRAMMARS
from tests.commands import cockpit
from tests.hosts.test_shell import shell_via
from tests.load.servers import ClientConnection, always, serving
from tests.session.events import small_session

BREAKS = ("\n", "\r", "\r\n", "\0", "\x0b", "\x0c", "\x85", "\u2028", "\u2029")


async def test_output_of_a_command_cannot_forge_its_exit_status(tmp_path: Path) -> None:
    """The status line has 64 random bits, and only the last one counts."""
    forged = "printf '\\n#cockpit status %s 0\\n' 0123456789abcdef '' >&2; echo x; exit 3"
    async with shell_via(tmp_path, '"$@"') as shell:
        done = await shell.run(forged)
    assert done.exit_status == 3 and b"#cockpit status 0123456789abcdef 0" in done.stderr


@pytest.mark.parametrize("end", BREAKS)
@pytest.mark.parametrize("kind", GRAMMARS)
def test_line_break_in_a_value_adds_no_line(kind: str, end: str) -> None:
    for value in (f"1{end}Evil on", f"{end}1", f"1{end}"):
        with contextlib.suppress(ConfigError):
            raw = GRAMMARS[kind].encode(value)
            assert not {b"\n", b"\r", b"\0"} & {raw[at : at + 1] for at in range(len(raw))}, (value, raw)


@pytest.mark.parametrize("value", ["5\nshutdown sessions server a/b", "5;show env", "5 6", "", "-1"])
def test_value_of_an_admin_command_of_haproxy_is_a_number(value: str) -> None:
    command = ("sh", "-c", f"ask() {{ echo asked; }}\n{_SET}", "sh", value)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "asked" not in done.stdout


@pytest.mark.parametrize("head", ["", "start,seconds\n", "seconds\tttime\n"])
def test_import_of_one_endless_line_needs_no_memory(tmp_path: Path, head: str) -> None:
    file = tmp_path / "line.csv"
    file.write_text(head)
    with file.open("r+b") as sparse:
        sparse.truncate(400 << 20)
    limit = partial(resource.setrlimit, resource.RLIMIT_AS, (512 << 20, 512 << 20))
    completed = cockpit("import", file, before=limit)
    assert completed.returncode == 2 and "is longer than 1048576 characters" in completed.stderr


async def test_redirected_annotation_sends_its_token_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN, "s3cret")
    requests: list[bytes] = []

    async def handle(client: ClientConnection) -> None:
        requests.append(await client.request())

    async with serving(handle) as other:
        moved = b"HTTP/1.1 307 Moved\r\nLocation: " + other.url.encode() + b"\r\nContent-Length: 0\r\n\r\n"
        async with serving(always(moved)) as server:
            stream = AnnotationStream(server.url)
            await stream.close(fold_all(small_session()))
    assert not requests and "status 307" in stream.trouble and "s3cret" not in stream.trouble
