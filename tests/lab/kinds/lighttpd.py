"""lighttpd with Debian's configuration and its status page on, and a second server with a file of its own."""

from cockpit.model.hosts import StatusPage
from tests.lab.kinds import Change, KindCase
from tests.lab.kinds.asking import MAKE_TEXT, TEXT, after_silence, connections, get, has_header, written
from tests.lab.lighttpd import CONFIG, LIGHTTPD, PORT

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
        {MAKE_TEXT}
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
        Change("server.max-keep-alive-idle", "30", after_silence(PORT, 8, get("/hello.html")), "open"),
        Change("server.network-backend", "writev", written('server.network-backend *= "writev"', CONFIG), "1"),
        Change("deflate.min-compress-size", "50", has_header(f"{_URL}/hello.html", "content-encoding"), "1"),
        Change("deflate.max-compress-size", "9", has_header(f"{_URL}{TEXT}", "content-encoding"), "0"),
        Change("server.stat-cache-engine", "disable", written('server.stat-cache-engine *= "disable"', CONFIG), "1"),
        # The running server does not show this.
        Change("deflate.work-block-size", "512", written("deflate.work-block-size = 512", _DEFLATE), "1"),
    ),
    # Any load of the last minute is above it.
    later=(
        (Change("deflate.max-loadavg", "0.001", has_header(f"{_URL}{TEXT}", "content-encoding"), "0"),),
        (Change("server.max-fds", "2222", written("server.max-fds *= 2222", CONFIG), "1"),),
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
