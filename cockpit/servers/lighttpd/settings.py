"""lighttpd's settings: https://redmine.lighttpd.net/projects/lighttpd/wiki/Docs_ConfigurationOptions"""

from cockpit.servers.settings import Impact, KnownSetting, choice, integer, quantity

# doc/initscripts.txt, https://redmine.lighttpd.net/issues/2785: a reload (SIGUSR1) keeps the sockets and the user of
# the start, and does not work in a chroot.
_START = Impact.RESTART

SETTINGS = {
    "server.max-connections": KnownSetting("connections at the same time; at most half of server.max-fds", integer(1)),
    # RLIMIT_NOFILE of a running lighttpd 1.4.69 is the same after a reload.
    "server.max-fds": KnownSetting(
        "open files; each connection takes one, and one more for a file", integer(1), _START
    ),
    "server.max-keep-alive-requests": KnownSetting("requests after which a connection is closed", integer(0, 65535)),
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
        "KiB that are compressed before other connections continue", integer(0, 65535)
    ),
    "deflate.output-buffer-size": KnownSetting("bytes of compressed output per write, 0: default", integer()),
    "deflate.max-loadavg": KnownSetting(
        "load average above which nothing is compressed", quantity("a load average", "4.00")
    ),
    "server.port": KnownSetting("port that accepts connections", integer(0, 65535), _START),
    "server.bind": KnownSetting("address that accepts connections", impact=_START),
    "server.username": KnownSetting("user of the server", impact=_START),
    "server.groupname": KnownSetting("group of the server", impact=_START),
    "server.chroot": KnownSetting("root directory of the server", impact=_START),
}
