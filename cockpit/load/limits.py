"""Limits of machines for load: file descriptors, CPUs and local ports."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from math import inf, isfinite
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from cockpit.load import request_order
from cockpit.load.file_limit import OWN_FILES, most_connections_here
from cockpit.load.http.dialer import bind
from cockpit.load.http.protocol import assignments, most_connections
from cockpit.load.http.request import target_of_plan
from cockpit.model.errors import UsageError
from cockpit.model.load.checks import check_plan
from cockpit.model.load.plan import LoadPlan

_PORT_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
# Duration (s) of TIME_WAIT on Linux.
_TIME_WAIT = 60


class Capacity(NamedTuple):
    """Capacity of the generator machines: `files` is the maximum number of connections per load worker by open files
    (None: unlimited), `ports` the number of local ports of all `machines` (0: unknown). `here`: the generator is this
    machine."""

    files: int | None
    ports: int
    machines: int = 1
    here: bool = False


def capacity_here() -> Capacity:
    return Capacity(most_connections_here(), local_ports(), here=True)


def check(plan: LoadPlan, capacity: Capacity | None = None) -> None:
    """Check a plan. Raises UsageError if it is invalid, or if the machines (default: this one) lack resources for its
    workers. CPUs, and whether a local address exists, are checked on this machine only."""
    capacity = capacity or capacity_here()
    check_plan(plan)
    for part in plan.parts:
        request_order.check(part)
    for address in plan.local_addresses:
        _check_address(address, capacity.here)
    if any(target_of_plan(part).secure for part in plan.parts):
        from cockpit.load.http.tls import context_of

        context_of(plan.tls)
    if not plan.open:
        shares = assignments(replace(plan, workers=plan.workers * capacity.machines), 0, ())
        check_concurrency(len(plan.parts) * most_connections(plan), len(shares), capacity.files)
    if capacity.here and plan.cpus and sys.platform == "linux":
        allowed = os.sched_getaffinity(0)
        missing = [cpu for cpu in plan.cpus if cpu not in allowed]
        if missing:
            names = ", ".join(str(cpu) for cpu in sorted(allowed))
            raise UsageError(f"CPU {missing[0]} is not available to this process; choose from {names}")


def check_concurrency(connections: int, workers: int, most: int | None) -> None:
    """Raise UsageError if `connections` connections are more than `most` per worker (None: unlimited)."""
    share = -(-connections // workers)
    if most is not None and share > most:
        needed, allowed = share + OWN_FILES, most + OWN_FILES
        raise UsageError(
            f"{connections} connections: each load worker needs {needed} open files, its machine allows {allowed};"
            f" raise the hard limit (ulimit -Hn {needed}), use more workers or fewer connections"
        )


def fit_in_flight(plan: LoadPlan, capacity: Capacity | None = None) -> tuple[LoadPlan, tuple[str, ...]]:
    """Lower the plan's requests in flight to the open files that the machines (default: this one) allow; return the
    plan and a warning if they were lowered.

    Closed plans are unchanged: `check` refuses those with too many connections.
    """
    capacity = capacity or capacity_here()
    if not plan.open or capacity.files is None:
        return plan, ()
    most = capacity.files // len(plan.parts) * plan.streams
    workers = assignments(replace(plan, workers=plan.workers * capacity.machines), 0, ())[0].workers
    if plan.max_in_flight <= most * workers:
        return plan, ()
    lowered = replace(plan, max_in_flight=max(1, most * workers))
    files = capacity.files + OWN_FILES
    return lowered, (
        f"at most {lowered.max_in_flight} requests in flight, not {plan.max_in_flight}: the limit is {files} open files"
        " per load worker (ulimit -Hn)",
    )


def warnings(plan: LoadPlan, capacity: Capacity | None = None) -> tuple[str, ...]:
    """Return warnings about a run on these machines (default: this one), one line each."""
    capacity = capacity or capacity_here()
    lines: list[str] = []
    if plan.replay is not None:
        from cockpit.load.log_reader import read_log

        lines += read_log(plan).warnings
    if capacity.here and plan.cpus and sys.platform != "linux":
        lines.append("workers cannot be pinned to CPUs on this system; the scheduler places them")
    ports = capacity.ports * max(1, len(set(plan.local_addresses)))
    per_connection = plan.requests_per_connection if plan.keepalive else 1
    if per_connection is None or plan.unix or not ports:
        return tuple(lines)
    shortage = (
        f"if the client closes first, ports stay in TIME_WAIT for {_TIME_WAIT} s and run out (errors no_local_ports)"
    )
    if plan.requests is not None and plan.requests > per_connection * ports:
        lines.append(f"{plan.requests // per_connection} new connections from {ports} local ports: {shortage}")
    duration = _planned_duration(plan)
    if plan.open:
        levels = ((load.rate, load.ramp_to) for load in plan.stages)
        rate = max(rate or 0.0 for load in ((plan.rate, plan.ramp_to), *levels) for rate in load) / per_connection
        if rate * min(_TIME_WAIT, duration) > ports:
            lines.append(
                f"{rate:g} new connections/s use up {ports} local ports in {ports / rate:.0f} s: {shortage};"
                " use more local addresses"
            )
    elif isfinite(duration):
        # The think time limits the requests/s.
        most = most_connections(plan) / plan.think_time.mean if plan.think_time else inf
        if (rate := ports / min(_TIME_WAIT, duration)) < most / per_connection:
            lines.append(f"{ports} local ports allow {rate:.0f} new connections/s for this run: {shortage}")
    return tuple(lines)


def local_ports() -> int:
    """Return the number of ephemeral ports of this machine; 0 if unknown."""
    try:
        if sys.platform == "darwin":
            names = ["net.inet.ip.portrange.first", "net.inet.ip.portrange.last"]
            text = subprocess.run(["sysctl", "-n", *names], capture_output=True, text=True, check=True).stdout
        else:
            text = _PORT_RANGE.read_text()
        low, high = (int(word) for word in text.split())
    except (OSError, ValueError, subprocess.CalledProcessError):
        return 0
    return high - low + 1


def _planned_duration(plan: LoadPlan) -> float:
    """Return the planned duration (s); infinite if only the number of requests ends the run."""
    if plan.stages:
        return plan.warmup + sum(stage.duration for stage in plan.stages)
    by_requests = plan.requests / plan.rate if plan.rate and plan.requests else inf
    return plan.warmup + min(by_requests, inf if plan.duration is None else plan.duration)


def _check_address(address: str, here: bool) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        socket.inet_pton(family, address)
    except OSError:
        raise UsageError(f"local address {address!r}: not an IP address") from None
    if not here:
        return
    with socket.socket(family, socket.SOCK_STREAM) as sock:
        try:
            bind(sock, address)
        except OSError as error:
            raise UsageError(f"local address {address}: {(error.strerror or str(error)).lower()}") from None
