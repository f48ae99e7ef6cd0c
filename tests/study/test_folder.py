"""Which folder a study goes to, which it goes on in, and who has it."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest
from msgspec.structs import replace

from cockpit.cli.study_folder import RESULTS, STUDIES, Place, open_place, sessions_of
from cockpit.model.errors import UsageError
from cockpit.recording.writer import RecordingWriter
from cockpit.study.journal import FolderLock, Journal, LockRole, read_journal, write_journal
from tests.study.sessions import STUDY

OTHER = replace(STUDY, rounds=9)
JOURNAL = Journal(name="mpm", fingerprint=STUDY.fingerprint, originals={"K": "5"})


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def opened(study: object = STUDY, **flags: object) -> Place:
    """The place as these flags give it; its lock is let go of at once."""
    given: dict[str, object] = {"output": None, "resume": False, "fresh": False, **flags}
    place = open_place(Namespace(**given), "mpm", study)  # type: ignore[arg-type]
    place.lock.release()
    return place


def left(folder: Path, **values: object) -> None:
    """A journal in the folder, as a study of STUDY leaves it."""
    folder.mkdir(parents=True, exist_ok=True)
    written: dict[str, object] = {"name": "mpm", "fingerprint": STUDY.fingerprint, **values}
    write_journal(folder, Journal(**written))  # type: ignore[arg-type]


def test_each_study_has_a_folder_of_its_own() -> None:
    first = opened()
    assert (first.folder, first.recording.name) == (STUDIES / "mpm-full-1", "1.cockpit")
    assert opened().folder == first.folder, "nothing was begun there"
    left(first.folder, finished=True)
    assert opened().folder == STUDIES / "mpm-full-2"


def test_an_unfinished_one_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    left(STUDIES / "mpm-full-3", originals={"K": "5"}, touched=True)
    place = opened()
    assert place.folder == STUDIES / "mpm-full-3" and place.journal.touched and place.left is None
    assert "continuing the unfinished study" in capsys.readouterr().err
    assert opened(resume=True).folder == place.folder


def test_another_plan_begins_anew_and_what_was_left_is_put_back_first() -> None:
    left(STUDIES / "mpm-full-1", originals={"K": "5"}, touched=True)
    place = opened(OTHER)
    assert (place.folder, place.left) == (STUDIES / "mpm-full-2", STUDIES / "mpm-full-1")
    assert not place.journal.touched


def test_what_is_refused() -> None:
    with pytest.raises(UsageError, match="--resume: found no unfinished study"):
        opened(resume=True)
    folder = Path("out")
    left(folder)
    with pytest.raises(UsageError, match="another plan; --fresh restores its settings"):
        opened(OTHER, output=folder)
    left(folder, finished=True)
    with pytest.raises(UsageError, match="holds a study already"):
        opened(output=folder)
    (folder / "study.json").write_text("{")
    with pytest.raises(UsageError, match="invalid journal"):
        opened(output=folder)


def test_anew_in_the_same_folder_sets_the_old_recordings_aside() -> None:
    folder = Path("out")
    left(folder, originals={"K": "5"}, touched=True)
    for name in ("1.cockpit", *RESULTS):
        (folder / name).write_text("x")
    place = opened(OTHER, output=folder, fresh=True)
    assert place.recording == folder / "1.cockpit" and not place.recording.exists()
    assert {path.name for path in (folder / "before-1").iterdir()} == {"1.cockpit", *RESULTS}
    assert place.journal.touched, "its settings are still to be put back"


def test_a_folder_belongs_to_one() -> None:
    folder = Path("out")
    folder.mkdir()
    lock = FolderLock(folder)
    assert lock.take(LockRole.STUDY) is None
    with pytest.raises(UsageError, match="is in use by a study, process "):
        opened(output=folder)
    lock.release()
    opened(output=folder)


def test_a_journal_comes_back_as_it_was_written() -> None:
    Path("out").mkdir()
    journal = Journal(name="x", fingerprint="f", originals={"K": None, "L": "a\nb"}, touched=True)
    write_journal(Path("out"), journal)
    assert read_journal(Path("out")) == journal
    assert Path("out/study.json").stat().st_mode & 0o777 == 0o600
    assert read_journal(Path("elsewhere")) is None


def test_a_recording_with_nothing_in_it_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    Path("out").mkdir()
    RecordingWriter(Path("out/1.cockpit")).close()
    assert sessions_of(Path("out")) == []
    assert "left out: out/1.cockpit: holds no events" in capsys.readouterr().err


def test_a_journal_that_somebody_else_wrote_or_edited_is_not_carried_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    assert (tmp_path / "ours/cockpit/journal.key").stat().st_mode & 0o777 == 0o600
