"""A disk that fails, hangs or is removed during a recording: the run continues, and the recorded range is reported."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cockpit.model.events import AnyEvent
from cockpit.recording import writer
from cockpit.recording.reader import Recording, last_state
from cockpit.recording.writer import RecordingWriter
from tests.servers import http_server
from tests.session.events import small_session

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
NEEDS = """\
mount -n -t tmpfs none /mnt && truncate -s 1M /mnt/image && mkdir /mnt/p && mkfs.ext4 -q -F /mnt/image &&
mount -n -o loop /mnt/image /mnt/p && device=$(basename "$(findmnt -n -o SOURCE /mnt/p)") &&
test -w "/sys/fs/ext4/$device/trigger_fs_error"
"""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with http_server() as base:
        yield f"{base}/"


def completed(path: Path) -> int:
    """Return the completed requests of the recording's only run."""
    with Recording(path) as recording:
        (segment,) = last_state(recording).segments
        return segment.counts.completed


def run_in_namespace(script: str, **variables: str) -> subprocess.CompletedProcess[str]:
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    return subprocess.run(
        ["unshare", "--mount", "sh", "-c", script],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "PATH": path, "PYTHON": sys.executable, **variables},
        cwd=Path(__file__).parents[2],
    )


@pytest.fixture(scope="module")
def may_mount() -> None:
    if os.geteuid() != 0 or not shutil.which("unshare"):
        pytest.skip("needs root and unshare")
    tried = run_in_namespace(NEEDS)
    if tried.returncode:
        pytest.skip(f"needs mounts, loop devices and ext4 of its own: {tried.stderr.strip()}")


@pytest.mark.parametrize(
    ("lost", "message"),
    [
        (
            "read-only",
            r"s\.cockpit: (disk I/O error|attempt to write a read\w+ database); HELD; \d+ later events LOST",
        ),
        ("full", r"s\.cockpit: database or disk is full; HELD; \d+ later events LOST"),
        ("unmounted", r"s\.cockpit: the file is gone: moved or deleted, or its file system was unmounted"),
    ],
)
def test_run_continues_and_reports_recorded_range(
    may_mount: None, url: str, tmp_path: Path, lost: str, message: str
) -> None:
    done = run_in_namespace(SCRIPT, LOST=lost, URL=url, COPIES=str(tmp_path))
    result = json.loads(done.stdout)
    assert done.returncode == 0 and result["duration"] > 5.5
    expected = message.replace("HELD", r"the session is recorded up to 00:00:0\d").replace("LOST", "are not recorded")
    (line,) = [line for line in done.stderr.splitlines() if "recording: " in line]
    assert re.fullmatch(f"cockpit: recording: {expected}", line)
    if lost == "unmounted":
        assert [*tmp_path.iterdir()] == []
    else:
        assert 0 < completed(tmp_path / "s.cockpit") < result["completed"]


def test_file_system_hang_of_seconds_loses_no_events(may_mount: None, url: str, tmp_path: Path) -> None:
    """Writers to a frozen file system block in the kernel. The run continues, and the recording is complete once the
    file system is thawed, after the end of the run."""
    done = run_in_namespace(SCRIPT, LOST="frozen", URL=url, COPIES=str(tmp_path))
    result = json.loads(done.stdout)
    assert done.returncode == 0 and result["duration"] > 5.5, done.stderr
    assert "recording: " not in done.stderr
    assert completed(tmp_path / "s.cockpit") == result["completed"]


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def start_recording(path: Path) -> tuple[RecordingWriter, list[AnyEvent]]:
    """Start a recording with its first events on the disk; return it with the remaining events."""
    recorder, events = RecordingWriter(path), list(small_session())
    recorder.record(events[:50])
    until(lambda: Path(f"{path}-wal").stat().st_size > 0 and stored_events(path) == 50)
    return recorder, events[50:]


def stored_events(path: Path) -> int:
    database = sqlite3.connect(path)
    found = int(database.execute("SELECT count(*) FROM events").fetchone()[0])
    database.close()
    return found


def test_stalled_disk_is_reported_until_it_responds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "STALLED", 0.2)
    path = tmp_path / "s.cockpit"
    recorder, others = start_recording(path)
    lock = sqlite3.connect(path, isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    recorder.record(others)
    until(lambda: recorder.trouble.startswith("s.cockpit: the disk does not respond; the session is recorded up to "))
    lock.execute("ROLLBACK")
    lock.close()
    until(lambda: recorder.trouble == "")
    recorder.close()
    assert recorder.trouble == ""
    with Recording(path) as recording:
        assert list(recording.events()) == list(small_session())


def test_moved_file_is_reported_immediately(tmp_path: Path) -> None:
    recorder, others = start_recording(tmp_path / "s.cockpit")
    (tmp_path / "s.cockpit").rename(tmp_path / "t.cockpit")
    recorder.record(others)
    until(lambda: "is gone" in recorder.trouble)
    recorder.close()
    assert "is gone" in recorder.trouble
