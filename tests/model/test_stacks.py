"""Folded stacks: limits of their events, the state that keeps them, samples of segments and functions."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from cockpit.analysis.stacks.merging import FunctionSamples, by_function, merged, segment_stacks
from cockpit.model import events as ev
from cockpit.model.fold.fold import fold, fold_all
from cockpit.model.host.samples import HostConfig
from cockpit.model.load.plan import LoadPlan
from cockpit.model.stacks import KEPT_SLICES, MAX_DEPTH, MAX_STACKS, ProfilerChanged, StackSlice, check_slice
from cockpit.model.state import State
from cockpit.recording.reader import Recording, last_state
from cockpit.recording.writer import RecordingWriter

PART = StackSlice(
    t=20.0, start=10.0, host="web1", source="cpu-clock", hz=49, samples=7, stacks={"apache2;main;fork": 4, "apache2": 1}
)
PART = replace(PART, other=2)


@pytest.mark.parametrize(
    "change",
    [
        {"samples": 8},
        {"other": -1, "samples": 4},
        {"stacks": {"apache2;\x1b[2J": 5}},
        {"stacks": {"apache2;a\nb": 5}},
        {"stacks": {"": 5}},
        {"stacks": {"apache2": 0, "b": 5}},
        {"stacks": {";".join("a" * (MAX_DEPTH + 1)): 5}},
        {"stacks": {"a" * 5000: 5}},
        {"stacks": {f"a{at}": 1 for at in range(MAX_STACKS + 1)}, "samples": MAX_STACKS + 3},
        {"stacks": {f"{at:4000}": 1 for at in range(200)}, "samples": 202},
        {"start": 20.0},
        {"hz": 0},
        {"cost": -1.0},
        {"cost": float("nan")},
    ],
)
def test_invalid_slices_are_refused(change: dict[str, object]) -> None:
    check_slice(PART)
    with pytest.raises(ValueError, match="slice"):
        check_slice(replace(PART, **change))


def test_slices_are_recorded_and_survive_a_checkpoint(tmp_path: Path) -> None:
    writer, state = RecordingWriter(tmp_path / "a.cockpit"), State()
    for event in session():
        writer.record([event])
        state = fold(state, event)
        writer.settle(state)
    writer.close()
    with Recording(tmp_path / "a.cockpit") as recording:
        assert last_state(recording) == state
        kept = [event for event in recording.events() if isinstance(event, StackSlice) and event.host == "web1"]
        assert kept == list(state.hosts["web1"].slices)


def test_invalid_slices_are_not_recorded(tmp_path: Path) -> None:
    writer = RecordingWriter(tmp_path / "a.cockpit")
    writer.record([*session(), replace(PART, samples=100)])
    writer.close()
    assert "do not add up" in writer.trouble


def test_only_complete_slices_belong_to_a_segment() -> None:
    state = fold_all(session())
    stacks = segment_stacks(state, "web1", state.segments[0])
    assert stacks == {"apache2;main;fork": 8, "apache2": 2, "[other]": 4}
    assert segment_stacks(state, "unknown", state.segments[0]) == {}
    assert sum(stacks.values()) == sum(part.samples for part in state.hosts["web1"].slices[1:3])


def test_the_state_keeps_the_last_slices() -> None:
    state = fold_all(session())
    for at in range(KEPT_SLICES):
        state = fold(state, replace(PART, t=100.0 + at, start=99.0 + at))
    assert [part.t for part in state.hosts["web1"].slices] == [100.0 + at for at in range(KEPT_SLICES)]


def test_a_recursive_function_counts_once_per_sample() -> None:
    counts = by_function({"php;main;run;run": 3, "php;main": 2, "[other]": 1})
    assert counts["run"] == FunctionSamples(own=3, total=3)
    assert counts["main"] == FunctionSamples(own=2, total=5)
    assert "php" not in counts
    assert sum(count.own for count in counts.values()) == 6
    assert merged([]) == {}


def session() -> list[ev.AnyEvent]:
    """A run from 5 to 40 s with slices of 10 s from 0 s on."""
    plan = LoadPlan(url="http://web1/", concurrency=1, duration=35.0)
    return [
        ev.SessionStarted(t=0.0, wall=1e9, version="1", name="a", hosts=(HostConfig(name="web1"),)),
        ProfilerChanged(t=0.0, host="web1", condition="running"),
        ev.RunStarted(t=5.0, run=1, plan=plan),
        *(replace(PART, t=10.0 * at, start=10.0 * (at - 1)) for at in (1, 2, 3)),
        ev.Tick(t=35.0, run=1, worker=0, start=5.0),
        replace(PART, t=40.0, start=30.0),
        ProfilerChanged(t=40.0, host="web1", condition="failed", detail="perf is missing"),
        ev.Tick(t=39.0, run=1, worker=0, start=35.0),
        ev.RunEnded(t=39.0, run=1, reason="completed"),
        replace(PART, t=50.0, start=40.0, host="unknown"),
    ]
