"""The claim at the end of a search, as a line of text."""

from __future__ import annotations

from cockpit.analysis.outcome import Design, Effect, Outcome, Verdict
from cockpit.autopilot.words import plan_lines, result_line
from cockpit.model.autopilot import AutopilotBegun, AutopilotEnded, AutopilotState, SearchedKnob, SearchPlan

KNOBS = (SearchedKnob("KeepAlive", ("On", "Off")),)
BEGUN = AutopilotBegun(
    t=0.0,
    plan=SearchPlan(metric="rate", maximize=True, knobs=KNOBS, budget=660.0, seed=1),
    original={"KeepAlive": "Off"},
    limits=("bottleneck: web1: all CPUs are busy (97% busy)",),
)
VERDICT = Verdict(
    outcome=Outcome.BETTER,
    design=Design.ROUNDS,
    values=(6, 6),
    effects=(
        Effect(name="rate", outcome=Outcome.BETTER, headline=True, change=0.23, low=0.18, high=0.29),
        Effect(name="p99", outcome=Outcome.EQUIVALENT, change=-0.02, low=-0.05, high=0.01),
        Effect(name="web1.cpu.per_request", outcome=Outcome.BETTER, change=-0.2, low=-0.3, high=-0.1),
        Effect(name="web1.memory.used", outcome=Outcome.WORSE, change=0.12, low=0.1, high=0.14),
    ),
)


def test_claim_lists_cost_in_errors_latency_and_memory() -> None:
    ended = AutopilotEnded(t=600.0, outcome="better", seconds=540.0, values={"KeepAlive": "On"}, rounds=1)
    line = result_line(AutopilotState(begun=BEGUN, ended=ended), VERDICT)
    assert line.startswith("better: KeepAlive On: rate better +23% (+18 to +29%)")
    assert "p99" in line and "web1 memory worse +12%" in line and "CPU" not in line
    assert line.endswith("0 evaluations, 6 rounds, 9:00; not applied, the original values are active")


def test_plan_starts_with_server_limits() -> None:
    first, second, third = plan_lines(BEGUN)
    assert first == "bottleneck: web1: all CPUs are busy (97% busy)"
    assert second == "maximize rate; budget 11:00 including the proof; seed 1"
    assert third == "  KeepAlive: On, Off (now Off)"
