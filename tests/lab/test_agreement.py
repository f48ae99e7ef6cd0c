"""Agreement of cockpit, ab, wrk and httperf on the counts of one plan on one Apache.

Counts, bytes and errors must equal those of Apache's log. Rates and latencies depend on the machine, too:
`python -m tests.bench agreement` compares them.
"""

from pathlib import Path

from tests.lab.agreement import CONCURRENCY, REQUESTS, Result, closed_load, in_rounds, keep_workers, open_load
from tests.lab.lab import Host
from tests.lab.services import HELLO


def is_exact(result: Result, requests: int = REQUESTS) -> bool:
    """Compare the counts with the responses and bytes that Apache sent."""
    counted = {result.requests, result.logged} == {requests} and result.errors == 0
    return counted and result.total == result.logged_bytes and result.body == requests * len(HELLO)


def test_counts_agree(fresh_web1: Host, tmp_path: Path) -> None:
    keep_workers(fresh_web1)
    for kept in (False, True):
        _, generators = closed_load(fresh_web1.url, tmp_path, kept=kept)
        results = in_rounds(fresh_web1, generators, 1)
        assert is_exact(results["cockpit"][0]) and is_exact(results["ab"][0]), results
        [result] = results["wrk"]
        # wrk runs for a time: requests in flight at its end are only in the log.
        assert 0 <= result.logged - result.requests <= CONCURRENCY
    results = in_rounds(fresh_web1, open_load(fresh_web1.url, requests=200, rate=100)[1], 1)
    assert is_exact(results["cockpit"][0], 200), results
    for result in results.get("httperf", []):
        # httperf rounds sizes and omits the ends of headers.
        counts = (result.requests, result.logged, result.errors, result.body)
        assert counts == (200, 200, 0, 200 * len(HELLO))
