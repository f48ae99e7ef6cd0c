"""The probe's program: settings, the awk program `probe.awk` as a variable, and the shell script `probe.sh`."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from importlib.resources import files

from cockpit.hosts.pattern import is_pattern, regular
from cockpit.hosts.watchdog import IDLE, naps, watchdog

# Ticks within which a changed command line (setproctitle) or name is read. The slow round is for an awk without NUL
# support, which needs a fork for it, and for each process's share of shared pages (PSS).
ROUND, SLOW_ROUND = 10, 30
# Maximum number of new processes per tick whose share of shared pages is read.
MOST_SHARES = 10
# Ticks between two readings of the accept queues.
QUEUE_ROUND = 5
# Maximum number of new PIDs that are tried one by one; if there are more, /proc is listed.
FEW = 64
# The kernel's limit of a process name (bytes).
COMM_BYTES = 15
# Longer lines are cut (bytes).
LINE_BYTES = 8192
# Steps of the loop that measures the CPU's speed: about 1 ms in a shell.
LOOP_STEPS = 1000
# The control groups (cgroups) of a host, of version 1 or 2.
GROUPS = "/sys/fs/cgroup"


@lru_cache(maxsize=16)
def script(
    processes: tuple[str, ...], port: int | None = None, upstreams: tuple[str, ...] = (), idle: float = IDLE
) -> str:
    """Return the probe for processes of these names or patterns. Patterns are user text: they are quoted, never run.

    The probe also lists the watched processes that listen on the target's `port` or on an address of its `upstreams`.
    It ends after `idle` seconds without a tick."""
    watched = patterns(processes)
    nap, count = naps(idle)
    settings = {
        "watch": "y" if watched["patterns"] else "",
        **watched,
        "port": "" if port is None else f"{port:04X}",
        "ports": "".join(f" {number:04X} " for number in _ports(upstreams)),
        "sockets": "\n".join(_sockets(upstreams)),
        "line_bytes": str(LINE_BYTES),
        "round": str(ROUND),
        "slow_round": str(SLOW_ROUND),
        "most_shares": str(MOST_SHARES),
        "few_numbers": str(FEW),
        "queue_round": str(QUEUE_ROUND),
        "groups": GROUPS,
        "steps": str(LOOP_STEPS),
        "nap": nap,
        "naps": count,
        "reader": text_of("probe", "probe.awk"),
    }
    return "\n".join([assigned(settings), watchdog(), text_of("probe", "probe.sh")])


def _ports(addresses: tuple[str, ...]) -> Iterator[int]:
    for address in addresses:
        number = address.rpartition(":")[2]
        if not address.startswith("/") and number.isdecimal() and len(number) < 6:
            yield int(number)


def _sockets(addresses: tuple[str, ...]) -> Iterator[str]:
    """Yield the socket paths, also under /var/run, which is a link to /run."""
    for address in addresses:
        if address.startswith("/") and "\n" not in address:
            yield address
            yield from (f"/var{path}" for path in (address,) if path.startswith("/run/"))


def patterns(processes: Iterable[str]) -> dict[str, str]:
    """Return the settings for the names or patterns of processes; names are cut as the kernel does."""
    lines = [line for pattern in processes for line in pattern.split("\n") if line]
    names = (line if is_pattern(line) else line.encode()[:COMM_BYTES].decode("utf-8", "ignore") for line in lines)
    return {"patterns": "\n".join(names), "regex": "|".join(regular(line) for line in lines if is_pattern(line))}


def assigned(settings: Mapping[str, str]) -> str:
    """Return shell variables with these values."""
    return "\n".join(f"{name}={shlex.quote(value)}" for name, value in settings.items())


def text_of(package: str, name: str) -> str:
    """Return a file of `cockpit.hosts.<package>`."""
    return (files(f"cockpit.hosts.{package}") / name).read_text(encoding="utf-8")
