"""Proof of a search: conditions on its final rounds for its values to be reported as better."""

import pytest

from cockpit.analysis.thresholds import parse_threshold
from cockpit.analysis.verdicts.outcome import Design, Effect, Outcome, Verdict
from cockpit.autopilot.proof import Proof
from cockpit.model.state import State

RATE = Effect(name="rate", outcome=Outcome.BETTER, headline=True, low=0.1, high=0.2, margin=0.03)


def p99(low: float | None, high: float | None, outcome: Outcome = Outcome.INCONCLUSIVE) -> Effect:
    """A p99 of 20 ms in the baseline, with the interval of its change."""
    return Effect(name="p99", outcome=outcome, before=0.02, low=low, high=high, margin=0.1)


def errors(low: float, high: float) -> Effect:
    return Effect(name="errors", outcome=Outcome.INCONCLUSIVE, relative=False, low=low, high=high, margin=0.001)


def verdict(*others: Effect, first: Effect = RATE, outcome: Outcome = Outcome.BETTER, rounds: int = 6) -> Verdict:
    return Verdict(outcome=outcome, design=Design.ROUNDS, values=(rounds, rounds), effects=(first, *others))


def proof(*constraints: str) -> Proof:
    return Proof("rate", tuple(map(parse_threshold, constraints)))


P99_HIGHER = "p99 may be up to 14% higher (allowed: 10%; --where 'p99 < TIME' allows more)"
P90 = Effect(name="p90", outcome=Outcome.WORSE, before=0.1, low=0.4, high=0.5, margin=0.03)


@pytest.mark.parametrize(
    ("other", "constraints", "objection", "decided"),
    [
        (p99(-0.3, 0.09), (), "", True),
        (p99(-0.3, 0.14), (), P99_HIGHER, False),
        (p99(0.11, 0.14, Outcome.WORSE), (), P99_HIGHER, True),
        # Significantly worse, by less than the margin.
        (p99(0.02, 0.08, Outcome.WORSE), (), "", True),
        # Significantly within its limit, or not.
        (p99(0.11, 0.14, Outcome.WORSE), ("p99 < 50ms",), "", True),
        (p99(0.11, 0.14, Outcome.WORSE), ("p99 < 22ms",), P99_HIGHER, True),
        (p99(0.11, 0.14, Outcome.WORSE), ("p99 > 1ms",), P99_HIGHER, True),
        (p99(None, None), (), "p99: insufficient data", False),
        (errors(-0.01, 0.0009), (), "", True),
        (errors(-0.01, 0.004), (), "errors may be up to 0.4 points higher (allowed: 0.1 points)", False),
        # Neither p99 nor constrained.
        (P90, (), "", True),
        (P90, ("p90 < 120ms",), "p90 may be up to 50% higher (allowed: 3%; --where 'p90 < TIME' allows more)", True),
    ],
)
def test_errors_and_latencies_are_guarded_by_their_margins(
    other: Effect, constraints: tuple[str, ...], objection: str, decided: bool
) -> None:
    found = verdict(other)
    assert proof(*constraints).rejection_reason(found, State()) == objection
    assert proof(*constraints).is_decided(found) == decided and proof().is_better(found)


@pytest.mark.parametrize(
    ("found", "decided"),
    [
        (verdict(rounds=3), False),
        (verdict(outcome=Outcome.INVALID), True),
        *(
            (verdict(first=Effect(name="rate", outcome=outcome), outcome=outcome), outcome is not Outcome.INCONCLUSIVE)
            for outcome in (Outcome.INCONCLUSIVE, Outcome.EQUIVALENT, Outcome.WORSE)
        ),
    ],
)
def test_rounds_continue_until_claim_is_decided(found: Verdict, decided: bool) -> None:
    assert proof().is_decided(found) == decided
    # The optimized metric itself is not guarded.
    p99_better = verdict(first=p99(-0.5, -0.2, Outcome.BETTER))
    assert Proof("p99").rejection_reason(p99_better, State()) == "" and Proof("p99").is_decided(p99_better)
