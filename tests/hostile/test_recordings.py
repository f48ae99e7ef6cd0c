"""A recording that somebody made to hurt: every command ends in little time and memory, with one line per problem."""

from __future__ import annotations

import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from cockpit.model.errors import RecordingError, UsageError
from cockpit.recording import library
from cockpit.recording.packing import compressed
from cockpit.recording.reader import Recording
from cockpit.report import baselines
from cockpit.study.journal import FILE, FolderLock, Journal, LockRole, read_journal, write_journal
from tests.commands import cockpit
from tests.hostile import recordings as made
from tests.recording.test_pages import same_events, settled
from tests.session.events import small_session

ROOT = Path(__file__).parents[2]
WHOLE = ROOT / "tests" / "recordings" / "two-hosts.cockpit"
# Each runs in a process of its own; a development machine can take many more.
PROCESSES, FILES = 2, int(os.environ.get("COCKPIT_FUZZ_FILES", "16"))


def fuzzed(folder: Path, first: int) -> list[tuple[int, str]]:
    """What a process says of as many altered files, from that seed on."""
    command = [sys.executable, "-m", "tests.hostile.fuzzing", str(WHOLE), str(folder), str(first), str(FILES)]
    environment = {**os.environ, "XDG_STATE_HOME": str(folder / "state"), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=ROOT)
    assert done.returncode == 0, (done.stdout[-200:], done.stderr)
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]


def test_altered_recordings_in_512_mib_and_5_seconds_each(tmp_path: Path) -> None:
    folders = [tmp_path / str(number) for number in range(PROCESSES)]
    for folder in folders:
        folder.mkdir()
    with ThreadPoolExecutor() as pool:
        found = [*pool.map(fuzzed, folders, range(0, 1_000_000 * PROCESSES, 1_000_000))]
    told = [one for some in found for one in some]
    assert len(told) == PROCESSES * FILES
    assert [one for one in told if one[1]] == []


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recorded") / "whole.cockpit"
    with pytest.MonkeyPatch.context() as patch:
        settled(path, list(small_session()), patch)
    return path


@pytest.fixture
def whole(recorded: Path, tmp_path: Path) -> Path:
    """A copy that a test may alter."""
    return Path(shutil.copy(recorded, tmp_path))


def changed(path: Path, *statements: str) -> Path:
    database = sqlite3.connect(path)
    for statement in statements:
        database.execute(statement)
    database.commit()
    database.close()
    return path


def cockpit_in_512_mib(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return cockpit(*arguments, before=partial(resource.setrlimit, resource.RLIMIT_AS, (512 << 20, 512 << 20)))


FOREIGN = {
    "a view": (("DROP TABLE notes", "CREATE VIEW notes AS SELECT 1.0 t, 'x' text, 1.0 wall"), "holds a view 'notes'"),
    "a trigger": (("CREATE TRIGGER x AFTER INSERT ON notes BEGIN DELETE FROM events; END",), "holds a trigger 'x'"),
    "a virtual table": (("DROP TABLE notes", "CREATE VIRTUAL TABLE notes USING fts5(t, text, wall)"), "holds a table"),
    "a generated column": (
        ("DROP TABLE parts", "CREATE TABLE parts (id INTEGER PRIMARY KEY, body AS (zeroblob(900000000)))"),
        "its table 'parts' has other columns",
    ),
    "an index on an expression": (("CREATE INDEX i ON events (abs(t))",), "holds a index 'i'"),
    "a further table": (("CREATE TABLE more (x)",), "holds a table 'more'"),
    "no events": (("DROP TABLE events",), "has no table 'events'"),
}


@pytest.mark.parametrize("what", FOREIGN)
def test_a_schema_that_no_cockpit_writes_is_refused(whole: Path, what: str) -> None:
    statements, words = FOREIGN[what]
    changed(whole, *statements)
    done = cockpit_in_512_mib("report", whole)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1) and words in done.stderr, done.stderr
    assert library.about(whole).problem.startswith("does not read as a recording: ")
    with pytest.raises(RecordingError, match="does not read as a recording"):
        Recording(whole)


def bomb_of_zlib(path: Path) -> None:
    changed(path, f"UPDATE events SET body = x'{zlib.compress(b'[' * (80 << 20)).hex()}' WHERE kind = 'note'")


def bomb_of_lzma(path: Path) -> None:
    blob = zlib.crc32(b"").to_bytes(4, "little") + made.zeros(80 << 20)
    all_of_it = ", ".join(f"{column} = x'{blob.hex()}'" for column in ("events", "totals", "series", "state"))
    changed(path, f"UPDATE pages SET {all_of_it} WHERE first = (SELECT max(first) FROM pages)")


def values_without_end(path: Path) -> None:
    blob = compressed(b"\x92\xdd" + (7 << 20).to_bytes(4, "big") + b"\xa0" * (7 << 20)).hex()
    changed(
        path, f"UPDATE pages SET series = x'{blob}', events = x'{blob}'", "UPDATE pages SET grown = '{\"seconds\":70}'"
    )


def deep_nesting(path: Path) -> None:
    deep = '{"event":"note","t":1,"text":"x","odd":' + "[" * 200_000 + "]" * 200_000 + "}"
    changed(
        path, f"UPDATE events SET body = '{deep}' WHERE kind = 'note'", "UPDATE pages SET grown = '" + "[" * 9999 + "'"
    )


