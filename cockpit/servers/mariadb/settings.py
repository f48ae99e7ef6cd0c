"""MariaDB's settings: https://mariadb.com/kb/en/server-system-variables/"""

from cockpit.servers.settings import Impact, KnownSetting, choice, integer, word

_FACTORS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def _in_bytes(value: str) -> str:
    """Convert a size such as `128M` to bytes, as printed by the running server."""
    factor = _FACTORS.get(value[-1:].upper())
    return str(int(value[:-1]) * factor) if factor and value[:-1].isdecimal() else value


_LIVE = Impact.LIVE
_SIZE = word("a size such as 128M", "[0-9]{1,18}[KMGTkmgt]?")

# All are dynamic: SET GLOBAL activates a value, the file keeps it across restarts.
SETTINGS = {
    "max_connections": KnownSetting("maximum connections, more fail; each takes memory", integer(10, 100000), _LIVE),
    "thread_cache_size": KnownSetting(
        "threads kept for new connections; matters without a connection pool", integer(0, 16384), _LIVE
    ),
    "table_open_cache": KnownSetting(
        "open tables over all connections; too low means frequent reopening of files", integer(10, 1048576), _LIVE
    ),
    "innodb_buffer_pool_size": KnownSetting(
        "memory for data and indexes; matters most if the data does not fit in memory", _SIZE, _LIVE, _in_bytes
    ),
    "query_cache_type": KnownSetting(
        "cache of query results; lock contention with many writes", choice("OFF", "ON", "DEMAND"), _LIVE, str.upper
    ),
    "query_cache_size": KnownSetting(
        "memory for cached results; matters if query_cache_type is ON", _SIZE, _LIVE, _in_bytes
    ),
    "query_cache_limit": KnownSetting(
        "larger results are not cached; matters if query_cache_type is ON", _SIZE, _LIVE, _in_bytes
    ),
    "max_allowed_packet": KnownSetting("maximum packet; larger rows and statements fail", _SIZE, _LIVE, _in_bytes),
    "wait_timeout": KnownSetting(
        "maximum idle time of a connection (s); short frees max_connections", integer(1, 31536000), _LIVE
    ),
}
