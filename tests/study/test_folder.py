"""The folder of a study: selection, continuation, locking and the journal."""

from argparse import Namespace
from pathlib import Path

import pytest
from msgspec.structs import replace

from cockpit.cli.study_folder import RESULTS, STUDIES, StudyFolder, open_folder, sessions_of
from cockpit.model.errors import UsageError
from cockpit.recording.writer import RecordingWriter
from cockpit.study.journal import FolderLock, Journal, LockRole, read_journal, write_journal
from tests.study.sessions import STUDY

OTHER = replace(STUDY, rounds=9)
JOURNAL = Journal(name="mpm", fingerprint=STUDY.fingerprint, originals={"K": "5"})


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def place_for(study: object = STUDY, **flags: object) -> StudyFolder:
    """Open the place for these flags, and release its lock immediately."""
    given: dict[str, object] = {"output": None, "resume": False, "fresh": False, **flags}
    place = open_folder(Namespace(**given), "mpm", study)  # type: ignore[arg-type]
    place.lock.release()
    return place


def leave_journal(folder: Path, **values: object) -> None:
    """Write a journal into the folder, as a study of STUDY leaves it."""
    folder.mkdir(parents=True, exist_ok=True)
    written: dict[str, object] = {"name": "mpm", "fingerprint": STUDY.fingerprint, **values}
    write_journal(folder, Journal(**written))  # type: ignore[arg-type]


def test_each_study_has_its_own_folder() -> None:
    first = place_for()
    assert (first.path, first.recording.name) == (STUDIES / "mpm-full-1", "1.cockpit")
    assert place_for().path == first.path, "no study was started there"
    leave_journal(first.path, finished=True)
    assert place_for().path == STUDIES / "mpm-full-2"


def test_unfinished_study_is_continued(capsys: pytest.CaptureFixture[str]) -> None:
    leave_journal(STUDIES / "mpm-full-3", originals={"K": "5"}, touched=True)
    place = place_for()
    assert place.path == STUDIES / "mpm-full-3" and place.journal.touched and place.left is None
    assert "continuing the unfinished study" in capsys.readouterr().err
    assert place_for(resume=True).path == place.path


def test_changed_plan_gets_new_folder_and_rolls_back_old_study() -> None:
    leave_journal(STUDIES / "mpm-full-1", originals={"K": "5"}, touched=True)
    place = place_for(OTHER)
    assert (place.path, place.left) == (STUDIES / "mpm-full-2", STUDIES / "mpm-full-1")
    assert not place.journal.touched


def test_unusable_folders_are_refused() -> None:
    with pytest.raises(UsageError, match="no unfinished study of this profile; leave out --resume"):
        place_for(resume=True)
    folder = Path("out")
    leave_journal(folder)
    with pytest.raises(UsageError, match="another plan; --fresh restores its settings"):
        place_for(OTHER, output=folder)
    leave_journal(folder, finished=True)
    with pytest.raises(UsageError, match="already contains a study"):
        place_for(output=folder)
    (folder / "study.json").write_text("{")
    with pytest.raises(UsageError, match="invalid journal"):
        place_for(output=folder)


def test_fresh_study_moves_old_recordings_aside() -> None:
    folder = Path("out")
    leave_journal(folder, originals={"K": "5"}, touched=True)
    for name in ("1.cockpit", *RESULTS):
        (folder / name).write_text("x")
    (folder / "before-2").mkdir()
    place = place_for(OTHER, output=folder, fresh=True)
    assert place.recording == folder / "1.cockpit" and not place.recording.exists()
    assert {path.name for path in (folder / "before-1").iterdir()} == {"1.cockpit", *RESULTS}
    assert place.journal.touched, "the rollback of its settings is still pending"


def test_folder_is_locked_by_a_single_study() -> None:
    folder = Path("out")
    folder.mkdir()
    lock = FolderLock(folder)
    assert lock.acquire(LockRole.STUDY) is None
    with pytest.raises(UsageError, match="in use by a study, process "):
        place_for(output=folder)
    lock.release()
    place_for(output=folder)


def test_journal_round_trip() -> None:
    Path("out").mkdir()
    journal = Journal(name="x", fingerprint="f", originals={"K": None, "L": "a\nb"}, touched=True)
    write_journal(Path("out"), journal)
    assert read_journal(Path("out")) == journal
    assert Path("out/study.json").stat().st_mode & 0o777 == 0o600
    assert read_journal(Path("elsewhere")) is None


def test_empty_recording_is_skipped(capsys: pytest.CaptureFixture[str]) -> None:
    Path("out").mkdir()
    RecordingWriter(Path("out/1.cockpit")).close()
    assert sessions_of(Path("out")) == []
    assert "left out: out/1.cockpit: has no events" in capsys.readouterr().err


def test_forged_or_edited_journal_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "theirs"))
    write_journal(tmp_path, replace(JOURNAL, touched=True))
    assert read_journal(tmp_path) == replace(JOURNAL, touched=True)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "ours"))
    with pytest.raises(UsageError, match="was not written by this user's cockpit"):
        read_journal(tmp_path)
    write_journal(tmp_path, replace(JOURNAL, touched=True))
    file = tmp_path / "study.json"
    file.write_text(file.read_text().replace(JOURNAL.name, "other"))
    with pytest.raises(UsageError, match="was not written by this user's cockpit"):
        read_journal(tmp_path)
    assert (tmp_path / "ours/webcockpit/journal.key").stat().st_mode & 0o777 == 0o600
