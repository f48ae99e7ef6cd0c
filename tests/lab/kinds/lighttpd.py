"""lighttpd with Debian's configuration and its status page on, and a second server with a file of its own."""

from cockpit.model.host.samples import StatusPage
from tests.lab.kinds import Change, KindCase
from tests.lab.kinds.asking import (
    MAKE_FILES,
    TEXT,
    after_silence,
    connections,
    copies,
    get,
    has_header,
    open_files,
    restarted,
    written,
)
from tests.lab.lighttpd import LIGHTTPD, PORT

_SECOND = f"""\
server.document-root = "/var/www/html"
server.port = {PORT + 2}
server.pid-file = "/run/lighttpd2.pid"
server.errorlog = "/var/log/lighttpd2.log"
server.max-keep-alive-requests = 100
"""
_URL = f"http://localhost:{PORT}"
_OWN = f"http://localhost:{PORT + 2}/hello.html"
_SLOTS = f"curl -sS --fail '{_URL}/server-status?auto' | awk '/Servers:/ {{ sum += $2 }} END {{ print sum }}'"
_POLLS = "ls -l /proc/$(cat /run/lighttpd.pid)/fd | grep -c eventpoll"
# 1 if a file that has just grown is never sent with its old length, otherwise 0.
_GROWN = f"""
    cd /var/www/html; for n in $(seq 9); do
        printf %0${{n}}d 0 >grown.new; mv grown.new grown.txt; curl -sS {_URL}/grown.txt | wc -c
    done | sort -u | wc -l | grep -c 9
"""
_RESTART = restarted("/run/lighttpd.pid", LIGHTTPD.start, f"curl -sS --fail {_URL}/hello.html")
_DEFLATE = "/etc/lighttpd/conf-enabled/20-deflate.conf"
_COMPRESSION = """
deflate.min-compress-size = 256
deflate.max-compress-size = 131072
deflate.work-block-size = 2048
deflate.max-loadavg = "0.00"
deflate.allowed-encodings = ( "gzip" )
"""


CASE = KindCase(
    name="lighttpd",
    title="lighttpd",
    port=PORT,
    start=f"""
        {"; ".join(LIGHTTPD.prepare)}
        install -d /srv/lighttpd2 && install -d -o www-data /var/cache/lighttpd/compress
        {MAKE_FILES}
        cp /etc/lighttpd/conf-available/20-deflate.conf {_DEFLATE} && printf %s '{_COMPRESSION}' >>{_DEFLATE}
        printf %s '{_SECOND}' >/srv/lighttpd2/own.conf
        {LIGHTTPD.start}
        lighttpd -f /srv/lighttpd2/own.conf
        until curl -sS --fail {_URL}/hello.html && curl -sS --fail {_OWN}; do sleep 0.02; done
    """,
    stop=LIGHTTPD.stop,
    second="cat /run/lighttpd2.pid",
    places="/etc/lighttpd /srv/lighttpd2",
    changes=(
        Change("server.max-connections", "77", _SLOTS, "77"),
        Change("server.max-keep-alive-requests", "1", connections(f"{_URL}/hello.html", 3), "1"),
        Change("server.event-handler", "poll", _POLLS, "0"),
        Change("server.max-keep-alive-idle", "1", after_silence(PORT, 3, get("/hello.html")), "closed"),
        Change("server.network-backend", "writev", copies("syscr", 50, "cat /run/lighttpd.pid", _URL), "1"),
        Change("deflate.min-compress-size", "50", has_header(f"{_URL}/hello.html", "content-encoding"), "1"),
        Change("deflate.max-compress-size", "9", has_header(f"{_URL}{TEXT}", "content-encoding"), "0"),
        Change("server.stat-cache-engine", "disable", _GROWN, "1"),
        # The running server does not show this.
        Change("deflate.work-block-size", "512", written("deflate.work-block-size = 512", _DEFLATE), "1"),
    ),
    later=(
        (
            # Any load of the last minute is above it.
            Change("deflate.max-loadavg", "0.001", has_header(f"{_URL}{TEXT}", "content-encoding"), "0"),
            # Active after a restart only.
            Change("server.max-fds", "2222", f"{_RESTART}; {open_files('cat /run/lighttpd.pid')}", "2222"),
        ),
    ),
    shown=("server.max-connections", "server.event-handler"),
    malformed=(
        "server.max-connections",
        "many",
        "server.max-connections takes a whole number of at least 1, not 'many'",
    ),
    failing=("server.max-connections", "many", "got a string but expected a short"),
    unchecked="server.max-write-idle",
    apart=(
        Change(f"server.max-keep-alive-requests-{PORT + 2}", "1", connections(_OWN, 3), "1"),
        Change(f"server.max-worker-{PORT + 2}", "2", "pgrep -c -P $(cat /run/lighttpd2.pid)", "2"),
    ),
    page=StatusPage(kind="lighttpd", url=f"{_URL}/server-status?auto"),
    # The page counts the connection that requests it.
    own=f"echo BusyServers=$((1 + $(ss -Htn state established sport = :{PORT} | wc -l)))",
    load=f"ab -q -n 50 {_URL}/hello.html",
)
