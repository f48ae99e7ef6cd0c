"""Caddy's settings: https://caddyserver.com/docs/caddyfile"""

from cockpit.servers.settings import KnownSetting, integer, names, word

# A matcher (a path, *, or a name) can precede the encodings.
_ENCODINGS = word(
    "gzip, zstd or both, in order of preference", r"(?:(?:\*|/\S*|@[\w-]+) )?(?:gzip|zstd|br)(?: (?:gzip|zstd|br))*"
)
_TIME = word("a time with its unit such as 30s or 5m", r"0|(?:[0-9]{1,9}(?:\.[0-9]{1,9})?(?:ns|us|µs|ms|s|m|h|d))+")
_SIZE = word("a size such as 16KB", r"[0-9]{1,12}(?:\.[0-9]{1,3})?(?:[KMGkmg]i?[Bb]?|[Bb])?")
SETTINGS = {
    "encode": KnownSetting(
        "compresses responses: less bandwidth, more CPU/request; unset: off",
        _ENCODINGS,
    ),
    "protocols": KnownSetting(
        "HTTP versions offered to clients (default h1 h2 h3); h2 and h3 matter with many requests per page",
        names("h1 h2 h2c h3"),
    ),
    "idle": KnownSetting(
        "maximum idle time of a client connection (default 5m); short frees connections, long saves handshakes", _TIME
    ),
    "read_header": KnownSetting("maximum time to receive a request's headers; disconnects slow clients", _TIME),
    "read_body": KnownSetting("maximum time to receive a request; aborts slow uploads", _TIME),
    "write": KnownSetting("maximum time to send a response; aborts slow downloads", _TIME),
    "max_header_size": KnownSetting(
        "maximum size of a request's headers (default 1MB); larger ones are refused with 431",
        _SIZE,
    ),
    "keepalive_interval": KnownSetting("time between TCP keep-alive probes; short detects dead peers sooner", _TIME),
    "keepalive": KnownSetting(
        "maximum idle time of an upstream connection (default 2m); off: one connection per request",
        _TIME.or_word("off"),
    ),
    "keepalive_idle_conns": KnownSetting(
        "idle connections to all upstreams, 0: no limit; fewer than clients means new connections", integer()
    ),
    "keepalive_idle_conns_per_host": KnownSetting(
        "idle connections kept per upstream (default 32); fewer than clients means new connections", integer(1)
    ),
    "max_conns_per_host": KnownSetting("connections per upstream, 0: no limit; more requests are queued", integer()),
}
