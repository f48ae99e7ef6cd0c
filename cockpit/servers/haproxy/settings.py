"""HAProxy's settings: https://docs.haproxy.org/2.8/configuration.html"""

from cockpit.servers.evidence import Evidence
from cockpit.servers.haproxy.editor import FLAGS
from cockpit.servers.settings import ON_OFF, KnownSetting, choice, integer, leading, names, quantity

_TIME = quantity("a time", "30s or 500ms (a bare number is ms)", "us ms s m h d")
_ALGORITHMS = "roundrobin static-rr leastconn first source uri url_param hdr random rdp-cookie hash log-hash sticky"

_SOCKET = """
socket=$(sed -n 's/^[[:blank:]]*stats[[:blank:]]*socket[[:blank:]]*\\(\\/[^[:blank:]]*\\).*/\\1/p' "$file" | head -n 1)
[ -n "$socket" ] || exit 0
"""
_COLUMN = """
column() { ask "$socket" 'show stat' | awk -F, -v name="$1" -v proxy="${section#* }" -v row="$2" '
    NR == 1 { for (n = 1; n <= NF; n++) at[$n] = n; $1 = substr($1, 3) }
    $1 == proxy && $2 == row { print $at[name] }'; }
"""
_CONNECTIONS = f"""{_SOCKET}{_COLUMN}
case $section in
    global) ask "$socket" 'show info' | sed -n 's/^Maxconn: //p' ;;
    'frontend '* | 'listen '*) column slim FRONTEND ;;
esac
"""

SETTINGS = {
    "maxconn": KnownSetting(
        "maximum concurrent connections of the process or a section; more wait in the listen queue",
        integer(),
        shown=Evidence("its stats socket", _CONNECTIONS),
    ),
    "nbthread": KnownSetting(
        "threads; matters if the CPUs of the process are busy",
        integer(1),
        shown=Evidence(
            "the threads of its newest process", 'newest=$(children "$pid" | tail -n 1); threads "${newest:-$pid}"'
        ),
    ),
    "timeout connect": KnownSetting("maximum time to connect to a server; short retries sooner", _TIME),
    "timeout client": KnownSetting("maximum inactivity of a client; short frees connections", _TIME),
    "timeout server": KnownSetting("maximum inactivity of a server; slower responses become 504", _TIME),
    "timeout http-keep-alive": KnownSetting(
        "maximum time between two requests of a connection; short frees connections", _TIME
    ),
    "timeout http-request": KnownSetting(
        "maximum time to receive a request's headers; disconnects slow clients", _TIME
    ),
    "timeout queue": KnownSetting(
        "maximum time in the queue of a server, then 503; matters with maxconn of a server", _TIME
    ),
    "retries": KnownSetting(
        "further attempts to connect to a server; each adds a delay if the server is down", integer()
    ),
    "balance": KnownSetting(
        "load balancing algorithm; leastconn suits responses of unequal duration",
        leading(*_ALGORITHMS.split()),
        shown=Evidence(
            "its stats socket",
            f"{_SOCKET}{_COLUMN} case $section in 'backend '* | 'listen '*) column algo BACKEND ;; esac",
            lambda value, shown: value.partition(" ")[0].partition("(")[0] == shown,
        ),
    ),
    "http-reuse": KnownSetting(
        "sharing of idle connections to servers between clients; saves handshakes",
        choice("never", "safe", "aggressive", "always"),
    ),
    "bind alpn": KnownSetting(
        "HTTP versions offered on TLS sockets, by preference; unset: http/1.1 only (since 2.7: h2,http/1.1)",
        names("h2,http/1.1,http/1.0", ","),
    ),
    "tune.h2.max-concurrent-streams": KnownSetting(
        "concurrent requests per HTTP/2 connection (default 100), 0: no limit; more are sent by the client later",
        integer(),
    ),
    "tune.h2.initial-window-size": KnownSetting(
        "bytes of a request's body in flight per HTTP/2 stream (default 65536, 65535 before 2.7); matters for uploads",
        integer(0, 2**31 - 1),
    ),
    "tune.h2.max-frame-size": KnownSetting(
        "maximum size of a received HTTP/2 frame (bytes, default 16384), at most tune.bufsize; matters for uploads",
        integer(16384, 2**24 - 1),
    ),
    "tune.h2.header-table-size": KnownSetting(
        "table of repeated request headers per HTTP/2 connection (bytes, default 4096); larger takes memory",
        integer(0, 65536),
    ),
    FLAGS[0]: KnownSetting("keeps connections to clients and servers open (default); saves handshakes", ON_OFF),
    FLAGS[1]: KnownSetting("closes the server connection after each response; frees it for other clients", ON_OFF),
    FLAGS[2]: KnownSetting("closes all connections after each response; each request needs a handshake", ON_OFF),
    FLAGS[3]: KnownSetting("logs the status and the durations of each request; else only its connection", ON_OFF),
}
