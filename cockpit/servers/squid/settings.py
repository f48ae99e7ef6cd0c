"""squid's settings: http://www.squid-cache.org/Doc/config/"""

from cockpit.servers.settings import Impact, KnownSetting, choice, integer, leading, quantity

_SIZE = quantity("a size", "256 MB", "bytes KB MB GB")
_POLICY = choice("lru", "heap GDSF", "heap LFUDA", "heap LRU")

SETTINGS = {
    "cache_mem": KnownSetting("memory for hot objects, beside that of squid itself; matters for the hit time", _SIZE),
    "maximum_object_size_in_memory": KnownSetting(
        "larger objects are not kept in memory; matters if popular objects come from disk", _SIZE
    ),
    "maximum_object_size": KnownSetting(
        "larger objects are not cached on disk; matters for each cache_dir below it in the file", _SIZE
    ),
    # A reconfigure keeps the policies with which the stores were opened: squid 5.7 prints the old one in mgr:storedir.
    "cache_replacement_policy": KnownSetting(
        "the objects on disk that are removed first: GDSF for hit rate, LFUDA for byte hit rate; above cache_dir",
        _POLICY,
        Impact.RESTART,
    ),
    "memory_replacement_policy": KnownSetting(
        "the objects in memory that are removed first; matters if cache_mem is full", _POLICY, Impact.RESTART
    ),
    "cache_dir": KnownSetting(
        "store on disk, as `ufs /var/spool/squid 100 16 256` (MB); aufs and rock do not block",
        leading("ufs", "aufs", "diskd", "rock"),
    ),
    # Squid's warning on a reconfigure: changing the workers requires a restart of the proxy.
    "workers": KnownSetting(
        "processes; matters if one CPU is busy; ufs stores need one each", integer(), Impact.RESTART
    ),
}
