"""Access logs of other programs, compressed, from a pipe, damaged."""

import gzip
import lzma
import os
import re
import threading
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from cockpit.load.log_reader import read_log
from cockpit.model.errors import UsageError
from cockpit.model.load.plan import LogReplay
from tests.load.servers import plan

LOG = b"".join(b'10.0.0.9 - - [23/Nov/2026:01:00:0%d +0000] "GET /%d HTTP/1.1" 200 5\n' % (n, n) for n in range(3))
OTHER_LOGS = tomllib.loads(Path(__file__).with_name("other_logs.toml").read_text(encoding="utf-8"))


def requests(file: Path) -> list[bytes]:
    found = read_log(plan("http://127.0.0.1:1/", replay=LogReplay(file=str(file))))
    return [found.requests.line(number) for number in found.numbers.tolist()]


@pytest.mark.parametrize("compress", [bytes, gzip.compress, lzma.compress])
@pytest.mark.parametrize("pipe", [False, True])
def test_the_requests_of_a_log_are_read(compress: Callable[[bytes], bytes], pipe: bool, tmp_path: Path) -> None:
    file = tmp_path / "access.log"
    if pipe:
        os.mkfifo(file)
        threading.Thread(target=file.write_bytes, args=(compress(LOG),)).start()
    else:
        file.write_bytes(compress(LOG))
    assert requests(file) == [b"GET /0", b"GET /1", b"GET /2"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (gzip.compress(LOG, mtime=0)[:-9], "cannot be read: damaged: "),
        (lzma.compress(LOG)[:40], "cannot be read: damaged: "),
        (b"\x28\xb5\x2f\xfd rest", "compressed with zstd; use: zstd -dc "),
    ],
    ids=["gzip", "xz", "zstd"],
)
def test_a_damaged_log_is_refused_in_one_line(content: bytes, reason: str, tmp_path: Path) -> None:
    (tmp_path / "access.log").write_bytes(content)
    with pytest.raises(UsageError, match=reason):
        requests(tmp_path / "access.log")


@pytest.mark.parametrize("name", OTHER_LOGS)
def test_other_formats_are_read_or_named(name: str, tmp_path: Path) -> None:
    case = OTHER_LOGS[name]
    file = tmp_path / "access.log"
    file.write_text(case["lines"].lstrip("\n"), encoding="utf-8")
    log = plan("http://www.example.org/", replay=LogReplay(file=str(file)))
    if "error" in case:
        with pytest.raises(UsageError, match=re.escape(case["error"])):
            read_log(log)
    else:
        found = read_log(log)
        assert [found.requests.line(number).decode() for number in found.numbers.tolist()] == case["requests"]
        assert found.total == 1 or found.seconds >= 1
