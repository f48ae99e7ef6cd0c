"""Agreement of cockpit, ab, wrk and httperf on the counts of one plan on one Apache.

Counts, bytes and errors must equal those of Apache's log. Rates and latencies depend on the machine, too:
`python -m tests.bench agreement` compares them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.agreement import (
    CONCURRENCY,
    REQUESTS,
    Generators,
    Result,
    Results,
    closed_load,
    in_rounds,
    keep_workers,
    open_load,
    table,
)
from tests.lab.lab import Host
from tests.lab.services import HELLO


@pytest.fixture
def web1(fresh_web1: Host) -> Iterator[Host]:
    keep_workers(fresh_web1)
    yield fresh_web1


def run_and_print(web1: Host, plan: tuple[str, Generators], capsys: pytest.CaptureFixture[str]) -> Results:
    """Run each generator once and print the table of results."""
    title, generators = plan
    results = in_rounds(web1, generators, 1)
    with capsys.disabled():
        print("", title, *table(results), sep="\n")
    return results


def assert_exact_counts(result: Result) -> None:
    """Compare the counts with the responses and bytes that Apache sent."""
    assert result.errors == 0
    assert result.requests == result.logged == REQUESTS
    assert result.total == result.logged_bytes
    assert result.body == REQUESTS * len(HELLO)


@pytest.mark.parametrize("kept", [False, True], ids=["new connections", "kept connections"])
def test_counts_of_closed_load(kept: bool, web1: Host, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = run_and_print(web1, closed_load(web1.url, tmp_path, kept=kept), capsys)
    assert_exact_counts(results["cockpit"][0])
    assert_exact_counts(results["ab"][0])
    [result] = results["wrk"]
    # wrk runs for a time: requests in flight at its end are only in the log.
    assert 0 <= result.logged - result.requests <= CONCURRENCY


def test_counts_of_open_load(web1: Host, capsys: pytest.CaptureFixture[str]) -> None:
    results = run_and_print(web1, open_load(web1.url), capsys)
    assert_exact_counts(results["cockpit"][0])
    for result in results.get("httperf", []):
        # httperf rounds sizes and omits the ends of headers.
        assert (result.requests, result.logged, result.errors) == (REQUESTS, REQUESTS, 0)
        assert result.body == REQUESTS * len(HELLO)
