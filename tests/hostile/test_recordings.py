"""Malicious recordings: every command has bounded time and memory, and prints one line per problem."""

import os
import resource
import shutil
import sqlite3
import zlib
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from cockpit.cli.study_folder import sessions_of
from cockpit.files import write_private
from cockpit.model.errors import RecordingError, UsageError
from cockpit.recording import baselines, database, library
from cockpit.recording.packing import compressed
from cockpit.recording.reader import Recording
from cockpit.study.journal import FILE, FolderLock, Journal, LockRole, read_journal, write_journal
from tests.commands import FORKS, cockpit
from tests.data import data_of
from tests.hostile import recordings as alterations
from tests.recording.test_pages import record_pages, same_events
from tests.session.events import small_session

DATA = data_of(__file__)

LIMIT = (512 << 20, 512 << 20)
INTACT = Path(__file__).parents[1] / "recordings" / "two-hosts.cockpit"
# Altered recordings. Development machines can test many more.
FILES = int(os.environ.get("COCKPIT_FUZZ_FILES", "4"))


def test_altered_recordings_need_at_most_512_mib_and_5_s(tmp_path: Path) -> None:
    found, sender = FORKS.Pipe(duplex=False)
    process = FORKS.Process(target=alterations.fuzz, args=(INTACT, tmp_path, FILES, LIMIT, sender))
    process.start()
    sender.close()
    assert [(seed, problem) for seed in range(FILES) if (problem := found.recv())] == []
    process.join()
    found.close()


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recorded") / "whole.cockpit"
    with pytest.MonkeyPatch.context() as patch:
        record_pages(path, list(small_session()), patch)
    return path


@pytest.fixture
def intact(recorded: Path, tmp_path: Path) -> Path:
    """A copy of the recording for the test to alter."""
    return Path(shutil.copy(recorded, tmp_path))


def execute_sql(path: Path, *statements: str) -> Path:
    database = sqlite3.connect(path)
    for statement in statements:
        database.execute(statement)
    database.commit()
    database.close()
    return path


FOREIGN = DATA["foreign"]


@pytest.mark.parametrize("message", FOREIGN)
def test_foreign_schema_is_refused(intact: Path, message: str) -> None:
    execute_sql(intact, *FOREIGN[message])
    assert library.recording_info(intact).problem.startswith("cannot be read as a recording: ")
    with pytest.raises(RecordingError, match=f"cannot be read as a recording.*{message}"):
        Recording(intact)


def bomb_of_zlib(path: Path) -> None:
    bomb = alterations.zlib_bomb(50 << 20, b"", b"[").hex()
    execute_sql(path, f"UPDATE events SET body = x'{bomb}' WHERE kind = 'note'")
    alterations.seal(path)


def bomb_of_lzma(path: Path) -> None:
    blob = zlib.crc32(b"").to_bytes(4, "little") + alterations.zeros(80 << 20)
    columns = ", ".join(f"{column} = x'{blob.hex()}'" for column in ("events", "totals", "series", "state"))
    execute_sql(path, f"UPDATE pages SET {columns} WHERE first = (SELECT max(first) FROM pages)")


def values_without_end(path: Path) -> None:
    blob = compressed(b"\x92\xdd" + (7 << 20).to_bytes(4, "big") + b"\xa0" * (7 << 20)).hex()
    execute_sql(
        path, f"UPDATE pages SET series = x'{blob}', events = x'{blob}'", "UPDATE pages SET grown = '{\"seconds\":70}'"
    )
    alterations.seal(path)


def deep_nesting(path: Path) -> None:
    deep = '{"event":"note","t":1,"text":"x","odd":' + "[" * 200_000 + "]" * 200_000 + "}"
    execute_sql(
        path, f"UPDATE events SET body = '{deep}' WHERE kind = 'note'", "UPDATE pages SET grown = '" + "[" * 9999 + "'"
    )
    alterations.seal(path)


@pytest.mark.parametrize("attack", [bomb_of_zlib, bomb_of_lzma, values_without_end, deep_nesting])
def test_decompression_bomb_is_skipped_and_reported(intact: Path, attack: Callable[[Path], None]) -> None:
    attack(intact)
    for command in (["report", "--format", "html"], ["export", "-o", str(intact.with_suffix(".jsonl"))]):
        completed = cockpit(*command, intact, before=partial(resource.setrlimit, resource.RLIMIT_AS, LIMIT))
        assert completed.returncode in (0, 2, 99), (command, completed.stderr)
        lines = completed.stderr.splitlines()
        assert all(line.startswith("cockpit: ") and "whole.cockpit" in line for line in lines), completed.stderr
        # Damage is found only in what is read; an export reads everything.
        assert lines or command[0] != "export"


