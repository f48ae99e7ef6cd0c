"""Whole results of real programs have the counts, errors and percentiles that the program itself printed.

`results/` has runs of JMeter 5.6.3 and k6 1.8.1 (rows of other metrics removed) against a server on the loopback
interface that redirects, fails, closes connections and is late, and against a closed port.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

import pytest

from cockpit.imports.formats import format_of
from cockpit.imports.runs import run_of
from cockpit.imports.session import session_of
from cockpit.model.fold import fold_all
from cockpit.model.metrics import RunResult, run_result

RESULTS = Path(__file__).parent / "results"


class Printed(NamedTuple):
    """Metrics of the program's own summary; times in ms, `percentiles` by per cent."""

    requests: int
    failed: int
    mean: float
    least: float
    most: float
    percentiles: dict[float, float]
    errors: dict[str, int]
    unexpected: dict[str, int]


# The summary of the run, and percentiles of its dashboard for samples without their parts.
JMETER = Printed(
    requests=72,
    failed=53,
    mean=115.125,
    least=1,
    most=1215,
    percentiles={50: 68, 90: 211, 95: 287.25, 99: 1215},
    errors={"refused": 24, "timeout": 2, "closed_before_response": 2},
    unexpected={"assertion": 24, "status": 1},
)
K6 = Printed(
    requests=32,
    failed=15,
    mean=62.22,
    least=0,
    most=1000.24,
    percentiles={50: 27.54, 90: 92.4, 95: 133.06, 99: 736.68},
    errors={"closed_early": 3, "name_not_found": 3, "refused": 3, "timeout": 1},
    unexpected={"status": 5},
)


def imported(name: str) -> tuple[RunResult, list[float]]:
    """Return the run of a file, and its latencies in ms, ascending."""
    lines = (RESULTS / name).read_text().splitlines(keepends=True)
    form = format_of(lines[0])
    requests = list(form.read(iter(lines)))
    result = run_result(fold_all(session_of("x", 1000.0, run_of(requests, form))), 1)
    assert result is not None
    return result, sorted(1000 * request.seconds for request in requests)


@pytest.mark.parametrize(("name", "printed"), [("jmeter.jtl", JMETER), ("k6.csv", K6), ("k6.json", K6)])
def test_imported_metrics_are_those_of_the_program(name: str, printed: Printed) -> None:
    result, latencies = imported(name)
    counts = result.counts
    assert (counts.ended, counts.failed) == (printed.requests, printed.failed)
    assert counts.errors == printed.errors and counts.unexpected == printed.unexpected
    for ours, theirs in (
        (counts.service.mean, printed.mean),
        (counts.service.min, printed.least),
        (counts.service.max, printed.most),
    ):
        assert 1000 * ours == pytest.approx(theirs, abs=0.01)
    for percent, theirs in printed.percentiles.items():
        rank = math.ceil(len(latencies) * percent / 100)
        ours = 1000 * counts.service.percentile(percent)
        assert ours == pytest.approx(latencies[rank - 1], rel=2e-3)
        # Theirs is interpolated between the neighbours of that rank.
        below, above = latencies[rank - 2], latencies[min(rank, len(latencies) - 1)]
        assert below - 0.01 <= theirs <= above + 0.01
