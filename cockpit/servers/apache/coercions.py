"""Values that Apache silently corrects. Pure."""

from __future__ import annotations

from collections.abc import Callable

# Apache parses these with atoi(): text becomes 0, and passes the configuration test (`apache2 -t`, 2.4).
WHOLE_NUMBERS = frozenset(
    (
        *("startservers", "minspareservers", "maxspareservers", "maxrequestworkers", "maxclients", "serverlimit"),
        *("threadlimit", "threadsperchild", "minsparethreads", "maxsparethreads", "threadstacksize", "maxmemfree"),
        *("maxconnectionsperchild", "maxrequestsperchild", "maxkeepaliverequests", "gracefulshutdowntimeout"),
        *("listenbacklog", "listencoresbucketsratio", "sendbuffersize", "receivebuffersize"),
        *("h2maxsessionstreams", "h2minworkers", "h2maxworkers"),
        *("limitrequestfields", "limitrequestfieldsize", "limitrequestline"),
    )
)
# Apache's defaults.
_DEFAULTS = {
    "MinSpareServers": 5,
    "MaxSpareServers": 10,
    "MinSpareThreads": 75,
    "MaxSpareThreads": 250,
    "ThreadsPerChild": 25,
}
_SERVERS = ("MinSpareServers", "MaxSpareServers")
_THREADS = ("MinSpareThreads", "MaxSpareThreads", "ThreadsPerChild")


def coerced_pair(name: str, number_of: Callable[[str], int | None]) -> str:
    """Return a note if Apache raises the maximum of spare servers or threads, and `name` belongs to these settings; ""
    if not."""
    if name.lower() in map(str.lower, _SERVERS):
        low, high = (_number(number_of, setting) for setting in _SERVERS)
        return _note("MaxSpareServers", high, low + 1, "MinSpareServers + 1")
    if name.lower() in map(str.lower, _THREADS):
        low, high, each = (_number(number_of, setting) for setting in _THREADS)
        return _note("MaxSpareThreads", high, low + each, "MinSpareThreads + ThreadsPerChild")
    return ""


def _number(number_of: Callable[[str], int | None], name: str) -> int:
    number = number_of(name)
    return _DEFAULTS[name] if number is None else number


def _note(name: str, value: int, least: int, rule: str) -> str:
    return f"Apache silently raises {name} {value} to {least}: it must be at least {rule}" * (value < least)