@pytest.mark.parametrize("attack", [bomb_of_zlib, bomb_of_lzma, values_without_end, deep_nesting])
def test_a_bomb_is_left_out_and_said(whole: Path, attack: Callable[[Path], None]) -> None:
    attack(whole)
    for command in (["report", "--format", "html"], ["export", "-o", str(whole.with_suffix(".jsonl"))]):
        done = cockpit_in_512_mib(*command, whole)
        assert done.returncode in (0, 2, 99), (command, done.stderr)
        lines = done.stderr.splitlines()
        assert all(line.startswith("cockpit: ") and "whole.cockpit" in line for line in lines), (command, done.stderr)
        # Only what is read is found damaged; an export reads all.
        assert lines or command[0] != "export"


def test_a_query_without_end_is_interrupted(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cockpit.recording import database

    monkeypatch.setattr(database, "DEADLINE", 0.2)
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
    with database.opened(whole) as database, pytest.raises(sqlite3.OperationalError, match="interrupted"):
        database.execute(endless).fetchone()


def test_a_rollback_journal_is_not_played_back(whole: Path) -> None:
    """It may name any file, which SQLite would then delete."""
    victim = whole.with_name("victim")
    victim.write_text("precious")
    name = str(victim).encode()
    head = bytes.fromhex("d9d505f920a163d7") + bytes(4) + b"\0\0\0\1" + b"\0\0\0\1" + b"\0\0\2\0" + b"\0\0\4\0"
    tail = len(name).to_bytes(4, "big") + sum(name).to_bytes(4, "big") + bytes.fromhex("d9d505f920a163d7")
    journal = whole.with_name(f"{whole.name}-journal")
    journal.write_bytes(head.ljust(512, b"\0") + (0x40000000 // 1024 + 1).to_bytes(4, "big") + name + tail)
    before = whole.read_bytes()
    with Recording(whole) as recording:
        assert same_events(recording.events(), small_session())
        with pytest.raises(RecordingError, match="a rollback journal is beside the file"):
            recording.annotate(1.0, "x")
    library.about(whole)
    assert victim.read_text() == "precious" and journal.exists() and whole.read_bytes() == before


def test_one_bad_file_does_not_break_the_lists(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    monkeypatch.setattr(library, "folder", lambda: kept)
    shutil.copy(whole, kept / "good.cockpit")
    for what, (statements, _) in FOREIGN.items():
        changed(Path(shutil.copy(whole, kept / f"{what}.cockpit")), *statements)
    changed(
        Path(shutil.copy(whole, kept / "types.cockpit")),
        "UPDATE runs SET rate = 'fast', p99_ms = x'00', failed = 'no'",
        "UPDATE pages SET end = 'late'",
    )
    body = zlib.compress(b"[" * (100 << 20)).hex()
    changed(Path(shutil.copy(whole, kept / "bomb.cockpit")), f"UPDATE events SET body = x'{body}'")
    (kept / "folder.cockpit").mkdir()
    os.mkfifo(kept / "pipe.cockpit")
    (kept / "text.cockpit").write_text("hello")
    (kept / "link.cockpit").symlink_to("link.cockpit")
    listed = {one.name: one for one in library.all_kept()}
    assert not listed["good"].problem
    assert [name for name, one in listed.items() if not one.problem] == ["good", "types"]
    shown = {one.kept.name: one for one in library.recent(50)}
    assert shown["good"].rate is not None and shown["types"].rate is None


def test_a_baseline_and_a_journal_that_are_no_json_or_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baselines, "folder", lambda: tmp_path)
    for content in (
        b"[" * 500_000,
        b'{"name":' + b"[" * 500_000,
        b" " * (20 << 20),
        b"\xff\xfe",
        b'{"version": 1e999}',
    ):
        (tmp_path / "b.json").write_bytes(content)
        (tmp_path / FILE).write_bytes(content)
        with pytest.raises(UsageError, match=r"b\.json: "):
            baselines.load("b")
        with pytest.raises(UsageError, match=r"study\.json: "):
            read_journal(tmp_path)


def test_links_in_a_study_folder_are_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    folder = tmp_path / "study"
    folder.mkdir()
    for name in (FILE, "lock"):
        (folder / name).symlink_to(victim)
    write_journal(folder, Journal(name="x", fingerprint="y"))
    with pytest.raises(UsageError, match="cannot be written"):
        FolderLock(folder).take(LockRole.STUDY)
    assert victim.read_text() == "precious" and not (folder / FILE).is_symlink()


def test_results_replace_links_in_a_study_folder(tmp_path: Path) -> None:
    from cockpit.cli.study import _replace

    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "result.txt").symlink_to(victim)
    _replace(tmp_path / "result.txt", "done\n")
    assert victim.read_text() == "precious" and (tmp_path / "result.txt").read_text() == "done\n"


def test_recordings_linked_into_a_study_folder_are_not_its_sessions(whole: Path, tmp_path: Path) -> None:
    from cockpit.cli.study_folder import sessions_of

    folder = tmp_path / "study"
    folder.mkdir()
    shutil.copy(whole, folder / "1.cockpit")
    (folder / "2.cockpit").symlink_to(whole)
    (folder / "²³.cockpit").write_text("x")
    assert len(sessions_of(folder)) == 1


@pytest.mark.parametrize("name", ["../whole", "..", "/etc/passwd", "a/../../whole"])
def test_names_of_recordings_do_not_leave_the_folder(whole: Path, name: str) -> None:
    for act in (library.delete, lambda one: library.rename(one, "new")):
        with pytest.raises(RecordingError, match="no recording of that name"):
            act(name)
    with pytest.raises(RecordingError):
        library.rename("whole", name)
