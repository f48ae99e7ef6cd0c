"""Varnish's parameters: https://varnish-cache.org/docs/7.1/reference/varnishd.html"""

import re

from cockpit.servers.settings import Impact, KnownSetting, ValueForm, integer

_LIVE = Impact.LIVE
_SECONDS = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,3})?")
_STORAGE = re.compile(
    r"(?:\w{1,50}=)?(?:(?:malloc|default|umem)(?:,[0-9]{1,9}[kKmMgGtT]?)?|file,/[\w./-]{1,200},[0-9]{1,9}[kKmMgGtT]?)"
)
_TIME = ValueForm("seconds such as 120 or 0.5", lambda value: bool(_SECONDS.fullmatch(value)))


def _printed(value: str) -> str:
    return f"{float(value):.3f}" if _SECONDS.fullmatch(value) else value


def _time(text: str) -> KnownSetting:
    return KnownSetting(text, _TIME, _LIVE, _printed)


# param.set makes a value active, the file keeps it over a restart; storage is allocated at the start.
SETTINGS = {
    "thread_pools": KnownSetting("pools of threads; more reduce lock contention on many CPUs", integer(1, 32), _LIVE),
    "thread_pool_min": KnownSetting("threads kept in each pool; too few are slow to follow a burst", integer(5), _LIVE),
    "thread_pool_max": KnownSetting("maximum threads of each pool; further requests are queued", integer(5), _LIVE),
    "thread_queue_limit": KnownSetting("requests queued in each pool; further ones are dropped", integer(), _LIVE),
    "default_ttl": _time("seconds that an object is fresh if its server gives no lifetime; counts for new objects"),
    "default_grace": _time("seconds that a stale object is served while it is fetched; counts for new objects"),
    "timeout_idle": _time("seconds that an idle client connection is kept; matters with keep-alive"),
    "storage": KnownSetting(
        "cache storage, with its size; too small evicts objects (lru_nuked)",
        ValueForm("a storage such as malloc,256m", lambda value: bool(_STORAGE.fullmatch(value))),
        Impact.RESTART,
    ),
}
