"""Apache's settings: https://httpd.apache.org/docs/2.4/mod/directives.html"""

from cockpit.servers.settings import Impact, KnownSetting, choice, integer, leading, quantity, word

_TIME = quantity("a time", "5 or 500ms", "ms s mi min h")
_ON_OFF = choice("On", "Off")
_LISTEN = word("a port such as 80 or 192.0.2.1:80", r"(?:[^\s:\[\]]+:|\[[^\s\[\]]+\]:)?\d{1,5}(?: \w+)?")
_BUFFER = integer(512).or_word("0")
_WORKERS = "requests served at the same time; more wait in the listen queue, each worker takes memory"
_PER_CHILD = "connections after which a process is replaced, 0: never; bounds leaks, costs forks"

SETTINGS = {
    "StartServers": KnownSetting("processes at the start; matters for the first seconds only", integer()),
    "MinSpareServers": KnownSetting("idle processes that are kept ready; more absorb bursts without forks", integer(1)),
    "MaxSpareServers": KnownSetting("idle processes above it end; too low means forks at every burst", integer(1)),
    "MinSpareThreads": KnownSetting("idle threads that are kept ready; more absorb bursts", integer(1)),
    "MaxSpareThreads": KnownSetting("idle threads above it end; too low stops and starts processes", integer(1)),
    "ThreadsPerChild": KnownSetting(
        "threads per process: more threads, fewer processes and less memory; matters with many connections", integer(1)
    ),
    "MaxRequestWorkers": KnownSetting(_WORKERS, integer(1)),
    "MaxClients": KnownSetting(_WORKERS, integer(1)),
    # https://httpd.apache.org/docs/2.4/mod/mpm_common.html: changes of both limits are ignored during a restart.
    "ServerLimit": KnownSetting("upper limit of processes; bounds MaxRequestWorkers", integer(1), Impact.RESTART),
    "ThreadLimit": KnownSetting(
        "upper limit of ThreadsPerChild; matters if that is raised", integer(1), Impact.RESTART
    ),
    # https://httpd.apache.org/docs/2.4/bind.html: changed Listen directives can need a stop and a start.
    "Listen": KnownSetting(
        "address and port that accept connections; clients and proxies in front have to use them",
        _LISTEN,
        Impact.RESTART,
    ),
    # The sockets, and with them their queues, are kept over a reload.
    "ListenBacklog": KnownSetting(
        "length of the listen queue, at most net.core.somaxconn; matters when all workers are busy",
        integer(1),
        Impact.RESTART,
    ),
    "MaxConnectionsPerChild": KnownSetting(_PER_CHILD, integer()),
    "MaxRequestsPerChild": KnownSetting(_PER_CHILD, integer()),
    "MaxMemFree": KnownSetting(
        "KiB of freed memory that a process keeps, 0: all (default 2048); low saves memory after large requests",
        integer(),
    ),
    "ThreadStackSize": KnownSetting(
        "bytes of a thread's stack (default of the system); matters with many threads per process", integer(16384)
    ),
    "SendBufferSize": KnownSetting(
        "bytes of a connection's send buffer, 0: chosen by the kernel; matters on fast, distant links",
        _BUFFER,
        Impact.RESTART,
    ),
    "ReceiveBufferSize": KnownSetting(
        "bytes of a connection's receive buffer, 0: chosen by the kernel; matters for uploads over distant links",
        _BUFFER,
        Impact.RESTART,
    ),
    # Not offered: a graceful reload to another value ends with AH00157 and no workers (Apache 2.4.71).
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
        "several requests per connection; saves handshakes, keeps prefork's workers busy", _ON_OFF
    ),
    "KeepAliveTimeout": KnownSetting(
        "maximum idle time of a connection; matters if it occupies a worker for as long (prefork, worker)", _TIME
    ),
    "MaxKeepAliveRequests": KnownSetting(
        "requests per connection, 0: unlimited; low costs new connections under load", integer()
    ),
    "Timeout": KnownSetting(
        "maximum time of a read or write on a connection; short frees workers from slow clients", _TIME
    ),
    "HostnameLookups": KnownSetting("a DNS lookup per request for the log; slow if On", choice("On", "Off", "Double")),
    "EnableSendfile": KnownSetting("files go to the socket without a copy; matters for static files", _ON_OFF),
    "EnableMMAP": KnownSetting("files are mapped into memory instead of read; matters for static files", _ON_OFF),
    "AllowOverride": KnownSetting(
        "None saves lookups of .htaccess in each directory of a path; matters with deep paths of static files",
        leading("None", "All", "AuthConfig", "FileInfo", "Indexes", "Limit", "Options", "Nonfatal"),
    ),
    "DeflateCompressionLevel": KnownSetting(
        "compression effort: high levels cost CPU/request for few bytes; matters if the CPU is busy", integer(1, 9)
    ),
}
