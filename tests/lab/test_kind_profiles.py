"""Shipped profiles of applications: their knob makes the difference that they expect."""

from collections.abc import Callable, Mapping, Sequence

from cockpit.metrics.results import RunResult
from cockpit.metrics.values import metric_value
from tests.lab.kinds import gunicorn, mariadb, php_fpm
from tests.lab.lab import Lab
from tests.lab.profile_runs import runs_of, shipped

_PAGE = """\
<?php
$db = new mysqli("localhost", "www-data");
$db->query("SELECT SLEEP(0.05)");
echo "ok";
"""
_USER = "CREATE USER IF NOT EXISTS \\`www-data\\`@localhost IDENTIFIED VIA unix_socket"
PHP_AND_MARIADB = f"""
    {php_fpm.CASE.start}
    printf %s '{_PAGE}' >/srv/php/index.php
    {mariadb.CASE.start}
    mariadb --no-defaults --socket=/run/mysqld/mysqld.sock -e "{_USER}"
"""
# A service that the profile restarts.
SERVICE = f"""
    {gunicorn.CASE.start}
    cat >/etc/init.d/app <<'END'
#!/bin/sh
{gunicorn.RESTART}
END
    chmod +x /etc/init.d/app
"""


async def measured(
    lab: Lab,
    name: str,
    start: str,
    stop: str,
    changes: Sequence[Mapping[str, str | None]],
    seconds: float,
    shows: Callable[..., bool] = lambda *results: True,
) -> list[RunResult]:
    """The run of a shipped profile with each of the values; they are undone."""
    lab.web1.run(f"{{ set -e; {start}\n}} >/tmp/{name}.out 2>&1")
    try:
        before = lab.web1.files("/etc/php /etc/mysql")
        profile = shipped(name, {"web1": lab.web1.address}, seconds)
        results = await runs_of(profile, changes, lab.ssh_config, may_fail=name == "mariadb", shows=shows)
        assert lab.web1.files("/etc/php /etc/mysql") == before
    finally:
        lab.web1.run(f"{{ {stop}\n}} >/dev/null 2>&1", check=False)
    return results


async def test_php_needs_a_connection_of_mariadb_for_each_of_its_processes(lab: Lab) -> None:
    # PHP-FPM starts its processes at once, and a thread of MariaDB is kept or started.
    few = {"pm": "static", "pm.max_children": "20", "max_connections": "10", "thread_cache_size": "0"}
    more, kept = {"max_connections": "100"}, {"thread_cache_size": "32"}
    stop = f"{php_fpm.CASE.stop}\n{mariadb.CASE.stop}"

    def threads(*results: RunResult) -> float | None:
        """Return the threads created in the last run; None: the status page was read once only."""
        return metric_value(results[-1], "web1.mariadb.threads_created")

    refused, *served = await measured(
        lab, "mariadb", PHP_AND_MARIADB, stop, (few, more, kept), 2.0, lambda *results: threads(*results) is not None
    )
    # One connection more is for an administrator.
    assert refused.counts.failed > 0 and refused.counts.statuses[200] <= 1.1 * 2.0 * 11 / 0.05
    assert all(one.counts.failed == 0 and set(one.counts.statuses) == {200} for one in served)
    # Threads per response; those of the start may be counted.
    created = [(threads(one) or 0.0) * 2.0 / one.counts.statuses[200] for one in served]
    assert created[0] > 0.5 > created[1]


async def test_the_kernel_drops_connections_that_find_the_accept_queue_full(lab: Lab) -> None:
    before = lab.web1.run("cat /proc/sys/net/core/somaxconn").stdout
    limits = {"somaxconn": "4"}, {"somaxconn": "1024"}

    def overflows(result: RunResult) -> float | None:
        """Return the connections that found the queue full; None: there were too few samples."""
        return metric_value(result, "web1.listen.ListenOverflows")

    results = await measured(
        lab, "kernel", SERVICE, gunicorn.CASE.stop, limits, 3.0, lambda *results: overflows(results[-1]) is not None
    )
    short, long = map(overflows, results)
    # How late such a connection is depends on what repairs it: a repeated SYN or SYN-ACK after a second, or the request
    # itself, which the client repeats much earlier.
    assert short and long == 0
    assert lab.web1.run("cat /proc/sys/net/core/somaxconn").stdout == before
