"""nginx's settings: https://nginx.org/en/docs/dirindex.html"""

from cockpit.servers.evidence import Evidence
from cockpit.servers.settings import ON_OFF, KnownSetting, integer, parameters, quantity, word

_TIME = quantity("a time", "65s", "ms s m h d w M y")
_SIZE = quantity("a size", "32k", "k m g")
_FILE_CACHE = parameters("max=N inactive=TIME", max=integer(1), inactive=_TIME).or_word("off")
_LOG = parameters(
    "PATH [FORMAT] [buffer=SIZE] [gzip=LEVEL] [flush=TIME], or off",
    others=True,
    buffer=_SIZE,
    flush=_TIME,
    gzip=integer(1, 9),
)

_WORKERS = """
workers=
for child in $(children "$pid"); do
    case $(tr '\\0' ' ' <"/proc/$child/cmdline") in
        *shutting*) ;;
        *'worker process'*) workers="$workers $child" ;;
    esac
done
"""


def _count(value: str, shown: str) -> bool | None:
    """Compare with `WORKERS CPUS`."""
    count, cpus = shown.split()
    return count == (cpus if value == "auto" else value)


SETTINGS = {
    "worker_processes": KnownSetting(
        "processes that serve requests; matters if one CPU is busy while others are idle",
        integer(1).or_word("auto"),
        shown=Evidence("its processes", f'{_WORKERS} set -- $workers; echo "$# $(getconf _NPROCESSORS_ONLN)"', _count),
    ),
    "worker_connections": KnownSetting(
        "maximum connections per worker, to clients and upstreams; more wait or fail", integer(1)
    ),
    "worker_rlimit_nofile": KnownSetting(
        "open files per worker; each connection needs one or two",
        integer(1),
        shown=Evidence(
            "the limits of its processes", f'{_WORKERS} for worker in $workers; do open_files "$worker"; done | sort -u'
        ),
    ),
    "keepalive_timeout": KnownSetting(
        "maximum idle time of a client connection; short frees connections, long saves handshakes", _TIME
    ),
    "keepalive_requests": KnownSetting(
        "requests after which a client connection is closed; low means more handshakes under load", integer(1)
    ),
    "sendfile": KnownSetting("sends files from the page cache without copying them; matters for static files", ON_OFF),
    "tcp_nopush": KnownSetting("sends headers and the start of a file in one packet; needs sendfile on", ON_OFF),
    "tcp_nodelay": KnownSetting(
        "sends small packets at once on keep-alive connections; off delays short responses", ON_OFF
    ),
    "gzip": KnownSetting(
        "compresses responses: less bandwidth, more CPU/request; matters for text on slow links", ON_OFF
    ),
    "gzip_comp_level": KnownSetting(
        "compression effort; levels above 3–5 cost much CPU/request for few bytes", integer(1, 9)
    ),
    "open_file_cache": KnownSetting(
        "caches file descriptors and sizes of served files; saves open and stat with many static files", _FILE_CACHE
    ),
    "access_log": KnownSetting("the access log; buffer= saves a write per request, off saves all writes", _LOG),
    "proxy_cache": KnownSetting(
        "cache zone for responses (keys_zone of a proxy_cache_path); matters if the upstream is slow",
        word("a zone, or off"),
    ),
    "http2": KnownSetting(
        "HTTP/2 with clients (nginx 1.25.1 or later); matters with many requests per page and slow links", ON_OFF
    ),
    "listen http2": KnownSetting(
        "HTTP/2 on the TLS sockets of a server, before nginx 1.25.1; servers that share a socket share it", ON_OFF
    ),
    "http2_max_concurrent_streams": KnownSetting(
        "concurrent requests per HTTP/2 connection (default 128); more are sent by the client later", integer(1)
    ),
    "keepalive": KnownSetting(
        "idle connections to the upstream per worker; needs proxy_http_version 1.1 and an empty Connection header",
        integer(1),
    ),
}
