"""Active values of a running squid, by the pages of its cache manager and by its processes.

The page `config` is never requested: squid 5.7 exits on this request.
"""

from __future__ import annotations

import re

from cockpit.servers.evidence import Evidence

_MANAGER = "page /squid-internal-mgr"
_KIB = {"bytes": 1 / 1024, "": 1 / 1024, "kb": 1, "mb": 1024, "gb": 1024 * 1024}
_NUMBER = re.compile(r"[0-9.]+")
# Rounding error of a printed percentage: half of the last digit.
_ROUNDING = 0.05


def _memory(value: str, shown: str) -> bool | None:
    """Compare with `24 KB` (the size, if several workers share it), or `220 KB, 1.3% used` (the used part and its share
    of the size)."""
    digits, _, unit = value.partition(" ")
    try:
        size = float(digits) * _KIB[unit.lower()]
    except (KeyError, ValueError):
        return None
    used, *share = map(float, _NUMBER.findall(shown))
    if not share:
        return used == size
    if size <= 0 or not used:
        return None
    return abs(100 * used / size - share[0]) <= _ROUNDING + 100 / size


def _store(value: str, shown: str) -> bool | None:
    """Compare with `TYPE PATH MIB [FIRST SECOND]` per store, separated by commas."""
    stores = [store.split() for store in shown.split(",")]
    words = value.split()
    return any(words[: len(store)] == store for store in stores) if len(words) >= 3 else None


SHOWN = {
    "cache_mem": Evidence(
        "the cache manager's pages storedir and info",
        f"""
        size=$({_MANAGER}/storedir | sed -n '/^Shared Memory Cache/,/^Current/s/^Maximum Size: *\\([0-9]*\\) KB/\\1/p')
        [ -n "$size" ] || size=$({_MANAGER}/info | sed -n '
            s/^[[:blank:]]*Storage Mem size:[[:blank:]]*\\([0-9]*\\) KB/\\1/p
            s/^[[:blank:]]*Storage Mem capacity:[[:blank:]]*\\([0-9.]*\\)% used.*/\\1/p')
        set -- $size
        [ -z "$1" ] || echo "$1 KB${{2:+, $2% used}}"
        """,
        _memory,
        is_whole=True,
    ),
    "cache_dir": Evidence(
        "the cache manager's page storedir",
        f"""
        {_MANAGER}/storedir | awk '
            /^Store Directory #/ {{ row = row comma substr($4, 2, length($4) - 3) " " $5; comma = ","; store = 1 }}
            /^Maximum Size:/ && store {{ row = row " " $3 / 1024 }}
            /^(First|Second) level subdirectories:/ && store {{ levels = levels " " $4 }}
            /^$/ && levels {{ row = row levels; levels = "" }}
            /^Shared Memory Cache/ {{ store = 0 }}
            END {{ print row levels }}'
        """,
        _store,
        is_whole=True,
    ),
    "cache_replacement_policy": Evidence(
        "the cache manager's page storedir",
        f"{_MANAGER}/storedir | sed -n 's/^Removal policy: //p' | sort -u",
        # For heap policies, the page prints `heap` only.
        lambda value, shown: value.partition(" ")[0] == shown,
    ),
    "workers": Evidence(
        "its processes",
        """
        count=0
        for child in $(children "$pid"); do
            case $(tr '\\0' ' ' <"/proc/$child/cmdline") in *'--kid squid-'[0-9]*) count=$((count + 1)) ;; esac
        done
        echo "$count"
        """,
    ),
}
