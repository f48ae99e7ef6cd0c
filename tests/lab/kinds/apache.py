"""Apache of web1, with Debian's configuration, and a second master with a file of its own."""

from cockpit.model.host.samples import StatusPage
from tests.data import data_of
from tests.lab.kinds import Change, KindCase
from tests.lab.kinds.asking import (
    END_HELD,
    MAKE_FILES,
    accept_queue,
    after_silence,
    compressed,
    copies,
    established,
    has_header,
    header,
    held_open,
    http_version,
    restarted,
    while_open,
    written,
)
from tests.lab.services import PREFORK_CONF

DATA = data_of(__file__)

PORT = 80
_SECOND = DATA["second"]
_SECOND_CONFIG = "/srv/apache2/own.conf"
_LOG = "/var/log/apache2/access.log"
_URL, _OWN = "http://localhost/hello.html", "http://localhost:8095/hello.html"
_CHILDREN, _OWN_CHILDREN = "pgrep -P $(cat /run/apache2/apache2.pid)", "pgrep -P $(cat /run/apache2-own.pid)"
_COUNT, _OWN_COUNT = (one.replace("pgrep", "pgrep -c") for one in (_CHILDREN, _OWN_CHILDREN))
_RESTART = "service apache2 restart >/dev/null"
_START_OWN = f"apache2 -f {_SECOND_CONFIG}"
_END_OWN = "kill $(cat /run/apache2-own.pid); while [ -e /run/apache2-own.pid ]; do sleep 0.02; done"
_UP_OWN = f"until curl -sS --fail {_OWN} >/dev/null 2>&1; do sleep 0.02; done"
_LIMIT = f"{_RESTART}; curl -sS localhost/server-status?auto | awk '/^Scoreboard/ {{ print length($2) }}'"
_SOCKETS = f"{_RESTART}; ss -ltnmH sport = :80"
_MAPS = "pmap $({}) | awk '{}'"
_STACKS = _MAPS.format(f"{_OWN_CHILDREN} -n", '/1024K rw/ { n += 1 } END { print (n < 5 ? "few" : "many") }')
# Shared memory for ServerLimit times ThreadLimit workers.
_SCOREBOARD = _MAPS.format("cat /run/apache2-own.pid", '/zero/ { print ($2 + 0 > 300 ? "large" : "small") }')
CASE = KindCase(
    name="apache",
    title="Apache",
    port=PORT,
    start=f"""
        install -d /srv/apache2 /var/www/html/kinds
        printf %s '{_SECOND}' >/srv/apache2/own.conf
        echo 'Require all denied' >/var/www/html/kinds/.htaccess
        touch /var/www/html/kinds/index.html
        {MAKE_FILES}
        {_START_OWN}
        {_UP_OWN}
    """,
    stop=f"""
        {END_HELD}
        {_END_OWN}
        rm -r /var/www/html/kinds
    """,
    second="pgrep -P $(cat /run/apache2-own.pid) | sort",
    places="/etc/apache2 /srv/apache2",
    changes=(
        Change("StartServers", "12", _COUNT, "12"),
        Change("MaxSpareServers", "14", _COUNT, "12"),
        Change("KeepAliveTimeout", "3", f"{header(_URL, 'keep-alive')} | cut -d , -f 1", "timeout=3"),
        Change("MaxKeepAliveRequests", "7", f"{header(_URL, 'keep-alive')} | cut -d , -f 2", "max=7"),
        Change("mod_deflate", "off", has_header(_URL, "content-encoding"), "0"),
        Change(
            "AllowOverride", "All", "curl -sS -o /dev/null -w '%{http_code}' http://localhost/kinds/index.html", "403"
        ),
        Change(
            "HostnameLookups",
            "Double",
            f"curl -sS 127.0.0.1/hello.html -o /dev/null; awk 'END {{ print $1 }}' {_LOG}",
            "localhost",
        ),
        Change("EnableSendfile", "On", copies("rchar", 2 << 20, _CHILDREN, "http://localhost"), "1"),
        Change("Timeout", "1", after_silence(PORT, 2, "GET"), "closed"),
    ),
    later=(
        (
            Change("KeepAlive", "Off", header(_URL, "keep-alive"), ""),
            Change("EnableMMAP", "Off", copies("rchar", 2 << 20, _CHILDREN, "http://localhost"), "1"),
            Change("DeflateCompressionLevel", "1", compressed("http://localhost"), "14"),
            # A child that serves a request is not spare: Apache then starts one more, which stays.
            Change("MinSpareServers", "9", f"{_COUNT} | awk '{{ print ($1 < 9 ? $1 : \"enough\") }}'", "enough"),
            # Apache does not show it.
            Change("MaxMemFree", "512", written("MaxMemFree +512", PREFORK_CONF), "1"),
        ),
        (
            Change("MaxRequestWorkers", "3", _COUNT, "3"),
            Change(
                "MaxConnectionsPerChild",
                "1",
                # Children of before a reload, and spare ones, have ended when the list stays as it is.
                f'old=; until [ "$old" = "$({_CHILDREN})" ]; do old=$({_CHILDREN}); sleep 1.2; done; '
                f"curl -sS {_URL} -o /dev/null; for i in $(seq 50); do "
                "for pid in $old; do [ -e /proc/$pid ] || { echo replaced; exit; }; done; sleep 0.05; done",
                "replaced",
            ),
        ),
        # Active after a restart only.
        (
            Change("ServerLimit", "300", _LIMIT, "280"),
            Change("MaxRequestWorkers", "280", _LIMIT, "280"),
            Change("ListenBacklog", "77", f"{_RESTART}; {accept_queue(PORT)}", "77"),
            # The kernel doubles both.
            Change("SendBufferSize", "65536", f"{_SOCKETS} | grep -o ',tb131072,' | sort -u", ",tb131072,"),
            Change("ReceiveBufferSize", "32768", f"{_SOCKETS} | grep -o ',rb65536,' | sort -u", ",rb65536,"),
        ),
    ),
    malformed=("KeepAlive", "yes", "KeepAlive takes On or Off, not 'yes'"),
    failing=("KeepAliveTimeout", "1.5", "KeepAliveTimeout has wrong format"),
    apart=(
        Change("KeepAliveTimeout-8095", "7", header(_OWN, "keep-alive"), "timeout=7, max=100"),
        # Also two threads that are no workers, and H2MinWorkers.
        Change("ThreadsPerChild", "5", f"ls /proc/$({_OWN_CHILDREN} -o)/task | wc -l", "11"),
        Change("MinSpareThreads", "12", _OWN_COUNT, "3"),
        Change("MaxSpareThreads", "20", _OWN_COUNT, "3"),
        Change("ThreadStackSize", "1048576", _STACKS, "many"),
        Change("Protocols", "h2c http/1.1", http_version(_OWN, "--http2-prior-knowledge"), "2"),
        Change("H2MaxSessionStreams", "9", written("H2MaxSessionStreams 9", _SECOND_CONFIG), "1"),
        Change("H2MinWorkers", "4", written("H2MinWorkers 4", _SECOND_CONFIG), "1"),
        Change("H2MaxWorkers", "8", written("H2MaxWorkers 8", _SECOND_CONFIG), "1"),
        # The processes that serve more partial requests than they have workers.
        Change("MaxRequestWorkers-8095", "15", while_open(8095, 30, _OWN_COUNT, "GET /"), "3"),
        # Nothing in a running Apache shows these two; event ends idle processes by itself.
        Change("MaxConnectionsPerChild-8095", "500", written("MaxConnectionsPerChild 500", _SECOND_CONFIG), "1"),
        Change("AsyncRequestWorkerFactor", "3", written("AsyncRequestWorkerFactor 3", _SECOND_CONFIG), "1"),
        # Active after a restart only.
        Change(
            "ThreadLimit",
            "200",
            f"{restarted('/run/apache2-own.pid', _START_OWN, f'curl -sS --fail {_OWN}')}; {_SCOREBOARD}",
            "large",
        ),
    ),
    page=StatusPage(kind="apache", url="http://localhost/server-status?auto"),
    # A request is counted and logged at its end; the newest one is that of the page.
    own=f"""
        echo "Total Accesses=$(($(wc -l <{_LOG}) - 1))"
        echo "BusyWorkers={established(PORT)}"
    """,
    # Apache accepts a connection when something is sent.
    load=f"""
        service apache2 stop; : >{_LOG}; service apache2 start
        ab -q -n 50 {_URL}; {held_open(PORT, "GET")}
    """,
)
