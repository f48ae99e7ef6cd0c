"""Studies of the demo's web server: to their end, refused, interrupted, killed and gone on with."""

from __future__ import annotations

import asyncio
import csv
import json
import signal

import pytest

from cockpit.cli.study_folder import RESULTS, sessions_of
from cockpit.model.fold import fold_all
from cockpit.recording.reader import Recording
from tests.study.conftest import DEADLINE, Studied, ended, kill, until

# Long enough to be killed in, short enough to be done again.
SLOW = 'duration = "2s"\nrate = 20\nrounds = 1'

# One variant only, so that nothing is compared; it does not end before it is interrupted.
ALONE = 'duration = "10m"\nrate = 20\nrounds = 1\nvariants = ["more"]'
QUICK = 'requests = 40\nconcurrency = 2\nrounds = 1\nvariants = ["more"]'


async def in_the_other_variant(process: asyncio.subprocess.Process) -> None:
    """Return once the other variant's value is active and its first run has begun."""
    assert process.stderr is not None
    async with asyncio.timeout(DEADLINE):
        while b" \xc2\xb7 more \xc2\xb7 run 1" not in (line := await process.stderr.readline()):
            assert line, "it ended"


async def test_from_the_plan_to_the_verdicts(studied: Studied) -> None:
    studied.write()
    code, plan, _ = await studied.run("--dry-run", "--seed", "7")
    assert code == 0 and "2 rounds, 3 variants, seed 7: " in plan and "  round 2 " in plan
    assert "minimum detectable effect on rate: unknown until 2 rounds are done" in plan
    assert not studied.folder.exists() and studied.as_it_was()

    code, out, err = await studied.run("--json", "--seed", "7")
    assert code in (0, 4), err
    result = json.loads(out)
    assert (result["budget"], result["whole_rounds"], result["ended"], result["form"]) == (2, 2, True, "short")
    assert result["seed"] == studied.journal().seed == 7
    orders = [[step[0] for step in one["order"]] for one in result["rounds"]]
    assert orders[0] == orders[1][::-1] and f"  round 1   {' · '.join(orders[0])}" in plan
    cells = {cell["variant"]: cell for cell in result["cells"]}
    assert list(cells) == ["few", "A/A control", "more"]
    for cell in cells.values():
        assert [(run["round"], run["counted"], run["completed"]) for run in cell["runs"]] == [
            (1, True, 40),
            (2, True, 40),
        ]
        assert cell["metrics"]["failed"] == 0 and cell["metrics"]["observed.pages"] == 0
        assert cell["metrics"]["demo.processes.spawned_per_s"] is not None
    pairs = [(one["first"], one["other"], one["control"]) for one in result["verdicts"]]
    assert pairs == [("few", "A/A control", True), ("few", "more", False)]
    assert studied.as_it_was() and not studied.journal().touched and studied.journal().finished
    rows = list(csv.DictReader((studied.folder / "runs.csv").read_text().splitlines()))
    failed = [(row["variant"], row["value"]) for row in rows if row["metric"] == "failed"]
    assert failed == [(name, "0") for name in ("few", "few", "A/A control", "A/A control", "more", "more")]
    assert "round 2 of 2 · step 3 of 3 · " in err and "round 2 of 2 done · one test after the last" in err

    (state,) = sessions_of(studied.folder)
    reloads = [action for action in state.actions if action.action == "reload MinSpareServers"]
    assert len(state.changes) + len(reloads) == 6 + 1, "each visit is set up by itself; then the settings are put back"

    # A finished study is not run again, and a folder that is named is not written over; its spread is remembered.
    assert {path.name for path in studied.folder.iterdir()} >= {"1.cockpit", "study.json", *RESULTS}
    assert "holds a study already" in (await studied.run())[2]
    assert "1 earlier A/A control, 1 degrees of freedom" in (await studied.run("--dry-run"))[1]


async def test_a_change_that_is_undone_ends_it(studied: Studied) -> None:
    studied.write(more="300")
    code, _, err = await studied.run()
    assert code == 5, err
    assert "takes a whole number" in err
    assert studied.as_it_was() and not studied.journal().touched and not studied.journal().finished


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_interrupted_it_puts_back(studied: Studied, number: signal.Signals) -> None:
    studied.write(short=ALONE)
    process = await studied.start()
    await until(lambda: studied.set_to("7"), "the variant's value")
    process.send_signal(number)
    code, _, err = await ended(process)
    assert code == 130, err
    assert studied.as_it_was() and not studied.journal().touched and not studied.journal().finished


async def test_killed_its_settings_come_back_and_it_goes_on(studied: Studied) -> None:
    studied.write(short=SLOW)
    process = await studied.start()
    await in_the_other_variant(process)
    assert studied.set_to("7")
    kill(process)
    await ended(process)
    await until(studied.as_it_was, "the original settings")
    await until(lambda: not studied.journal().touched, "the keeper's word that all is back")

    seed = studied.journal().seed
    assert f"its unfinished study has seed {seed}" in (await studied.run("--seed", "1000001"))[2]
    code, out, err = await studied.run("--json")
    assert code in (0, 4), err
    assert "continuing the unfinished study" in err and studied.as_it_was()
    result = json.loads(out)
    assert (result["whole_rounds"], result["seed"], len(result["rounds"])) == (1, seed, 1)
    sessions = {run["session"] for cell in result["cells"] for run in cell["runs"] if run["counted"]}
    assert 2 in sessions and sorted(len(cell["runs"]) for cell in result["cells"]) == [1, 1, 1]
    done = [step[0] for step in result["rounds"][0]["order"]]
    by_variant = {cell["variant"]: cell["runs"][0]["session"] for cell in result["cells"]}
    assert [by_variant[name] for name in done] == sorted(by_variant.values()), "in the same order"


async def test_killed_with_its_keeper_its_settings_come_back_at_the_next_start(studied: Studied) -> None:
    studied.write(short=ALONE)
    process = await studied.start()
    await in_the_other_variant(process)
    studied.keeper(process.pid).kill()
    kill(process)
    await ended(process)
    assert studied.journal().touched

    studied.write(rule="runs = 2", short=QUICK)
    code, _, err = await studied.run()
    assert code == 2 and "holds an unfinished study with another plan; --fresh" in err
    code, _, err = await studied.run("--fresh")
    assert code == 0, err
    assert "restoring the settings of a killed study" in err
    assert studied.as_it_was() and studied.journal().originals == {"MinSpareServers": "5"}
    with Recording(studied.folder / "restored-1.cockpit") as recording:
        (change,) = fold_all(recording.events()).changes
    assert [(setting.knob, setting.new) for setting in change.settings] == [("MinSpareServers", "5")]
