"""Agreement of cockpit, ab, wrk and httperf on the counts of one plan on one Apache.

Counts, bytes and errors must equal those of Apache's log. Rates and latencies depend on the machine, too:
`python -m tests.bench agreement` compares them.
"""

from pathlib import Path

from msgspec.structs import replace

from cockpit.model.load.plan import ThinkTime
from cockpit.model.study import with_address
from cockpit.profiles.reader import read_profile
from tests.lab.agreement import CONCURRENCY, REQUESTS, Result, closed_load, in_rounds, keep_workers, open_load
from tests.lab.cpus import generator_cpu
from tests.lab.lab import Host
from tests.lab.profile_runs import PROFILES
from tests.lab.services import HELLO
from tests.load.servers import load


def is_exact(result: Result) -> bool:
    """Compare the counts with the responses and bytes that Apache sent."""
    requests = {result.requests, result.logged} == {REQUESTS} and result.errors == 0
    return requests and result.total == result.logged_bytes and result.body == REQUESTS * len(HELLO)


def test_counts_agree(fresh_web1: Host, tmp_path: Path) -> None:
    keep_workers(fresh_web1)
    for kept in (False, True):
        _, generators = closed_load(fresh_web1.url, tmp_path, kept=kept)
        results = in_rounds(fresh_web1, generators, 1)
        assert is_exact(results["cockpit"][0]) and is_exact(results["ab"][0]), results
        [result] = results["wrk"]
        # wrk runs for a time: requests in flight at its end are only in the log.
        assert 0 <= result.logged - result.requests <= CONCURRENCY
    results = in_rounds(fresh_web1, open_load(fresh_web1.url)[1], 1)
    assert is_exact(results["cockpit"][0]), results
    for result in results.get("httperf", []):
        # httperf rounds sizes and omits the ends of headers.
        counts = (result.requests, result.logged, result.errors, result.body)
        assert counts == (REQUESTS, REQUESTS, 0, REQUESTS * len(HELLO))


async def test_visitors_reconnect_after_their_requests_per_connection(fresh_web1: Host) -> None:
    plan = read_profile(PROFILES / "real-visitors.toml").plan
    assert plan.cookies and plan.requests_per_connection == 10 and plan.think_time is not None
    think = ThinkTime(distribution="uniform", seconds=0.02, most=0.1)
    plan = replace(plan, concurrency=15, requests=600, duration=None, think_time=think, cpus=(generator_cpu(),))
    outcome = await load(with_address(plan, {"web1": fresh_web1.address}))
    assert outcome.statuses == {200: 600} and outcome.errors == {}
    # Ten requests per connection; the last connection of each visitor may have fewer.
    assert 60 <= outcome.merged("connect").count <= 60 + 15
    completed = {name: sum(group.completed for group in groups) for name, groups in outcome.groups.items()}
    assert completed == {"page": 150, "text": 450}
