"""squid's settings: http://www.squid-cache.org/Doc/config/"""

from cockpit.servers.settings import Impact, KnownSetting, choice, integer, leading, quantity

_SIZE = quantity("a size", "256 MB", "bytes KB MB GB")
_POLICY = choice("lru", "heap GDSF", "heap LFUDA", "heap LRU")

SETTINGS = {
    "cache_mem": KnownSetting(
        "memory for hot objects, in addition to that of squid itself; matters for the latency of hits", _SIZE
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
    ),
    "memory_replacement_policy": KnownSetting(
        "eviction policy of the memory cache; matters if cache_mem is full", _POLICY, Impact.RESTART
    ),
    "cache_dir": KnownSetting(
        "store on disk, e.g. `ufs /var/spool/squid 100 16 256` (MB); aufs and rock do not block",
        leading("ufs", "aufs", "diskd", "rock"),
    ),
    # On a reconfigure, squid warns that changing the workers requires a restart.
    "workers": KnownSetting(
        "worker processes; matters if one CPU is busy; each needs its own ufs store", integer(), Impact.RESTART
    ),
}
