"""squid's settings: http://www.squid-cache.org/Doc/config/

The cache manager's page `config` is never requested: squid 5.7 exits on this request.
"""

import re

from cockpit.servers.evidence import Evidence
from cockpit.servers.settings import Impact, KnownSetting, choice, integer, leading, quantity

_SIZE = quantity("a size", "256 MB", "bytes KB MB GB")
_POLICY = choice("lru", "heap GDSF", "heap LFUDA", "heap LRU")

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


_MEMORY = f"""
size=$({_MANAGER}/storedir | sed -n '/^Shared Memory Cache/,/^Current/s/^Maximum Size: *\\([0-9]*\\) KB/\\1/p')
[ -n "$size" ] || size=$({_MANAGER}/info | sed -n '
    s/^[[:blank:]]*Storage Mem size:[[:blank:]]*\\([0-9]*\\) KB/\\1/p
    s/^[[:blank:]]*Storage Mem capacity:[[:blank:]]*\\([0-9.]*\\)% used.*/\\1/p')
set -- $size
[ -z "$1" ] || echo "$1 KB${{2:+, $2% used}}"
"""
_STORES = f"""
{_MANAGER}/storedir | awk '
    /^Store Directory #/ {{ row = row comma substr($4, 2, length($4) - 3) " " $5; comma = ","; store = 1 }}
    /^Maximum Size:/ && store {{ row = row " " $3 / 1024 }}
    /^(First|Second) level subdirectories:/ && store {{ levels = levels " " $4 }}
    /^$/ && levels {{ row = row levels; levels = "" }}
    /^Shared Memory Cache/ {{ store = 0 }}
    END {{ print row levels }}'
"""
_KIDS = """
count=0
for child in $(children "$pid"); do
    case $(tr '\\0' ' ' <"/proc/$child/cmdline") in *'--kid squid-'[0-9]*) count=$((count + 1)) ;; esac
done
echo "$count"
"""

SETTINGS = {
    "cache_mem": KnownSetting(
        "memory for hot objects, in addition to that of squid itself; matters for the latency of hits",
        _SIZE,
        shown=Evidence("the cache manager's pages storedir and info", _MEMORY, _memory, is_whole=True),
    ),
    "maximum_object_size_in_memory": KnownSetting(
        "larger objects are not kept in memory; matters if popular objects come from disk", _SIZE
    ),
    "maximum_object_size": KnownSetting(
        "larger objects are not cached on disk; matters for each cache_dir below it in the file", _SIZE
    ),
    # A reconfigure keeps the policy of the open stores: mgr:storedir of squid 5.7 prints the old policy.
    "cache_replacement_policy": KnownSetting(
        "eviction policy of the disk cache: GDSF for hit rate, LFUDA for byte hit rate; above cache_dir",
        _POLICY,
        Impact.RESTART,
        shown=Evidence(
            "the cache manager's page storedir",
            f"{_MANAGER}/storedir | sed -n 's/^Removal policy: //p' | sort -u",
            # For heap policies, the page prints `heap` only.
            lambda value, shown: value.partition(" ")[0] == shown,
        ),
    ),
    "memory_replacement_policy": KnownSetting(
        "eviction policy of the memory cache; matters if cache_mem is full", _POLICY, Impact.RESTART
    ),
    "cache_dir": KnownSetting(
        "store on disk, e.g. `ufs /var/spool/squid 100 16 256` (MB); aufs and rock do not block",
        leading("ufs", "aufs", "diskd", "rock"),
        shown=Evidence("the cache manager's page storedir", _STORES, _store, is_whole=True),
    ),
    # On a reconfigure, squid warns that changing the workers requires a restart.
    "workers": KnownSetting(
        "worker processes; matters if one CPU is busy; each needs its own ufs store",
        integer(),
        Impact.RESTART,
        shown=Evidence("its processes", _KIDS),
    ),
}
