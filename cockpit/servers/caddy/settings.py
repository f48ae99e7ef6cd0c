"""Caddy's settings: https://caddyserver.com/docs/caddyfile"""

import re

from cockpit.servers.settings import KnownSetting, ValueForm, integer

# A path, *, or a named matcher may be before the encodings.
_ENCODINGS = re.compile(r"(?:(?:\*|/\S*|@[\w-]+) )?(?:gzip|zstd|br)(?: (?:gzip|zstd|br))*")
_DURATION = re.compile(r"0|(?:[0-9]{1,9}(?:\.[0-9]{1,9})?(?:ns|us|µs|ms|s|m|h|d))+")
_SIZE = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,3})?(?:[KMGkmg]i?[Bb]?|[Bb])?")
_PROTOCOLS = frozenset(("h1", "h2", "h2c", "h3"))


def _protocols(value: str) -> bool:
    words = value.split()
    return 0 < len(words) == len(set(words)) and _PROTOCOLS.issuperset(words)


_TIME = ValueForm("a time with its unit such as 30s or 5m", lambda value: bool(_DURATION.fullmatch(value)))

SETTINGS = {
    "encode": KnownSetting(
        "compresses responses: less bandwidth, more CPU/request; unset: off",
        ValueForm("gzip, zstd or both, the preferred one first", lambda value: bool(_ENCODINGS.fullmatch(value))),
    ),
    "protocols": KnownSetting(
        "HTTP versions offered to clients (default h1 h2 h3); h2 and h3 matter with many requests per page",
        ValueForm("some of h1 h2 h2c h3, each once", _protocols),
    ),
    "idle": KnownSetting(
        "maximum idle time of a client connection (default 5m); short frees connections, long saves handshakes", _TIME
    ),
    "read_header": KnownSetting("maximum time to receive a request's headers; stops slow clients", _TIME),
    "read_body": KnownSetting("maximum time to receive a request; stops slow uploads", _TIME),
    "write": KnownSetting("maximum time to send a response; cuts slow downloads off", _TIME),
    "max_header_size": KnownSetting(
        "maximum size of a request's headers (default 1MB); larger ones are refused with 431",
        ValueForm("a size such as 16KB", lambda value: bool(_SIZE.fullmatch(value))),
    ),
    "keepalive_interval": KnownSetting("time between TCP keep-alive probes; short finds dead peers soon", _TIME),
    "keepalive": KnownSetting(
        "idle time of connections to the upstream (default 2m); off: each request is a new one", _TIME.or_word("off")
    ),
    "keepalive_idle_conns": KnownSetting(
        "idle connections to all upstreams, 0: no limit; fewer than clients cost new connections", integer()
    ),
    "keepalive_idle_conns_per_host": KnownSetting(
        "idle connections kept per upstream (default 32); fewer than clients cost new connections", integer(1)
    ),
    "max_conns_per_host": KnownSetting("connections per upstream, 0: no limit; requests beyond it wait", integer()),
}
