"""`cockpit run URL --until LIMITS`: exit codes, errors, output of a search, comparison and reports of recordings."""

import json
from pathlib import Path

import msgspec
import pytest

from cockpit.analysis.capacity.levels import Level
from cockpit.analysis.capacity.result import CapacityResult
from cockpit.analysis.capacity.search import CapacityEstimate
from cockpit.analysis.words.capacity import capacity_words, rate_words
from cockpit.cli.run_session import _search_code
from cockpit.model.capacity import CapacityBegun, CapacityEnded, CapacityLevel, CapacityLevelEnded, CapacityOutcome
from cockpit.model.events import RunStarted
from cockpit.model.fold.fold import fold_all
from cockpit.model.load.plan import LoadPlan
from cockpit.model.tick import Tick
from cockpit.report.capacity import compared_words
from cockpit.report.run_json import RunJson
from tests.commands import cockpit

FOUND = CapacityEstimate(1838.2, 1790.4, 1899.8, 1820.0, 1850.0)
LEVEL = Level(rate=1.0, seconds=5.0, holds=False, exceeding=9.0, allowed=1.0, decisive="p99 < 1ms")


def result(
    outcome: CapacityOutcome | None, found: CapacityEstimate | None = None, at_least: float = 0.0
) -> CapacityResult:
    return CapacityResult(
        limits=("p99 < 1ms",), levels=(LEVEL,), estimate=found, at_least=at_least, outcome=outcome, detail=""
    )


def test_search_is_printed_recorded_and_reported(url: str, tmp_path: Path) -> None:
    file = tmp_path / "s.cockpit"
    done = cockpit("run", url, "--until", "p50 < 900ms, errors < 50%", "-z", "5s", "--json", "--record", file)
    assert done.returncode == 0, done.stderr
    assert "level 1: 50/s for " in done.stderr
    [search] = msgspec.json.decode(done.stdout, type=RunJson).capacities
    assert (search.outcome, search.rate, search.limits) == ("budget", None, ("p50 < 900ms", "errors < 50%"))
    assert json.loads(cockpit("report", file, "--json").stdout) == [json.loads(done.stdout)]
    for form in ("text", "md", "html"):
        assert search.text.split(":")[0] in cockpit("report", file, "--format", form).stdout, form


def test_search_ends_with_99_if_limits_fail_at_lowest_rate(capsys: pytest.CaptureFixture[str]) -> None:
    def codes(outcome: CapacityOutcome) -> int:
        refused = Tick(t=6.0, start=1.5, run=1, worker=0, sent=50, completed=50, statuses={503: 50})
        events = [
            RunStarted(t=0.5, run=1, plan=LoadPlan(url="http://a/", rate=1.0)),
            CapacityBegun(t=0.6, number=1, run=1, limits=("errors < 1%",), longest=180.0),
            CapacityLevel(t=1.0, number=1, level=1, rate=1.0, until=6.0),
            refused,
            CapacityLevelEnded(t=6.0, number=1),
            CapacityEnded(t=6.1, number=1, outcome=outcome),
        ]
        return _search_code(fold_all(events))

    assert (codes("lowest"), codes("generator"), codes("found")) == (99, 0, 0)
    assert capsys.readouterr().err == "cockpit: limits failed at the lowest rate at 1/s: errors < 1%\n"


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (("--until", "fast"), "'fast': invalid threshold"),
        (("--until", "rate > 5"), "not a limit of the load"),
        (("--until", "p99 < 1s", "-n", "100"), "--until"),
    ],
)
def test_invalid_searches_are_refused_in_one_line(url: str, flags: tuple[str, ...], problem: str) -> None:
    done = cockpit("run", url, "--no-tui", *flags)
    assert done.returncode == 2 and problem in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (result("found", FOUND), "capacity 1,838/s (95% CI 1,790–1,900)"),
        (result("generator", at_least=5000.0), "capacity at least 5,000/s: the generator is the limit"),
        (result("lowest"), "limits failed at the lowest rate at 1/s: p99 < 1ms"),
        (result("budget", at_least=12.5), "capacity at least 12.5/s: time limit reached"),
        (result("stopped", FOUND), "capacity search stopped; capacity 1,838/s (95% CI 1,790–1,900) so far"),
        (result(None), "capacity unknown"),
    ],
)
def test_conclusion_in_words(found: CapacityResult, words: str) -> None:
    assert capacity_words(found) == words


def test_capacities_are_compared_with_interval() -> None:
    more = CapacityEstimate(2000.0, 1960.0, 2040.0, 1990.0, 2010.0)
    words = compared_words(result("found", FOUND), result("found", more))
    assert words.endswith("/s (95% CI 1,960–2,040): +8.8% (95% CI +5.0 to +12.8%); p99 < 1ms")
    assert compared_words(result("found", FOUND), result("budget")) == "" and rate_words(99.94) == "99.9"
