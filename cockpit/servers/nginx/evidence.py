"""Active values of a running nginx."""

from __future__ import annotations

from cockpit.servers.evidence import Evidence

_WORKERS = """
workers=
for child in $(children "$pid"); do
    case $(tr '\\0' ' ' <"/proc/$child/cmdline") in
        *shutting*) ;;
        *'worker process'*) workers="$workers $child" ;;
    esac
done
"""


def _count(value: str, shown: str) -> bool | None:
    """Compare with `WORKERS CPUS`."""
    count, cpus = shown.split()
    return count == (cpus if value == "auto" else value)


SHOWN = {
    "worker_processes": Evidence(
        "its processes", f'{_WORKERS} set -- $workers; echo "$# $(getconf _NPROCESSORS_ONLN)"', _count
    ),
    "worker_rlimit_nofile": Evidence(
        "the limits of its processes", f'{_WORKERS} for worker in $workers; do open_files "$worker"; done | sort -u'
    ),
}
