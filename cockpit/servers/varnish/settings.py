"""Varnish's parameters: https://varnish-cache.org/docs/7.1/reference/varnishd.html"""

from cockpit.servers.settings import Impact, KnownSetting, integer, word

_LIVE = Impact.LIVE
_STORAGE = word(
    "a storage backend such as malloc,256m",
    r"(?:\w{1,50}=)?(?:(?:malloc|default|umem)(?:,[0-9]{1,9}[kKmMgGtT]?)?|file,/[\w./-]{1,200},[0-9]{1,9}[kKmMgGtT]?)",
)
_TIME = word("seconds such as 120 or 0.5", r"[0-9]{1,9}(?:\.[0-9]{1,3})?")


def _printed(value: str) -> str:
    return f"{float(value):.3f}" if _TIME.matches(value) else value


def _time(text: str) -> KnownSetting:
    return KnownSetting(text, _TIME, _LIVE, _printed)


# param.set activates a value, the file keeps it across restarts. Storage is allocated at startup.
SETTINGS = {
    "thread_pools": KnownSetting("pools of threads; more reduce lock contention on many CPUs", integer(1, 32), _LIVE),
    "thread_pool_min": KnownSetting("minimum threads per pool; too few react slowly to bursts", integer(5), _LIVE),
    "thread_pool_max": KnownSetting("maximum threads per pool; more requests are queued", integer(5), _LIVE),
    "thread_queue_limit": KnownSetting("maximum requests queued per pool; more are dropped", integer(), _LIVE),
    "default_ttl": _time("lifetime (s) of objects for which the backend sets none; affects new objects only"),
    "default_grace": _time("time (s) that a stale object is served while it is fetched; affects new objects only"),
    "timeout_idle": _time("maximum idle time of a client connection (s); matters with keep-alive"),
    "storage": KnownSetting(
        "cache storage, with its size; too small evicts objects (lru_nuked)",
        _STORAGE,
        Impact.RESTART,
    ),
}
