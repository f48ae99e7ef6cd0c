"""Studies of the demo's web server: to their end, unsteady, refused, interrupted, killed and gone on with."""

from __future__ import annotations

import asyncio
import csv
import json
import signal

import pytest

from cockpit.cli.study_folder import RESULTS
from tests.study.conftest import DEADLINE, Studied, ended, kill, until

# Long enough to be killed in, short enough to be done again.
SLOW = 'duration = "3s"\nconcurrency = 2\nrepeats = 1'

QUICK = 'requests = 40\nconcurrency = 2\nrepeats = 1\narms = ["more"]'


async def in_the_second_arm(process: asyncio.subprocess.Process) -> None:
    """Returns once the second arm's value is in force and its first run is begun."""
    assert process.stderr is not None
    async with asyncio.timeout(DEADLINE):
        while b"round 1 \xc2\xb7 more \xc2\xb7 run 1" not in (line := await process.stderr.readline()):
            assert line, "it ended"


async def test_from_the_plan_to_the_verdicts(studied: Studied) -> None:
    studied.write()
    code, plan, _ = await studied.run("--dry-run")
    assert code == 0 and "4 steps, about" in plan and "round 2 · more" in plan
    assert not studied.folder.exists() and studied.as_it_was()

    code, out, err = await studied.run("--json")
    assert code == 0, err
    result = json.loads(out)
    assert (result["steps"], result["done"], result["steady"], result["form"]) == (4, 4, True, "short")
    cells = {cell["arm"]: cell for cell in result["cells"]}
    assert list(cells) == ["few", "more"]
    for cell in cells.values():
        assert [(run["round"], run["counted"], run["completed"]) for run in cell["runs"]] == [
            (1, True, 40),
            (2, True, 40),
        ]
        assert cell["figures"]["failed"] == 0 and cell["figures"]["look.pages"] == 0
        assert cell["figures"]["demo.processes.births_per_s"] is not None
    assert [(one["first"], one["other"]) for one in result["verdicts"]] == [("few", "more")]
    assert studied.as_it_was() and not studied.journal().touched and studied.journal().finished
    rows = list(csv.DictReader((studied.folder / "runs.csv").read_text().splitlines()))
    failed = [(row["variant"], row["value"]) for row in rows if row["metric"] == "failed"]
    assert failed == [("few", "0"), ("few", "0"), ("more", "0"), ("more", "0")]
    assert "step 4 of 4 · round 2 · more · run 1" in err

    # What is finished is shown again from its recordings, not run again; a folder that is named is not written over.
    assert {path.name for path in studied.folder.iterdir()} >= {"1.cockpit", "study.json", *RESULTS}
    assert "holds a study already" in (await studied.run())[2]


async def test_what_never_settles_says_so(studied: Studied) -> None:
    studied.write(rule="settle = { runs = 2, within = 0.000000001, at_most = 2 }", short=QUICK)
    code, out, err = await studied.run()
    assert code == 4, err
    assert "not steady" in out and studied.as_it_was()


async def test_a_change_that_is_undone_ends_it(studied: Studied) -> None:
    studied.write(more="300")
    code, _, err = await studied.run()
    assert code == 5, err
    assert "takes a whole number" in err
    assert studied.as_it_was() and not studied.journal().touched and not studied.journal().finished


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_interrupted_it_puts_back(studied: Studied, number: signal.Signals) -> None:
    studied.write(short=SLOW)
    process = await studied.start()
    await until(lambda: studied.set_to("7"), "the second arm's value")
    process.send_signal(number)
    code, _, err = await ended(process)
    assert code == 130, err
    assert studied.as_it_was() and not studied.journal().touched and not studied.journal().finished


async def test_killed_its_settings_come_back_and_it_goes_on(studied: Studied) -> None:
    studied.write(short=SLOW)
    process = await studied.start()
    await in_the_second_arm(process)
    assert studied.set_to("7")
    kill(process)
    await ended(process)
    await until(studied.as_it_was, "the original settings")
    await until(lambda: not studied.journal().touched, "the keeper's word that all is back")

    code, out, err = await studied.run("--json")
    assert code == 0, err
    assert "goes on where it stopped" in err and studied.as_it_was()
    result = json.loads(out)
    assert (result["steps"], result["done"]) == (2, 2)
    assert [[run["session"] for run in cell["runs"] if run["counted"]] for cell in result["cells"]] == [[1], [2]]


async def test_killed_with_its_keeper_its_settings_come_back_at_the_next_start(studied: Studied) -> None:
    studied.write(short=SLOW)
    process = await studied.start()
    await in_the_second_arm(process)
    studied.keeper(process.pid).kill()
    kill(process)
    await ended(process)
    assert studied.journal().touched

    studied.write(rule="runs = 2", short=QUICK)
    code, _, err = await studied.run()
    assert code == 2 and "holds an unfinished study with another plan; --fresh" in err
    code, _, err = await studied.run("--fresh")
    assert code == 0, err
    assert "putting back the settings that a killed study left" in err
    assert studied.as_it_was() and studied.journal().originals == {"MinSpareServers": "5"}
