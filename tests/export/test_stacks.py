"""CPU profiles as folded stacks, and as JSON that the schema of speedscope 1.25.0 (MIT) accepts."""

import json
from pathlib import Path

import jsonschema
import pytest

from cockpit.analysis.stacks.merging import segment_stacks
from cockpit.cli import main
from cockpit.model.fold.fold import fold_all
from tests.analysis.profiled import profiled
from tests.report.test_compare import recorded
from tests.session.events import small_session

SCHEMA = json.loads(Path(__file__).with_name("speedscope.schema.json").read_text())


@pytest.mark.parametrize("hostile", [False, True], ids=["apache", "hostile"])
def test_stacks_are_exported_with_their_samples(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], hostile: bool
) -> None:
    state = fold_all(profiled(hostile))
    expected = [segment_stacks(state, "web1", segment) for segment in state.segments]
    file = str(recorded(tmp_path / "a.cockpit", list(profiled(hostile))))
    assert main(["export", file, "--format", "folded"]) == 0
    found: list[dict[str, int]] = [{}, {}]
    for line in capsys.readouterr().out.splitlines():
        stack, _, samples = line.rpartition(" ")
        place, _, stack = stack.partition(";")
        found[int(place.removeprefix("web1 segment ")) - 1][stack] = int(samples)
    assert found == expected
    assert main(["export", f"{file}#1", "--format", "speedscope"]) == 0
    page = json.loads(capsys.readouterr().out)
    jsonschema.validate(page, SCHEMA)
    names = [frame["name"] for frame in page["shared"]["frames"]]
    assert len(names) == len(set(names))
    for profile, stacks in zip(page["profiles"], expected, strict=True):
        rows = zip(profile["samples"], profile["weights"], strict=True)
        assert {";".join(names[frame] for frame in frames): weight for frames, weight in rows} == stacks
        assert profile["endValue"] == sum(stacks.values())


def test_a_recording_without_profiles_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = recorded(tmp_path / "a.cockpit", list(small_session()))
    assert main(["export", str(file), "--format", "folded"]) == 2
    assert "no CPU profile in this recording" in capsys.readouterr().err
    file = recorded(tmp_path / "b.cockpit", list(profiled()))
    assert main(["export", f"{file}#7", "--format", "speedscope"]) == 2
