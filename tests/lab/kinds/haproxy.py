"""HAProxy with Debian's configuration in front of web1's Apache, and a second master with a file of its own."""

from cockpit.model.host.samples import StatusPage
from tests.data import data_of
from tests.lab.kinds import Change, KindCase
from tests.lab.kinds.asking import MAKE_PEM, PEM, after_silence, connections, get, http_version, written
from tests.lab.services import stop_all

DATA = data_of(__file__)

PORT, STATS_PORT, TLS_PORT = 8082, 8404, 8449
CONFIG = "/etc/haproxy/haproxy.cfg"
_FRONTENDS = (
    f"frontend web\\n\\tbind :{PORT}\\n\\tdefault_backend app\\nbackend app\\n\\tserver apache 127.0.0.1:80 check\\n"
    f"frontend stats\\n\\tbind 127.0.0.1:{STATS_PORT}\\n\\tstats enable\\n\\tstats uri /stats\\n"
    f"frontend tls\\n\\tbind :{TLS_PORT} ssl crt {PEM}\\n\\tdefault_backend app\\n"
)
# A backend whose responses take 50 ms each, the same with one at a time, and one that accepts no connection.
_SLOW = DATA["slow"]
BACKEND = DATA["backend"]
_SECOND = DATA["second"]
_PAGE = f"curl -sS --fail 'http://localhost:{STATS_PORT}/stats;csv'"
_URL = f"http://localhost:{PORT}/hello.html"
_SOCKET = (
    'python3 -c \'import socket; s = socket.socket(socket.AF_UNIX); s.connect("/run/haproxy/admin.sock");'
    ' s.sendall(b"show {}\\n"); print("".join(iter(lambda: s.recv(4096).decode(), "")))\''
)


def _column(proxy: str, row: str, name: str, csv: str = _SOCKET.format("stat")) -> str:
    """A column of the statistics."""
    head = "NR == 1 { for (n = 1; n <= NF; n++) at[$n] = n }"
    program = f'{head} $1 == "{proxy}" && $2 == "{row}" {{ print $at["{name}"] }}'
    return f"{csv} | awk -F, '{program}'"


def _info(name: str) -> str:
    return f"{_SOCKET.format('info')} | sed -n 's/^{name}: //p'"


def _growth(proxy: str, column: str, requests: str) -> str:
    """How much a counter of a backend grows by some requests."""
    count = _column(proxy, "BACKEND", column)
    return f"old=$({count}); {{ {requests}; }} >/dev/null; echo $(($({count}) - old))"


_STATUS = "curl -sS -o /dev/null -w '%{http_code}\\n'"
# A client that leaves before the five seconds of the default have passed.
_TO_LOST = f"{_STATUS} -m 2 localhost:8098"
_POST = "POST /hello.html HTTP/1.1\\r\\nHost: a\\r\\nContent-Length: 9\\r\\n\\r\\n"


CASE = KindCase(
    name="haproxy",
    title="HAProxy",
    port=PORT,
    start=f"""
        grep -q '^frontend slow' {CONFIG} || printf '{_FRONTENDS}{_SLOW}' >>{CONFIG}
        install -d /run/haproxy /srv/haproxy2
        printf %s '{_SECOND}' >/srv/haproxy2/own.cfg
        printf %s '{BACKEND}' >/srv/haproxy2/slow.py
        setsid python3 /srv/haproxy2/slow.py </dev/null >/dev/null 2>&1 & echo $! >/run/slow.pid
        {MAKE_PEM}
        ip route replace 192.0.2.1 dev lo
        service haproxy start
        haproxy -W -D -p /run/haproxy2.pid -f /srv/haproxy2/own.cfg
        until {_PAGE}; do sleep 0.02; done
    """,
    stop=f"kill $(cat /run/slow.pid); {stop_all('haproxy')}",
    second="pgrep -P $(cat /run/haproxy2.pid) | sort",
    places="/etc/haproxy /srv/haproxy2",
    changes=(
        Change("maxconn", "77", _info("Maxconn"), "77"),
        Change("nbthread", "2", _info("Nbthread"), "2"),
        Change("maxconn-web", "33", _column("web", "FRONTEND", "slim"), "33"),
        Change("balance-app", "leastconn", _column("app", "BACKEND", "algo"), "leastconn"),
        Change("bind-alpn-tls", "h2,http/1.1", http_version(f"https://localhost:{TLS_PORT}/hello.html"), "2"),
        Change("option-httpclose", "on", connections(_URL), "1"),
        Change("balance", "leastconn", _column("slow", "BACKEND", "algo"), "leastconn"),
        Change("tune.h2.max-concurrent-streams", "9", written("tune.h2.max-concurrent-streams 9", CONFIG), "1"),
        # The default of HAProxy is the same without them.
        Change("option-http-keep-alive", "off", written("no option http-keep-alive", CONFIG), "1"),
        Change("option-http-server-close", "off", written("no option http-server-close", CONFIG), "1"),
    ),
    later=(
        (
            Change("timeout-http-request", "1s", after_silence(PORT, 2, "GET"), "closed"),
            Change("timeout-http-keep-alive", "1s", after_silence(PORT, 2, get("/hello.html")), "closed"),
            Change("timeout-client", "1s", after_silence(PORT, 2, _POST), "closed"),
            Change("timeout-server", "20ms", f"{_STATUS} localhost:8092", "504"),
            Change("http-reuse", "always", _growth("app", "connect", "; ".join([f"{_STATUS} {_URL}"] * 3)), "0"),
            Change("timeout-connect", "200ms", _TO_LOST, "503"),
            Change("retries", "2", _growth("lost", "wretr", _TO_LOST), "2"),
            Change(
                "timeout-queue",
                "10ms",
                f"{{ for n in 1 2 3 4; do {_STATUS} localhost:8099 & done; wait; }} | sort -u | head -n 1",
                "503",
            ),
        ),
    ),
    malformed=(
        "timeout-client",
        "soon",
        "timeout client takes a time such as 30s or 500ms (a bare number is ms), not 'soon'",
    ),
    failing=("timeout-client", "99999999d", r"haproxy\.cfg"),
    shown=("maxconn", "nbthread", "balance-app"),
    apart=(Change("maxconn-8094", "60", _info("Maxconn").replace("haproxy/admin", "haproxy2"), "60"),),
    page=StatusPage(kind="haproxy", url="unix:/run/haproxy/admin.sock"),
    own=f"echo web/FRONTEND req_tot=$({_column('web', 'FRONTEND', 'req_tot', _PAGE)})",
    load=f"ab -q -n 50 {_URL}",
)
