"""Apache's settings: https://httpd.apache.org/docs/2.4/mod/directives.html"""

from cockpit.servers.evidence import LISTEN_QUEUE, Evidence, at_least
from cockpit.servers.settings import Impact, KnownSetting, choice, integer, leading, names, quantity, word

_TIME = quantity("a time", "5 or 500ms", "ms s mi min h")
_ON_OFF = choice("On", "Off")
_LISTEN = word("a port such as 80 or 192.0.2.1:80", r"(?:[^\s:\[\]]+:|\[[^\s\[\]]+\]:)?\d{1,5}(?: \w+)?")
_PROTOCOLS = names("h2 h2c http/1.1 acme-tls/1")
_BUFFER = integer(512).or_word("0")
_WORKERS = "maximum concurrent requests; more wait in the listen queue, each worker takes memory"
_PER_CHILD = "connections after which a process is replaced, 0: never; bounds leaks, causes forks"

# A process with threads has one thread per worker, one that accepts connections and one that waits for signals.
_COUNT_WORKERS = """
newest=
for child in $(children "$pid"); do [ "$(threads "$child")" -le 2 ] || newest=$child; done
[ -z "$newest" ] || workers=$(($(threads "$newest") - 2))
"""


def _scoreboard(value: str, shown: str) -> bool | None:
    """Compare with the number of workers in total and per process: Apache rounds down to whole processes. After a
    change, slots above the new value can still be in use."""
    every, each = (int(word) for word in shown.split())
    return at_least(str(int(value) // each * each), str(every)) if value.isdecimal() else None


_SCOREBOARD = f"""{_COUNT_WORKERS}
board=$(page '/server-status?auto' | sed -n 's/^Scoreboard: //p')
[ -z "$board" ] || echo "${{#board}} ${{workers:-1}}"
"""

SETTINGS = {
    "StartServers": KnownSetting("processes at startup; matters for the first seconds only", integer()),
    "MinSpareServers": KnownSetting("minimum idle processes; more absorb bursts without forks", integer(1)),
    "MaxSpareServers": KnownSetting("maximum idle processes; too low means forks at every burst", integer(1)),
    "MinSpareThreads": KnownSetting("minimum idle threads; more absorb bursts", integer(1)),
    "MaxSpareThreads": KnownSetting("maximum idle threads; too low stops and starts processes", integer(1)),
    "ThreadsPerChild": KnownSetting(
        "threads per process: more threads, fewer processes and less memory; matters with many connections",
        integer(1),
        shown=Evidence("the threads of its newest process", f'{_COUNT_WORKERS} echo "$workers"', at_least),
    ),
    "MaxRequestWorkers": KnownSetting(
        _WORKERS,
        integer(1),
        shown=Evidence("the scoreboard of its status page", _SCOREBOARD, _scoreboard),
    ),
    "MaxClients": KnownSetting(_WORKERS, integer(1)),
    # https://httpd.apache.org/docs/2.4/mod/mpm_common.html: changes of both limits are ignored during a restart.
    "ServerLimit": KnownSetting("upper limit of processes; bounds MaxRequestWorkers", integer(1), Impact.RESTART),
    "ThreadLimit": KnownSetting(
        "upper limit of ThreadsPerChild; matters if that is raised", integer(1), Impact.RESTART
    ),
    # https://httpd.apache.org/docs/2.4/bind.html: changed Listen directives can need a stop and a start.
    "Listen": KnownSetting(
        "address and port that accept connections; clients and proxies must use them",
        _LISTEN,
        Impact.RESTART,
    ),
    # A reload keeps the listening sockets with their queues.
    "ListenBacklog": KnownSetting(
        "length of the listen queue, at most net.core.somaxconn; matters when all workers are busy",
        integer(1),
        Impact.RESTART,
        shown=LISTEN_QUEUE,
    ),
    "MaxConnectionsPerChild": KnownSetting(_PER_CHILD, integer()),
    "MaxRequestsPerChild": KnownSetting(_PER_CHILD, integer()),
    "MaxMemFree": KnownSetting(
        "freed memory (KiB) that a process keeps, 0: all (default 2048); low saves memory after large requests",
        integer(),
    ),
    "ThreadStackSize": KnownSetting(
        "stack size of a thread (bytes, default: by the system); matters with many threads per process", integer(16384)
    ),
    "SendBufferSize": KnownSetting(
        "send buffer of a connection (bytes), 0: sized by the kernel; matters on fast links with high latency",
        _BUFFER,
        Impact.RESTART,
    ),
    "ReceiveBufferSize": KnownSetting(
        "receive buffer of a connection (bytes), 0: sized by the kernel; matters for uploads with high latency",
        _BUFFER,
        Impact.RESTART,
    ),
    # Not offered as a knob: a graceful reload with another value ends with AH00157 and no workers (Apache 2.4.71).
    "ListenCoresBucketsRatio": KnownSetting(
        "CPUs per listening socket, 0: one socket for all; matters with 16 CPUs or more and many new connections",
        integer(),
        Impact.RESTART,
    ),
    "AsyncRequestWorkerFactor": KnownSetting(
        "idle connections per idle worker that a process (event) accepts; matters with keep-alive",
        quantity("a number", "2 or 1.5"),
    ),
    "KeepAlive": KnownSetting(
        "several requests per connection; saves handshakes, but idle connections occupy prefork's workers", _ON_OFF
    ),
    "KeepAliveTimeout": KnownSetting(
        "maximum idle time of a connection; matters if idle connections occupy workers (prefork, worker)", _TIME
    ),
    "MaxKeepAliveRequests": KnownSetting(
        "requests per connection, 0: unlimited; low means more handshakes under load", integer()
    ),
    "Timeout": KnownSetting(
        "maximum time of a read or write on a connection; short frees workers from slow clients", _TIME
    ),
    "HostnameLookups": KnownSetting("a DNS lookup per request for the log; slow if On", choice("On", "Off", "Double")),
    "EnableSendfile": KnownSetting("sends files without copying them; matters for static files", _ON_OFF),
    "EnableMMAP": KnownSetting("maps files into memory instead of reading them; matters for static files", _ON_OFF),
    "Protocols": KnownSetting(
        "protocols offered to clients, by preference; h2 (TLS) and h2c need mod_http2 and a threaded MPM", _PROTOCOLS
    ),
    "H2MaxSessionStreams": KnownSetting(
        "concurrent requests per HTTP/2 connection (default 100); more are sent by the client later", integer(1)
    ),
    "H2MinWorkers": KnownSetting(
        "HTTP/2 threads per process at least (default ThreadsPerChild); few delay the first requests", integer(1)
    ),
    "H2MaxWorkers": KnownSetting(
        "HTTP/2 threads per process at most (default 1.5 × H2MinWorkers); matters if requests wait for them", integer(1)
    ),
    "AllowOverride": KnownSetting(
        "None saves lookups of .htaccess in each directory of a path; matters for static files in deep paths",
        leading("None", "All", "AuthConfig", "FileInfo", "Indexes", "Limit", "Options", "Nonfatal"),
    ),
    "DeflateCompressionLevel": KnownSetting(
        "compression effort; high levels save few bytes for more CPU/request; matters if the CPU is busy", integer(1, 9)
    ),
}
