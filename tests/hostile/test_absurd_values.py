"""Recordings with permitted but absurd values: no other file suffers, the cost is bounded by the size of the file."""

import datetime as dt
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from random import Random
from unittest.mock import patch

import pytest

from cockpit.analysis.timeline import Timeline, timeline
from cockpit.analysis.verdicts import segments as segment_verdicts
from cockpit.analysis.verdicts.segments import verdicts
from cockpit.cli import main, open_recording
from cockpit.model import events as ev
from cockpit.model.errors import RecordingError
from cockpit.model.fold.fold import fold_all
from cockpit.model.knobs import Setting
from cockpit.model.load.plan import LoadPlan
from cockpit.model.tick import Tick
from cockpit.recording import library
from cockpit.recording.index import Rows
from cockpit.recording.reader import Recording
from cockpit.recording.schema import note_row, to_row
from cockpit.recording.validity import MAX_LANDMARKS, MAX_LEVELS, MAX_NUMEROUS
from cockpit.tui.start.choices import StartChoice, Widths, row
from tests.hostile.recordings import seal

INTACT = Path(__file__).parents[1] / "recordings" / "two-hosts.cockpit"
START = ev.SessionStarted(t=0, wall=1.7e9, version="0", name="x")
RUN = ev.RunStarted(t=0.0, run=1, plan=LoadPlan(url="http://web1/", concurrency=1, duration=10.0))
LAST = ev.SessionEnded(t=300.0)
STATEMENTS = {
    "time of an event": "UPDATE events SET t = {0} WHERE seq = (SELECT max(seq) FROM events)",
    "end of a page": "UPDATE pages SET end = {0}",
    "metrics": "UPDATE runs SET failed = {0}, rate = {0}, p99_ms = {0}",
    "times of changes": "UPDATE changes SET begun = {0}, label = {0}, outcome = {0}",
}


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a library with one intact recording."""
    folder = tmp_path / "kept"
    folder.mkdir()
    monkeypatch.setattr(library, "folder", lambda: folder)
    shutil.copy(INTACT, folder / "good.cockpit")
    return folder


def absurd(path: Path, *statements: str, events: Iterable[ev.AnyEvent] = (), notes: int = 0) -> Path:
    """A copy of the intact recording after these statements, or with these events instead of its own."""
    shutil.copy(INTACT, path)
    with sqlite3.connect(path) as database:
        for statement in statements:
            database.execute(statement)
        rows = [to_row(number, event) for number, event in enumerate(events, 1)]
        if rows:
            for table in ("events", "pages", "parts", "notes", "runs", "changes", "markers", "seconds"):
                database.execute(f"DELETE FROM {table}")
        database.executemany("INSERT INTO events VALUES (?,?,?,?,?)", rows)
        note = note_row(ev.Note(t=1.0, text="n"), 1.7e9)
        database.executemany("INSERT INTO notes VALUES (?,?,?,?)", [note] * notes)
    database.close()
    if statements:
        seal(path)
    return path


@pytest.mark.parametrize("value", ["9e999", "-9e999", "1e300", "9223372036854775807", "'x'", "x'ff'"])
def test_absurd_summaries_hide_no_other_recording(kept: Path, capsys: pytest.CaptureFixture[str], value: str) -> None:
    for name, statement in STATEMENTS.items():
        absurd(kept / f"{name}.cockpit", f"{statement.replace('UPDATE', 'UPDATE OR IGNORE')}".format(value))
    assert main(["recordings", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + len(STATEMENTS) and any(line.startswith("good ") for line in lines)
    for entry in library.recent(50):
        offer = StartChoice(choice=None, recent=entry)  # type: ignore[arg-type]
        assert row(offer, Widths(20, 20, 12, 16), 120, dt.datetime(2026, 1, 1))


@pytest.mark.parametrize("form", ["csv", "openmetrics", "parquet"])
def test_export_of_a_tick_after_three_years_is_as_small_as_its_data(tmp_path: Path, form: str) -> None:
    ticks = (Tick(t=t + 1.0, run=1, worker=0, start=t) for t in (0.0, 99_999_990.0))
    path = absurd(tmp_path / "late.cockpit", events=[START, RUN, *ticks])
    begun = time.process_time()
    assert main(["export", str(path), "--format", form, "-o", str(tmp_path / "out")]) == 0
    assert time.process_time() - begun < 1.0 and (tmp_path / "out").stat().st_size < 50_000


def change(letter: str, begun: float, over: float) -> Iterable[ev.AnyEvent]:
    setting = Setting(knob="k", old="1", new=letter)
    yield ev.ChangeBegun(t=begun, change=letter, host="web1", settings=(setting,))
    yield ev.ChangeEnded(t=over, change=letter, outcome="applied")


def changes(count: int) -> Iterable[ev.AnyEvent]:
    return (event for number in range(count) for event in change(f"C{number}", number / 100, number / 100))


MANY: dict[str, Callable[[int], Iterable[ev.AnyEvent]]] = {
    "note": lambda count: (ev.Note(t=1.0, text="n") for _ in range(count)),
    "change_begun": changes,
    "run_started": lambda count: (RUN for _ in range(count)),
    "round_window": lambda count: (
        ev.RoundWindow(t=1.0, number=1, round=1, side="before", until=2.0) for _ in range(count)
    ),
}


@pytest.mark.parametrize("kind", [*MANY, "note in the table"])
def test_too_many_events_of_a_kind_are_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    path, count = tmp_path / "many.cockpit", 4 * MAX_LANDMARKS
    if kind in MANY:
        absurd(path, events=[START, *MANY[kind](count), LAST])
    else:
        absurd(path, events=[START, LAST], notes=count)
    for command in (["report"], ["check"], ["export", "--format", "csv"]):
        assert main([*command, str(path)]) == 2
        error = capsys.readouterr().err
        assert f"has {count} events '{kind.split()[0]}', more than {MAX_LANDMARKS}" in error and error.count("\n") == 1


@pytest.mark.parametrize(("kind", "most"), [("knob_read", MAX_NUMEROUS), ("capacity_level", MAX_LEVELS)])
def test_readings_and_levels_have_limits_of_their_own(kind: str, most: int) -> None:
    count = "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT {}) SELECT n, 0, '{}' FROM n"
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript("CREATE TABLE events (seq, t, kind); CREATE TABLE notes (t)")
        database.execute(f"INSERT INTO events {count.format(most, kind)}")
        Rows(database).check_counts()
        database.execute(f"INSERT INTO events {count.format(1, kind)}")
        with pytest.raises(RecordingError, match=f"has {most + 1} events '{kind}', more than {most}"):
            Rows(database).check_counts()


def test_verdicts_need_one_pass_over_many_changes() -> None:
    state = fold_all((START, RUN, *changes(100)))
    with (
        patch.object(segment_verdicts, "change_steps", wraps=segment_verdicts.change_steps) as passes,
        patch.object(Timeline, "of", wraps=Timeline.of) as cuts,
    ):
        assert verdicts(state)
    assert (passes.call_count, cuts.call_count) == (1, 1)


def test_timeline_equals_a_pass_over_all_changes() -> None:
    chance = Random(1)
    numbers = [chance.randrange(100) for _ in range(200)]
    spans = sorted((begun, begun + chance.choice([0, 1, 50])) for begun in numbers)
    events = [event for number, (begun, over) in enumerate(spans) for event in change(f"C{number}", begun, over)]
    known = timeline(fold_all((START, *sorted(events, key=lambda event: event.t))))
    for start, end in zip(numbers, reversed(numbers), strict=True):
        within = sorted((begun, over) for begun, over in spans if begun < end and over > start)
        assert sorted(known.changing_within(start, end)) == within
        assert known.switched(start, end) == any(start < over <= end for _, over in spans)


def test_command_on_a_recording_has_a_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(open_recording, "_SECONDS", 0.05)
    monkeypatch.setattr(open_recording, "_SECONDS_PER_MIB", 0.05)

    def endless(_: Recording) -> None:
        while True:
            pass

    monkeypatch.setattr("cockpit.cli.commands.report.last_state", endless)
    assert main(["report", str(INTACT)]) == 2
    assert "needs more than 0 s of CPU time" in capsys.readouterr().err


def test_event_with_another_time_or_kind_than_its_row_is_left_out(tmp_path: Path) -> None:
    path = absurd(tmp_path / "lie.cockpit", "UPDATE events SET kind = 'tick', t = 2.0 WHERE kind = 'run_started'")
    with Recording(path) as recording:
        assert not any(isinstance(event, ev.RunStarted) for event in recording.events())
        assert "another time or kind than its row" in recording.damage
