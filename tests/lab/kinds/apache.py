"""Apache of web1, with Debian's configuration, and a second master with a file of its own."""

from cockpit.model.hosts import StatusPage
from tests.lab.kinds import KindCase, KindChange
from tests.lab.kinds.asking import END_HELD, established, has_header, header, held_open, written

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
ServerLimit 1
ThreadsPerChild 4
MaxRequestWorkers 4
KeepAliveTimeout 5
"""
_MPM, _CONFIG = "/etc/apache2/mods-available/mpm_prefork.conf", "/etc/apache2/apache2.conf"
_DEFLATE, _SECOND_CONFIG = "/etc/apache2/mods-available/deflate.conf", "/srv/apache2/own.conf"
_LOG = "/var/log/apache2/access.log"
_URL, _OWN = "http://localhost/hello.html", "http://localhost:8095/hello.html"

CASE = KindCase(
    name="apache",
    title="Apache",
    port=PORT,
    start=f"""
        install -d /srv/apache2 /var/www/html/kinds
        printf %s '{_SECOND}' >/srv/apache2/own.conf
        echo 'Require all denied' >/var/www/html/kinds/.htaccess
        touch /var/www/html/kinds/index.html
        apache2 -f /srv/apache2/own.conf
        until curl -sS --fail http://localhost:8095/hello.html; do sleep 0.02; done
    """,
    stop=f"""
        {END_HELD}
        kill $(cat /run/apache2-own.pid)
        while [ -e /run/apache2-own.pid ]; do sleep 0.02; done
        rm -r /var/www/html/kinds
    """,
    second="pgrep -P $(cat /run/apache2-own.pid) | sort",
    places="/etc/apache2 /srv/apache2",
    changes=(
        KindChange("StartServers", "12", "pgrep -c -P $(cat /run/apache2/apache2.pid)", "12"),
        KindChange("MaxSpareServers", "14", "pgrep -c -P $(cat /run/apache2/apache2.pid)", "12"),
        KindChange("KeepAliveTimeout", "3", f"{header(_URL, 'keep-alive')} | cut -d , -f 1", "timeout=3"),
        KindChange("MaxKeepAliveRequests", "7", f"{header(_URL, 'keep-alive')} | cut -d , -f 2", "max=7"),
        KindChange("mod_deflate", "off", has_header(_URL, "content-encoding"), "0"),
        KindChange(
            "AllowOverride", "All", "curl -sS -o /dev/null -w '%{http_code}' http://localhost/kinds/index.html", "403"
        ),
        # Apache does not print the others.
        KindChange("MinSpareServers", "6", written("MinSpareServers +6$", _MPM), "1"),
        KindChange("MaxRequestWorkers", "140", written("MaxRequestWorkers +140$", _MPM), "1"),
        KindChange("MaxConnectionsPerChild", "990", written("MaxConnectionsPerChild +990$", _MPM), "1"),
        KindChange("ServerLimit", "200", written("ServerLimit +200$", _MPM), "1"),
        KindChange("ListenBacklog", "77", written("ListenBacklog +77$", _MPM), "1"),
        KindChange("Timeout", "99", written("^Timeout 99$", _CONFIG), "1"),
        KindChange("HostnameLookups", "Double", written("^HostnameLookups Double$", _CONFIG), "1"),
        KindChange("EnableSendfile", "On", written("^EnableSendfile On$", _CONFIG), "1"),
        KindChange("EnableMMAP", "Off", written("^EnableMMAP Off$", _CONFIG), "1"),
    ),
    later=(
        KindChange("KeepAlive", "Off", header(_URL, "keep-alive"), ""),
        KindChange("DeflateCompressionLevel", "2", written("DeflateCompressionLevel 2$", _DEFLATE), "1"),
    ),
    malformed=("KeepAlive", "yes", "KeepAlive takes On or Off, not 'yes'"),
    failing=("KeepAliveTimeout", "1.5", "KeepAliveTimeout has wrong format"),
    apart=(
        KindChange("KeepAliveTimeout-8095", "7", header(_OWN, "keep-alive"), "timeout=7, max=100"),
        KindChange("MaxConnectionsPerChild-8095", "500", written("^MaxConnectionsPerChild 500$", _SECOND_CONFIG), "1"),
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
