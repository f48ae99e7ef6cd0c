"""lighttpd with Debian's configuration and its status page on, and a second server with a file of its own."""

from cockpit.model.hosts import StatusPage
from tests.lab.kinds import KindCase, KindChange
from tests.lab.kinds.asking import connections, written
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


def _set(name: str, value: int | str) -> str:
    return written(f"^server.{name} *= {value}$", CONFIG)


CASE = KindCase(
    name="lighttpd",
    title="lighttpd",
    port=PORT,
    start=f"""
        {"; ".join(LIGHTTPD.prepare)}
        install -d /srv/lighttpd2
        printf %s '{_SECOND}' >/srv/lighttpd2/own.conf
        {LIGHTTPD.start}
        lighttpd -f /srv/lighttpd2/own.conf
        until curl -sS --fail {_URL}/hello.html && curl -sS --fail {_OWN}; do sleep 0.02; done
    """,
    stop=LIGHTTPD.stop,
    second="cat /run/lighttpd2.pid",
    places="/etc/lighttpd /srv/lighttpd2",
    changes=(
        KindChange("server.max-connections", "77", _SLOTS, "77"),
        KindChange("server.max-keep-alive-requests", "1", connections(f"{_URL}/hello.html", 3), "1"),
        KindChange("server.event-handler", "poll", _POLLS, "0"),
        # The running server does not print these.
        KindChange("server.max-fds", "2222", _set("max-fds", 2222), "1"),
        KindChange("server.max-keep-alive-idle", "7", _set("max-keep-alive-idle", 7), "1"),
        KindChange("server.stat-cache-engine", "disable", _set("stat-cache-engine", '"disable"'), "1"),
        KindChange("server.network-backend", "writev", _set("network-backend", '"writev"'), "1"),
    ),
    malformed=(
        "server.max-connections",
        "many",
        "server.max-connections takes a whole number of at least 1, not 'many'",
    ),
    failing=("server.max-connections", "many", "got a string but expected a short"),
    unchecked="server.max-write-idle",
    apart=(
        KindChange(f"server.max-keep-alive-requests-{PORT + 2}", "1", connections(_OWN, 3), "1"),
        KindChange(f"server.max-worker-{PORT + 2}", "2", "pgrep -c -P $(cat /run/lighttpd2.pid)", "2"),
    ),
    page=StatusPage(kind="lighttpd", url=f"{_URL}/server-status?auto"),
    # The page counts the connection that requests it.
    own=f"echo BusyServers=$((1 + $(ss -Htn state established sport = :{PORT} | wc -l)))",
    load=f"ab -q -n 50 {_URL}/hello.html",
)
