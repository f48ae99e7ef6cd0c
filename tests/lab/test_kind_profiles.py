"""Shipped profiles of single kinds of servers: their knob makes the difference that they expect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pytest

from cockpit.model.metrics import RunResult, latency_value, metric_value
from tests.lab.kinds import KindCase, caddy, gunicorn, haproxy, lighttpd, php_fpm, programs, varnish
from tests.lab.kinds.programs import Program
from tests.lab.lab import Lab
from tests.lab.profile_runs import runs_of, shipped
from tests.lab.test_knobs import config

SECONDS = 1.0


class ProfileCase(NamedTuple):
    """A knob's values for few and many requests at the same time, and how many a second the few can serve."""

    name: str
    kind: KindCase | Program
    few: dict[str, str]
    many: dict[str, str]
    limit: float


CASES = (
    ProfileCase("php-fpm", php_fpm.CASE, {"pm": "static", "pm.max_children": "2"}, {"pm.max_children": "10"}, 2 / 0.05),
    ProfileCase("haproxy", haproxy.CASE, {"maxconn": "2"}, {"maxconn": "20"}, 2 / 0.05),
    ProfileCase("gunicorn", gunicorn.CASE, {"workers": "1"}, {"workers": "8"}, 1 / 0.02),
    # A few of the 40 URLs are cached by the requests before the first change.
    ProfileCase("uvicorn", programs.UVICORN, {"workers": "1"}, {"workers": "4"}, 1 / 0.02),
    # libuv leaves half of its threads to lookups.
    ProfileCase("node", programs.NODE, {"UV_THREADPOOL_SIZE": "4"}, {"UV_THREADPOOL_SIZE": "16"}, 2 / 0.05),
    ProfileCase("varnish", varnish.CASE, {"default_ttl": "0"}, {"default_ttl": "120"}, 8 / 0.05),
)
KEPT = "max-keep-alive-requests"


async def measured(
    lab: Lab,
    name: str,
    kind: KindCase | Program,
    changes: Sequence[Mapping[str, str | None]],
    seconds: float = SECONDS,
    may_fail: bool = False,
) -> list[RunResult]:
    """The run of a shipped profile with each of the values; they are undone."""
    profile = shipped(name, {"web1": lab.web1.address}, seconds)
    lab.web1.run(f"{{ set -e; {kind.start}\n}} >/tmp/{name}.out 2>&1")
    try:
        before = config(lab.web1, kind.places)
        results = await runs_of(profile, changes, lab.ssh_config, may_fail)
        assert config(lab.web1, kind.places) == before
    finally:
        lab.web1.run(f"{{ {kind.stop}\n}} >/dev/null 2>&1", check=False)
    return results


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_more_requests_at_the_same_time_are_more_responses(lab: Lab, case: ProfileCase) -> None:
    few, many = await measured(lab, case.name, case.kind, (case.few, case.many))
    assert few.rate <= 1.1 * case.limit, "each request takes as long as the profile says"
    # On a busy machine 2.2 times was seen.
    assert many.rate > 1.5 * few.rate


async def test_php_needs_a_connection_of_mariadb_for_each_of_its_processes(lab: Lab) -> None:
    # PHP-FPM starts its processes at once, and a thread of MariaDB is kept or started.
    few = {"pm": "static", "pm.max_children": "20", "max_connections": "10", "thread_cache_size": "0"}
    more, kept = {"max_connections": "100"}, {"thread_cache_size": "32"}
    refused, *served = await measured(lab, "mariadb", programs.MARIADB, (few, more, kept), 3.0, may_fail=True)
    # One connection more is for an administrator.
    assert refused.counts.failed > 0 and refused.counts.statuses[200] <= 1.1 * 3.0 * 11 / 0.05
    assert all(one.counts.failed == 0 and set(one.counts.statuses) == {200} for one in served)
    created = [metric_value(one, "web1.mariadb.threads_created") for one in served]
    assert created[0] is not None and created[1] is not None and created[0] > 10 * created[1]


# A line of names comes before the line of their values.
OVERFLOWS = """awk '
    /^TcpExt:/ { for (n = 2; n <= NF; n++) if (name[n] == "ListenOverflows") print $n; split($0, name) }
' /proc/net/netstat"""


async def test_the_kernel_drops_connections_that_find_the_accept_queue_full(lab: Lab) -> None:
    found: dict[str, tuple[int, float]] = {}
    before = lab.web1.run("cat /proc/sys/net/core/somaxconn").stdout
    for value in ("4", "1024"):
        overflows = int(lab.web1.run(OVERFLOWS).stdout)
        (result,) = await measured(lab, "kernel", programs.GUNICORN, ({"somaxconn": value},), 3.0)
        longest = latency_value(result.counts.connect, "max")
        assert longest is not None
        found[value] = int(lab.web1.run(OVERFLOWS).stdout) - overflows, longest
    assert found["4"][0] > 0 and found["4"][1] > 0.9, "a client sends its SYN again after a second"
    assert found["1024"][0] == 0
    assert lab.web1.run("cat /proc/sys/net/core/somaxconn").stdout == before


async def test_lighttpd_keeps_connections_as_long_as_the_knob_says(lab: Lab) -> None:
    new, kept = await measured(lab, "lighttpd", lighttpd.CASE, ({KEPT: "0"}, {KEPT: "1000"}))
    assert new.counts.connect.count >= new.counts.completed > 0, "each request is a new connection"
    # On a busy machine ten responses per connection were seen.
    assert kept.counts.connect.count < kept.counts.completed / 4


async def test_caddy_sends_a_text_in_fewer_bytes_with_gzip(lab: Lab) -> None:
    compressed, plain = await measured(lab, "caddy", caddy.CASE, ({"encode": "gzip"}, {"encode": None}))
    sizes = [one.counts.body_bytes / one.counts.completed for one in (compressed, plain)]
    assert sizes[0] < sizes[1] / 2
