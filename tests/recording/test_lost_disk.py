"""A disk that fails, hangs or is removed during a recording: the run continues, and the recorded range is reported."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cockpit.recording.reader import Recording, last_state
from tests.servers import http_server

pytestmark = pytest.mark.lab

# Mount a file system in a private namespace, record a run on it, and break the file system during the run.
SCRIPT = """\
set -eu
mount -n -t tmpfs none /mnt
truncate -s 8M /mnt/image
mkdir /mnt/point
mkfs.ext4 -q -F -b 4096 /mnt/image
mount -n -o loop,errors=remount-ro /mnt/image /mnt/point
file=/mnt/point/s.cockpit
"$PYTHON" -m cockpit run "$URL" -q 40 -z 6s --json --record "$file" >/mnt/stdout 2>/mnt/stderr &
run=$!
until [ "$(stat -c %s "$file-wal" 2>/dev/null || echo 0)" -gt 16000 ]; do sleep 0.05; done
device=$(basename "$(findmnt -n -o SOURCE /mnt/point)")
case $LOST in
read-only) echo 1 >"/sys/fs/ext4/$device/trigger_fs_error" ;;
unmounted) umount -n -l /mnt/point ;;
full) head -c 20M /dev/zero >/mnt/point/filler 2>/dev/null || true ;;
frozen)
    trap 'fsfreeze --unfreeze /mnt/point 2>/dev/null || true' EXIT
    fsfreeze --freeze /mnt/point
    until [ -s /mnt/stdout ] || [ "$(stat -c %Y /mnt/stderr)" -lt "$(($(date +%s) - 8))" ]; do sleep 0.2; done
    fsfreeze --unfreeze /mnt/point
    ;;
esac
wait $run && code=0 || code=$?
cat /mnt/stdout
cat /mnt/stderr >&2
cp "$file"* "$COPIES" 2>/dev/null || true
exit $code
"""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with http_server() as base:
        yield f"{base}/"


LATER = r"; the session is recorded up to 00:00:0\d; \d+ later events are not recorded"


@pytest.mark.parametrize(
    ("lost", "message"),
    [
        ("read-only", rf"s\.cockpit: (disk I/O error|attempt to write a read\w+ database){LATER}"),
        ("full", rf"s\.cockpit: database or disk is full{LATER}"),
        ("unmounted", r"s\.cockpit: the file is gone: moved or deleted, or its file system was unmounted"),
        # Writers to a frozen file system block in the kernel, until it is thawed after the run.
        ("frozen", None),
    ],
)
def test_run_continues_and_reports_recorded_range(url: str, tmp_path: Path, lost: str, message: str | None) -> None:
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    variables = {"PATH": path, "PYTHON": sys.executable, "LOST": lost, "URL": url, "COPIES": str(tmp_path)}
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", SCRIPT],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **variables},
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["duration"] > 5.5
    lines = [line for line in done.stderr.splitlines() if "recording: " in line]
    assert len(lines) == (message is not None)
    assert all(re.fullmatch(f"cockpit: recording: {message}", line) for line in lines), lines
    if lost == "unmounted":
        assert [*tmp_path.iterdir()] == []
        return
    with Recording(tmp_path / "s.cockpit") as recording:
        (segment,) = last_state(recording).segments
    assert 0 < segment.counts.completed <= result["completed"]
    assert (segment.counts.completed == result["completed"]) == (lost == "frozen")
