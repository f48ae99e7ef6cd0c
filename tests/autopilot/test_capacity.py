"""A search that maximizes the capacity: its evaluations, their uncertainty, the proof in rounds, and refusals."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from cockpit.analysis.capacity import result as capacity_result
from cockpit.analysis.capacity.levels import Level
from cockpit.analysis.capacity.result import CapacityResult
from cockpit.analysis.capacity.search import CapacityEstimate
from cockpit.analysis.thresholds import parse_threshold
from cockpit.autopilot.measuring import abort_limit, capacity_evaluation
from cockpit.autopilot.runner import Autopilot
from cockpit.autopilot.search import error_of
from cockpit.autopilot.slices import search_fit
from cockpit.autopilot.words import plan_lines, result_line, trial_line
from cockpit.model import events as ev
from cockpit.model.capacity import CapacityBegun, CapacityEnded, CapacityLevel, CapacityLevelEnded, CapacityOutcome
from cockpit.model.tick import Tick
from cockpit.session.capacity import CapacitySearch
from tests.autopilot.searches import BEFORE, live, plan, run_search
from tests.capacities import LIMITS
from tests.commands import cockpit

PROFILE = """
target = { url = "http://127.0.0.1:9/" }
load = { duration = "1m" }
host = [{ name = "a" }]
knob = [{ name = "K", host = "a", kind = "keyvalue", file = "/f", key = "K", reload = "r", values = ["1", "2"] }]
"""


def estimate(rate: float) -> CapacityEstimate:
    return CapacityEstimate(rate, rate / 1.04, rate * 1.04, rate, rate)


def search_at_once(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Let searches find 500/s divided by the value of the knob, within an instant and without load."""

    async def run(self: CapacitySearch, text: str, longest: float) -> None:
        self._number += 1
        self._load.runs += 1
        number, run, t = self._number, self._load.runs, self._events.now()
        rate = 500.0 / int((folder / "conf").read_text().split()[0].partition("=")[2]) * (1 + 0.002 * (number % 3))
        for event in (
            ev.RunStarted(t=t, run=run, plan=self._load.plan),
            CapacityBegun(t=t, number=number, run=run, limits=(text,), longest=longest),
            CapacityLevel(t=t, number=number, level=1, rate=rate, until=t),
            Tick(t=t + 1e-3, start=t, run=run, worker=0, sent=1, completed=1, statuses={200: 1}),
            CapacityLevelEnded(t=t + 1e-3, number=number),
            CapacityEnded(t=t + 1e-3, number=number, outcome="found"),
            ev.RunEnded(t=t + 1e-3, run=run, reason="stopped"),
        ):
            self._events.emit(event)

    def found(levels: tuple[Level, ...]) -> CapacityEstimate:
        return estimate(levels[-1].rate)

    monkeypatch.setattr(CapacitySearch, "run", run)
    monkeypatch.setattr(capacity_result, "_cached", found)


@pytest.mark.usefixtures("quick")
async def test_capacity_is_maximized_and_proved_by_searches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    search_at_once(monkeypatch, tmp_path)
    goal = replace(plan(tmp_path, "p99 < 50ms", levels="5,2"), metric="capacity")
    async with live(tmp_path) as session:
        found, state = await run_search(session, goal)
        [rounds] = session.state.rounds
        searches = len(session.state.capacities)
    original, other = state.trials[0], state.trials[1]
    assert original.metric == pytest.approx(100, rel=0.01) and other.metric == pytest.approx(250, rel=0.01)
    assert original.interval is not None and original.interval[1] == pytest.approx(104, rel=0.01)
    assert "the original values: capacity 100.2/s (95% CI 96.3–104.2)" in trial_line(original, state)
    assert rounds.begun.until == "p99 < 50ms" and len(rounds.complete) == 2
    assert searches == len(state.trials) + 4, "each evaluation and each window is a search"
    assert found.verdict is not None and [effect.name for effect in found.verdict.effects] == ["capacity"]
    # Two rounds are too few for a verdict.
    assert found.ended.values == {"Level": "2"} and "Level 2: not confirmed" in result_line(state, found.verdict)
    assert "maximize capacity subject to p99 < 50ms" in next(plan_lines(state.begun))
    assert search_fit(state).best == {"Level": "2"} and (tmp_path / "conf").read_text() == BEFORE


async def test_budget_counts_longest_searches(tmp_path: Path) -> None:
    goal = replace(plan(tmp_path, "p99 < 50ms", levels="5,2", seconds=90.0), metric="capacity")
    async with live(tmp_path) as session:
        assert Autopilot(session, goal, {"Level": "5"}).least_budget == pytest.approx(
            (4 + 3) * 99 + 4 * 2 * 100, rel=0.05
        )


@pytest.mark.parametrize(
    ("outcome", "expected", "detail"),
    [
        ("found", "measured", ""),
        ("lowest", "infeasible", "limits failed at the lowest rate"),
        ("generator", "failed", "capacity at least 80/s: the generator is the limit"),
        ("budget", "failed", "capacity at least 80/s: time limit reached"),
    ],
)
def test_search_without_capacity_has_no_metric(outcome: CapacityOutcome, expected: str, detail: str) -> None:
    found = estimate(100.0) if outcome == "found" else None
    result = CapacityResult(limits=LIMITS, levels=(), estimate=found, at_least=80.0, outcome=outcome)
    evaluation = capacity_evaluation(result, "")
    assert (evaluation.outcome, evaluation.detail) == (expected, detail)
    assert (evaluation.metric is None) == (found is None)
    assert capacity_evaluation(result, "skipped").outcome == "failed"


def test_error_is_that_of_interval() -> None:
    assert error_of((100 / 1.04, 104.0)) == pytest.approx(0.02, rel=0.01)
    assert error_of(None) == error_of((0.0, 1.0)) == 0.0


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        ((), "--maximize capacity: needs a limit, e.g. --where 'p99 < 50ms'"),
        (("--where", "rate > 5"), "'rate > 5': not a limit of the load"),
        (("--where", "p99 < 1s", "--seconds", "30s"), "--seconds: a capacity search needs at least 60s"),
    ],
)
def test_unsuitable_searches_are_refused(tmp_path: Path, flags: tuple[str, ...], problem: str) -> None:
    profile = tmp_path / "p.toml"
    profile.write_text(PROFILE)
    done = cockpit("autopilot", str(profile), "--maximize", "capacity", *flags)
    assert done.returncode == 2 and problem in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("name", ["p99", "service.p99", "response.p99", "mean", "max"])
def test_an_evaluation_is_aborted_far_above_the_limit_of_a_latency(name: str) -> None:
    assert abort_limit(parse_threshold(f"{name} < 50ms")).value == pytest.approx(0.5)
    assert abort_limit(parse_threshold("errors < 1%")) == parse_threshold("errors < 1%")
