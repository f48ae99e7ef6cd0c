"""Whole results of real programs have the counts, errors and percentiles that the program itself printed.

`results/` has runs of JMeter 5.6.3, k6 1.8.1 (rows of other metrics removed), vegeta 12.13.0, h2load 1.52.0 (HTTP/2, by
a proxy), hey 0.1.4, oha 1.16.0 and ab 2.3 against a server on the loopback interface that redirects, fails, closes
connections and is late; those of JMeter, k6 and vegeta also against a closed port.
"""

import math
from pathlib import Path
from typing import NamedTuple

import pytest

from cockpit.analysis.warnings import WarningKind, run_warnings
from cockpit.imports.known_formats import format_of
from cockpit.imports.runs import run_of
from cockpit.imports.session import session_of
from cockpit.metrics.results import RunResult, run_result
from cockpit.model.fold.fold import fold_all

RESULTS = Path(__file__).parent / "results"


class Printed(NamedTuple):
    """Metrics of the program's own summary; times in ms, `percentiles` by per cent."""

    requests: int
    failed: int
    mean_least_most: tuple[float, float, float]
    percentiles: dict[float, float]
    errors: dict[str, int]
    unexpected: dict[str, int]


# JMeter: the summary of the run, and percentiles of its dashboard for samples without their parts.
# vegeta: `vegeta report -type json`.
# fmt: off
PRINTED = {
    "jmeter": Printed(
        72, 53, (115.125, 1, 1215), {50: 68, 90: 211, 95: 287.25, 99: 1215},
        {"refused": 24, "timeout": 2, "closed_before_response": 2}, {"assertion": 24, "status": 1},
    ),
    "k6": Printed(
        32, 15, (62.22, 0, 1000.24), {50: 27.54, 90: 92.4, 95: 133.06, 99: 736.68},
        {"closed_early": 3, "name_not_found": 3, "refused": 3, "timeout": 1}, {"status": 5},
    ),
    "vegeta": Printed(
        60, 16, (33.073155, 0.322775, 1001.325257), {50: 17.223832, 90: 30.402684, 95: 40.200837, 99: 906.897841},
        {"refused": 10, "closed_early": 1, "timeout": 1}, {},
    ),
}
# fmt: on
UNLISTED = "not in the file, shown as 0 or none: CPU and lag of the generator, "


def imported(name: str) -> tuple[RunResult, list[float]]:
    """Return the run of a file, and its latencies in ms, ascending."""
    lines = (RESULTS / name).read_text().splitlines(keepends=True)
    form = format_of(lines[0])
    requests = list(form.read(iter(lines)))
    result = run_result(fold_all(session_of("x", 1000.0, run_of(requests, form))), 1)
    return result, sorted(1000 * request.seconds for request in requests)


@pytest.mark.parametrize("name", ["jmeter.jtl", "k6.csv", "k6.json", "vegeta.json", "vegeta.csv"])
def test_imported_metrics_are_those_of_the_program(name: str) -> None:
    printed = PRINTED[name.partition(".")[0]]
    result, latencies = imported(name)
    counts = result.counts
    assert (counts.ended, counts.failed) == (printed.requests, printed.failed)
    assert counts.errors == printed.errors and counts.unexpected == printed.unexpected
    ours = [1000 * one for one in (counts.service.mean, counts.service.min, counts.service.max)]
    assert ours == pytest.approx(printed.mean_least_most, abs=0.01)
    [errors] = [one for one in run_warnings(result) if one.kind is WarningKind.TIMED_ERRORS]
    assert errors.values == {"count": sum(printed.errors.values()), "total": printed.requests}
    for percent, theirs in printed.percentiles.items():
        rank = math.ceil(len(latencies) * percent / 100)
        ours = 1000 * counts.service.percentile(percent)
        assert ours == pytest.approx(latencies[rank - 1], rel=2e-3)
        # Theirs is interpolated between the neighbours of that rank.
        below, above = latencies[rank - 2], latencies[min(rank, len(latencies) - 1)]
        assert below - 0.01 <= theirs <= above + 0.01


def test_the_log_of_h2load_has_failed_streams() -> None:
    """h2load printed: 60 done, 8 failed, 1 errored; 52 2xx (one of them ended early), 1 3xx, 1 4xx, 6 5xx."""
    result, latencies = imported("h2load.log")
    counts = result.counts
    assert (counts.ended, counts.failed, counts.errors) == (60, 8, {"other": 1})
    assert counts.statuses == {200: 51, 302: 1, 404: 1, 500: 1, 502: 3, 503: 2}
    # h2load's mean is 45.90 ms, without the failed stream of 28.443 ms.
    assert 1000 * counts.service.mean == pytest.approx((59 * 45.90 + 28.443) / 60, abs=0.01)
    assert latencies[0] == pytest.approx(5.24, abs=0.01) and latencies[-1] == pytest.approx(1530, abs=5)
    assert f"{UNLISTED}bytes, requests that were lost with their connection" in result.warnings[0]


def test_rows_of_hey_oha_and_ab_are_complete_responses() -> None:
    # Of 60 requests, one had a timeout; hey writes no row for it.
    result, _ = imported("hey.csv")
    counts = result.counts
    assert counts.completed == counts.ended == 59 and counts.statuses == {200: 55, 404: 1, 500: 1, 503: 2}
    assert result.warnings[0].endswith(f"{UNLISTED}bytes, requests without a response")
    # The server sent these statuses. It broke four of the 60 requests, and one had a timeout.
    result, latencies = imported("oha.csv")
    counts = result.counts
    assert counts.completed == counts.ended == 55
    assert counts.statuses == {200: 50, 302: 1, 404: 1, 500: 1, 503: 2} and counts.failed == 4
    assert latencies[-1] < 1000 and counts.body_bytes == 1414
    assert result.warnings[0].endswith(f"{UNLISTED}requests without a response")
    # ab printed: 60 complete requests, two of them failed in receiving; its rows do not show which.
    result, latencies = imported("ab.tsv")
    assert result.counts.completed == 60 and not result.counts.failed
    assert result.warnings[0].endswith(f"{UNLISTED}bytes, statuses, failures (their rows count as completed)")
    # ab's percentile is the next value of the same list.
    for percent, theirs in {50: 21, 66: 25, 75: 28, 80: 30, 90: 35, 95: 37, 98: 42, 99: 1523}.items():
        assert latencies[len(latencies) * percent // 100] == pytest.approx(theirs)
