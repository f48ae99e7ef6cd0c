"""Studies of the demo's web server: completed, rejected, interrupted, killed and continued."""

import asyncio
import csv
import json
import signal

from cockpit.cli.study_folder import RESULTS, sessions_of
from cockpit.model.fold.fold import fold_all
from cockpit.recording.reader import Recording
from tests.cli.terminals import ForkedCommand
from tests.study.conftest import DEADLINE, DemoStudy
from tests.waiting import until

# Long enough to be killed during a run, short enough to be repeated.
SLOW = 'duration = "2s"\nrate = 20\nrounds = 1\nvariants = ["few", "more"]'

# A single variant, so that nothing is compared; the run does not end before it is interrupted.
ALONE = 'duration = "10m"\nrate = 20\nrounds = 1\nvariants = ["more"]'
QUICK = 'requests = 40\nconcurrency = 2\nrounds = 1\nvariants = ["more"]'


async def until_second_variant(command: ForkedCommand) -> None:
    """Wait until the second variant's value is active and its first run has started."""
    await until(lambda: command.poll() is not None or " · more · run 1" in command.err.read_text(), DEADLINE)
    assert command.poll() is None, "the study ended"


async def test_study_runs_from_plan_to_verdicts(demo_study: DemoStudy) -> None:
    demo_study.write()
    code, plan, _ = await demo_study.run("--dry-run", "--seed", "7")
    assert code == 0 and "2 rounds, 3 variants, seed 7: " in plan and "  round 2 " in plan
    assert "minimum detectable effect on rate: unknown until 2 rounds are done" in plan
    assert not demo_study.folder.exists() and demo_study.is_original()

    code, out, err = await demo_study.run("--json", "--seed", "7")
    assert code in (0, 4), err
    result = json.loads(out)
    assert (result["budget"], result["complete_rounds"], result["ended"], result["form"]) == (2, 2, True, "short")
    assert result["seed"] == demo_study.journal().seed == 7
    orders = [[step[0] for step in turn["order"]] for turn in result["rounds"]]
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
    pairs = [(verdict["first"], verdict["other"], verdict["control"]) for verdict in result["verdicts"]]
    assert pairs == [("few", "A/A control", True), ("few", "more", False)]
    assert demo_study.is_original() and not demo_study.journal().touched and demo_study.journal().finished
    assert demo_study.noticed.read_text() == "noticed\n" * 2, "the action before each visit of a variant"
    rows = list(csv.DictReader((demo_study.folder / "runs.csv").read_text().splitlines()))
    failed = [(row["variant"], row["value"]) for row in rows if row["metric"] == "failed"]
    assert failed == [(name, "0") for name in ("few", "few", "A/A control", "A/A control", "more", "more")]
    assert "round 2 of 2 · step 3 of 3 · " in err and "round 2 of 2 done · one test after the last" in err

    (state,) = sessions_of(demo_study.folder)
    reloads = [action for action in state.actions if action.action == "reload MinSpareServers"]
    assert len(state.changes) + len(reloads) == 6 + 1, "a set-up per visit, then the rollback"

    # A finished study is not repeated, a named folder is not overwritten, and the spread is kept.
    assert {path.name for path in demo_study.folder.iterdir()} >= {"1.cockpit", "study.json", *RESULTS}
    assert "already contains a study" in (await demo_study.run())[2]
    # Other load on the machine may have excluded a round.
    spread = "1 earlier A/A control, 1 degrees of freedom" if result["spread"] else "unknown until 2 rounds are done"
    assert spread in (await demo_study.run("--dry-run"))[1]


async def test_rejected_change_ends_study(demo_study: DemoStudy) -> None:
    demo_study.write(more="300", short=QUICK)
    code, _, err = await demo_study.run()
    assert code == 5, err
    assert "takes a whole number" in err
    (state,) = sessions_of(demo_study.folder)
    assert state.changes, "recorded without a run, too"
    assert demo_study.is_original() and not demo_study.journal().touched and not demo_study.journal().finished


async def test_interrupted_study_rolls_settings_back(demo_study: DemoStudy) -> None:
    demo_study.write(short=ALONE)
    with demo_study.start() as command:
        await until(lambda: demo_study.has_value("7"), DEADLINE)
        command.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(command.wait, DEADLINE) == 130
    assert demo_study.is_original() and not demo_study.journal().touched and not demo_study.journal().finished


async def test_killed_study_is_rolled_back_and_continued(demo_study: DemoStudy) -> None:
    demo_study.write(short=SLOW)
    with demo_study.start() as command:
        await until_second_variant(command)
        assert demo_study.has_value("7")
    await until(demo_study.is_original, DEADLINE)
    # The end of the restorer's rollback.
    await until(lambda: not demo_study.journal().touched, DEADLINE)

    seed = demo_study.journal().seed
    assert f"the unfinished study has seed {seed}" in (await demo_study.run("--seed", "1000001"))[2]
    code, out, err = await demo_study.run("--json")
    assert code in (0, 4), err
    assert "continuing the unfinished study" in err and demo_study.is_original()
    result = json.loads(out)
    assert (result["complete_rounds"], result["seed"], len(result["rounds"])) == (1, seed, 1)
    sessions = {run["session"] for cell in result["cells"] for run in cell["runs"] if run["counted"]}
    assert 2 in sessions and sorted(len(cell["runs"]) for cell in result["cells"]) == [1, 1, 1]
    done = [step[0] for step in result["rounds"][0]["order"]]
    by_variant = {cell["variant"]: cell["runs"][0]["session"] for cell in result["cells"]}
    assert [by_variant[name] for name in done] == sorted(by_variant.values()), "the order is the same"


async def test_study_killed_with_restorer_is_rolled_back_at_next_start(demo_study: DemoStudy) -> None:
    demo_study.write(short=ALONE)
    with demo_study.start() as command:
        await until_second_variant(command)
        demo_study.restorer(command.pid).kill()
    assert demo_study.journal().touched

    demo_study.write(rule="runs = 2", short=QUICK)
    code, _, err = await demo_study.run()
    assert code == 2 and "contains an unfinished study with another plan; --fresh" in err
    code, _, err = await demo_study.run("--fresh")
    assert code == 0, err
    assert "restoring the settings of a killed study" in err
    assert demo_study.is_original() and demo_study.journal().originals == {"MinSpareServers": "5"}
    with Recording(demo_study.folder / "restored-1.cockpit") as recording:
        (change,) = fold_all(recording.events()).changes
    assert [(setting.knob, setting.new) for setting in change.settings] == [("MinSpareServers", "5")]
