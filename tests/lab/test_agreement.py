"""The agreement run: one Apache, one plan, and what we, ab, wrk and httperf say it came to, in a table.

Counts, bytes and errors are held exactly against Apache's own log. Rates and latencies are the machine's as much as the
generators': `python -m tests.bench agreement` holds those.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.agreement import (
    CONCURRENCY,
    REQUESTS,
    Goes,
    Result,
    Results,
    closed,
    in_turns,
    make_steady,
    opened,
    table,
)
from tests.lab.lab import Host
from tests.lab.services import HELLO


@pytest.fixture
def steady_web1(fresh_web1: Host) -> Iterator[Host]:
    make_steady(fresh_web1)
    yield fresh_web1


def told(web1: Host, plan: tuple[str, Goes], capsys: pytest.CaptureFixture[str]) -> Results:
    """One go of each, and the table of them on the terminal."""
    title, goes = plan
    results = in_turns(web1, goes, 1)
    with capsys.disabled():
        print("", title, *table(results), sep="\n")
    return results


def all_counted(result: Result) -> None:
    """Every reply and every byte that Apache sent, and nothing else."""
    assert result.errors == 0
    assert result.requests == result.logged == REQUESTS
    assert result.total == result.logged_bytes
    assert result.body == REQUESTS * len(HELLO)


@pytest.mark.parametrize("kept", [False, True], ids=["new connections", "kept connections"])
def test_closed(kept: bool, steady_web1: Host, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = told(steady_web1, closed(steady_web1.url, tmp_path, kept=kept), capsys)
    all_counted(results["cockpit"][0])
    all_counted(results["ab"][0])
    [result] = results["wrk"]
    # It has a time and no count: what was in flight at its end is in the log alone.
    assert 0 <= result.logged - result.requests <= CONCURRENCY


def test_open(steady_web1: Host, capsys: pytest.CaptureFixture[str]) -> None:
    results = told(steady_web1, opened(steady_web1.url), capsys)
    all_counted(results["cockpit"][0])
    for result in results.get("httperf", []):
        # It rounds what it says of sizes, and leaves the ends of heads out.
        assert (result.requests, result.logged, result.errors) == (REQUESTS, REQUESTS, 0)
        assert result.body == REQUESTS * len(HELLO)
