"""Apache of web1, with Debian's configuration, and a second master with a file of its own."""

from cockpit.model.hosts import StatusPage
from tests.lab.kinds import Change, KindCase
from tests.lab.kinds.asking import END_HELD, after_silence, established, has_header, header, held_open, written

PORT = 80
_SECOND = """\
ServerRoot /srv/apache2
PidFile /run/apache2-own.pid
ErrorLog /var/log/apache2-own.log
Listen 8095
ServerName localhost
User www-data
Group www-data
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
DocumentRoot /var/www/html
StartServers 1
ServerLimit 8
ThreadsPerChild 4
MinSpareThreads 2
MaxSpareThreads 8
MaxRequestWorkers 40
KeepAliveTimeout 5
"""
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
_FILES = "/etc/apache2/*.conf /etc/apache2/*-enabled/*.conf"
CASE = KindCase(
    name="apache",
    title="Apache",
    port=PORT,
    start=f"""
        install -d /srv/apache2 /var/www/html/kinds
        printf %s '{_SECOND}' >/srv/apache2/own.conf
        echo 'Require all denied' >/var/www/html/kinds/.htaccess
        touch /var/www/html/kinds/index.html
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
        # Nothing in a running Apache shows the settings that are only looked for in the files.
        Change("EnableSendfile", "On", written("EnableSendfile +On", _FILES), "1"),
        Change("Timeout", "1", after_silence(PORT, 3, "GET"), "closed"),
    ),
    later=(
        (
            Change("KeepAlive", "Off", header(_URL, "keep-alive"), ""),
            Change("EnableMMAP", "Off", written("EnableMMAP +Off", _FILES), "1"),
            Change("DeflateCompressionLevel", "1", written("DeflateCompressionLevel +1", _FILES), "1"),
            Change("MinSpareServers", "7", _COUNT, "7"),
            Change("MaxMemFree", "512", written("MaxMemFree +512", _FILES), "1"),
        ),
        (Change("MaxRequestWorkers", "3", _COUNT, "3"),),
        (
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
            Change("ListenBacklog", "77", f"{_RESTART}; ss -ltnH sport = :80 | awk '{{ print $3 }}' | sort -u", "77"),
            # The kernel doubles both.
            Change("SendBufferSize", "65536", f"{_SOCKETS} | grep -o ',tb131072,' | sort -u", ",tb131072,"),
            Change("ReceiveBufferSize", "32768", f"{_SOCKETS} | grep -o ',rb65536,' | sort -u", ",rb65536,"),
        ),
    ),
    malformed=("KeepAlive", "yes", "KeepAlive takes On or Off, not 'yes'"),
    failing=("KeepAliveTimeout", "1.5", "KeepAliveTimeout has wrong format"),
    apart=(
        Change("KeepAliveTimeout-8095", "7", header(_OWN, "keep-alive"), "timeout=7, max=100"),
        Change("ThreadsPerChild", "5", f"ls /proc/$({_OWN_CHILDREN} -o)/task | wc -l", "7"),
        Change("MinSpareThreads", "12", _OWN_COUNT, "3"),
        Change("MaxSpareThreads", "20", _OWN_COUNT, "3"),
        Change("ThreadStackSize", "1048576", written("ThreadStackSize 1048576", _SECOND_CONFIG), "1"),
        Change("MaxRequestWorkers-8095", "15", written("MaxRequestWorkers 15", _SECOND_CONFIG), "1"),
        Change("MaxConnectionsPerChild-8095", "500", written("MaxConnectionsPerChild 500", _SECOND_CONFIG), "1"),
        Change("AsyncRequestWorkerFactor", "3", written("AsyncRequestWorkerFactor 3", _SECOND_CONFIG), "1"),
        Change("ThreadLimit", "200", written("ThreadLimit 200", _SECOND_CONFIG), "1"),
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
