"""lighttpd's settings: https://redmine.lighttpd.net/projects/lighttpd/wiki/Docs_ConfigurationOptions"""

from cockpit.servers.settings import Impact, KnownSetting, choice, integer, quantity, word

# doc/initscripts.txt, https://redmine.lighttpd.net/issues/2785: a reload (SIGUSR1) keeps the sockets and the user of
# the start, and does not work in a chroot.
_START = Impact.RESTART
_NAME = word("a name", r"[A-Za-z_][\w.-]{0,31}")

SETTINGS = {
    "server.max-connections": KnownSetting("connections at the same time; at most half of server.max-fds", integer(1)),
    # RLIMIT_NOFILE of a running lighttpd 1.4.69 is the same after a reload.
    "server.max-fds": KnownSetting(
        "open files; each connection takes one, and one more for a file", integer(1), _START
    ),
    "server.max-keep-alive-requests": KnownSetting(
        "requests after which a connection is closed; low costs new connections under load", integer(0, 65535)
    ),
    "server.max-keep-alive-idle": KnownSetting(
        "maximum idle time of a connection (s); short frees connections", integer(0, 65535)
    ),
    "server.max-worker": KnownSetting("processes, 0: a single one; matters if one CPU is busy", integer(0, 65535)),
    "server.event-handler": KnownSetting(
        "system call that watches connections; poll and select are slow with many",
        choice("linux-sysepoll", "poll", "select", "libev"),
    ),
    "server.stat-cache-engine": KnownSetting(
        "caching of stat results; matters for static files", choice("simple", "inotify", "disable")
    ),
    "server.network-backend": KnownSetting(
        "system call that sends files; sendfile saves a copy", choice("writev", "sendfile")
    ),
    "deflate.max-compress-size": KnownSetting("KiB; larger files are sent uncompressed", integer()),
    "deflate.min-compress-size": KnownSetting("bytes; smaller files are sent uncompressed", integer()),
    "deflate.work-block-size": KnownSetting(
        "KiB that are compressed before other connections continue; high delays those", integer(0, 65535)
    ),
    "deflate.output-buffer-size": KnownSetting(
        "bytes of compressed output per write, 0: default; large saves system calls", integer()
    ),
    "deflate.max-loadavg": KnownSetting(
        "load average above which nothing is compressed; saves CPU when it is busy", quantity("a load average", "4.00")
    ),
    "server.port": KnownSetting(
        "port that accepts connections; clients and proxies in front have to use it", integer(0, 65535), _START
    ),
    "server.bind": KnownSetting(
        "address that accepts connections; a loopback address shuts out other hosts",
        word("an address, or the path of a socket"),
        _START,
    ),
    "server.username": KnownSetting("user of the server; matters for the files that it can read", _NAME, _START),
    "server.groupname": KnownSetting("group of the server; matters for the files that it can read", _NAME, _START),
    "server.chroot": KnownSetting(
        "root directory of the server; its files and sockets have to be below it",
        word("an absolute path", r"/\S*"),
        _START,
    ),
}