def test_endless_query_is_interrupted(intact: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "DEADLINE", 0.2)
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
    with closing(database.opened(intact)) as opened, pytest.raises(sqlite3.OperationalError, match="interrupted"):
        opened.execute(endless).fetchone()


def test_rollback_journal_is_not_applied(intact: Path) -> None:
    """A journal can name any file, which SQLite would delete."""
    victim = intact.with_name("victim")
    victim.write_text("precious")
    name = str(victim).encode()
    head = bytes.fromhex("d9d505f920a163d7") + bytes(4) + b"\0\0\0\1" + b"\0\0\0\1" + b"\0\0\2\0" + b"\0\0\4\0"
    tail = len(name).to_bytes(4, "big") + sum(name).to_bytes(4, "big") + bytes.fromhex("d9d505f920a163d7")
    journal = intact.with_name(f"{intact.name}-journal")
    journal.write_bytes(head.ljust(512, b"\0") + (0x40000000 // 1024 + 1).to_bytes(4, "big") + name + tail)
    before = intact.read_bytes()
    with Recording(intact) as recording:
        assert same_events(recording.events(), small_session())
        with pytest.raises(RecordingError, match="the file has a rollback journal"):
            recording.annotate(1.0, "x")
    library.recording_info(intact)
    assert victim.read_text() == "precious" and journal.exists() and intact.read_bytes() == before


def test_damaged_files_do_not_break_lists(intact: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "kept"
    folder.mkdir()
    monkeypatch.setattr(library, "folder", lambda: folder)
    shutil.copy(intact, folder / "good.cockpit")
    for message, statements in FOREIGN.items():
        execute_sql(Path(shutil.copy(intact, folder / f"{message}.cockpit")), *statements)
    execute_sql(
        Path(shutil.copy(intact, folder / "types.cockpit")),
        "UPDATE runs SET rate = 'fast', p99_ms = x'00', failed = 'no'",
        "UPDATE pages SET end = 'late'",
    )
    bomb = alterations.zlib_bomb(50 << 20, b"", b"[").hex()
    alterations.seal(
        execute_sql(Path(shutil.copy(intact, folder / "bomb.cockpit")), f"UPDATE events SET body = x'{bomb}'")
    )
    (folder / "folder.cockpit").mkdir()
    os.mkfifo(folder / "pipe.cockpit")
    (folder / "text.cockpit").write_text("hello")
    (folder / "link.cockpit").symlink_to("link.cockpit")
    listed = {entry.name: entry for entry in library.list_recordings()}
    assert not listed["good"].problem
    assert [name for name, entry in listed.items() if not entry.problem] == ["good", "types"]
    shown = {entry.info.name: entry for entry in library.recent(50)}
    assert shown["good"].rate is not None and shown["types"].rate is None


def test_invalid_or_huge_baseline_and_journal_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baselines, "folder", lambda: tmp_path)
    deep = b"[" * 500_000
    for content in (deep, b'{"name":' + deep, b" " * (20 << 20), b"\xff\xfe", b'{"version": 1e999}'):
        (tmp_path / "b.json").write_bytes(content)
        (tmp_path / FILE).write_bytes(content)
        with pytest.raises(UsageError, match=r"b\.json: "):
            baselines.load("b")
        with pytest.raises(UsageError, match=r"study\.json: "):
            read_journal(tmp_path)


def test_links_in_study_folder_are_not_followed(intact: Path, tmp_path: Path) -> None:
    victim, folder = tmp_path / "victim", tmp_path / "study"
    victim.write_text("precious")
    folder.mkdir()
    for name in (FILE, "lock", "result.txt"):
        (folder / name).symlink_to(victim)
    write_journal(folder, Journal(name="x", fingerprint="y"))
    with pytest.raises(UsageError, match="cannot be written"):
        FolderLock(folder).acquire(LockRole.STUDY)
    write_private(folder / "result.txt", b"done\n")
    assert victim.read_text() == "precious" and not (folder / FILE).is_symlink()
    assert (folder / "result.txt").read_text() == "done\n"
    shutil.copy(intact, folder / "1.cockpit")
    (folder / "2.cockpit").symlink_to(intact)
    (folder / "²³.cockpit").write_text("x")
    assert len(sessions_of(folder)) == 1


@pytest.mark.parametrize("name", ["../whole", "..", "/etc/passwd", "a/../../whole"])
def test_recording_names_cannot_leave_folder(intact: Path, name: str) -> None:
    for operation in (library.delete, lambda entry: library.rename(entry, "new")):
        with pytest.raises(RecordingError, match="no such recording in the library"):
            operation(name)
    with pytest.raises(RecordingError):
        library.rename("whole", name)
