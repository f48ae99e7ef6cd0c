"""lighttpd's settings: https://redmine.lighttpd.net/projects/lighttpd/wiki/Docs_ConfigurationOptions"""

from cockpit.servers.evidence import LIMIT_OF_FILES, Evidence
from cockpit.servers.settings import Impact, KnownSetting, choice, integer, quantity, word

# doc/initscripts.txt, https://redmine.lighttpd.net/issues/2785: a reload (SIGUSR1) keeps the sockets and the user, and
# does not work in a chroot.
_START = Impact.RESTART
_NAME = word("a name", r"[A-Za-z_][\w.-]{0,31}")
_SLOTS = """
url=$(cat "$file" "${file%/*}"/conf-enabled/*.conf 2>/dev/null |
    sed -n 's/^[[:blank:]]*status\\.status-url[[:blank:]]*=[[:blank:]]*"\\(\\/[^"]*\\)".*/\\1/p' | head -n 1)
[ -z "$url" ] || page "$url?auto" |
    awk '/^(Busy|Idle)Servers:/ { sum += $2; rows++ } END { if (rows == 2) print sum }'
"""
_POLLS = """
worker=$(children "$pid" | head -n 1)
case $(ls -l "/proc/${worker:-$pid}/fd") in *eventpoll*) echo linux-sysepoll ;; ?*) echo another ;; esac
"""

SETTINGS = {
    "server.max-connections": KnownSetting(
        "maximum connections; at most half of server.max-fds",
        integer(1),
        shown=Evidence("the slots of its status page", _SLOTS),
    ),
    # A reload does not change RLIMIT_NOFILE (lighttpd 1.4.69).
    "server.max-fds": KnownSetting(
        "maximum open files; a connection needs one, and one more for a file", integer(1), _START, shown=LIMIT_OF_FILES
    ),
    "server.max-keep-alive-requests": KnownSetting(
        "requests after which a connection is closed; low means more handshakes under load", integer(0, 65535)
    ),
    "server.max-keep-alive-idle": KnownSetting(
        "maximum idle time of a connection (s); short frees connections", integer(0, 65535)
    ),
    "server.max-worker": KnownSetting(
        "processes, 0: single process; matters if one CPU is busy",
        integer(0, 65535),
        shown=Evidence("its processes", 'children "$pid" | wc -l'),
    ),
    "server.event-handler": KnownSetting(
        "system call that polls connections; poll and select are slow with many connections",
        choice("linux-sysepoll", "poll", "select", "libev"),
        shown=Evidence(
            "its open files", _POLLS, lambda value, shown: (value == "linux-sysepoll") == (shown == "linux-sysepoll")
        ),
    ),
    "server.stat-cache-engine": KnownSetting(
        "cache of stat results; matters for static files", choice("simple", "inotify", "disable")
    ),
    "server.network-backend": KnownSetting(
        "system call that sends files; sendfile saves a copy", choice("writev", "sendfile")
    ),
    "deflate.max-compress-size": KnownSetting("KiB; larger files are sent uncompressed", integer()),
    "deflate.min-compress-size": KnownSetting("bytes; smaller files are sent uncompressed", integer()),
    "deflate.work-block-size": KnownSetting(
        "KiB compressed before other connections are served; high delays other connections", integer(0, 65535)
    ),
    "deflate.output-buffer-size": KnownSetting(
        "bytes of compressed output per write, 0: default; large saves system calls", integer()
    ),
    "deflate.max-loadavg": KnownSetting(
        "load average above which nothing is compressed; saves CPU under load", quantity("a load average", "4.00")
    ),
    "server.port": KnownSetting(
        "port that accepts connections; clients and proxies must use it", integer(0, 65535), _START
    ),
    "server.bind": KnownSetting(
        "address that accepts connections; other hosts cannot connect to a loopback address",
        word("an address, or the path of a socket"),
        _START,
    ),
    "server.username": KnownSetting("user of the server; must be able to read the served files", _NAME, _START),
    "server.groupname": KnownSetting("group of the server; must be able to read the served files", _NAME, _START),
    "server.chroot": KnownSetting(
        "root directory of the server; must contain its files and sockets",
        word("an absolute path", r"/\S*"),
        _START,
    ),
}
