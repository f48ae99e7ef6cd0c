"""Apache of web1, with Debian's configuration, and a second master with a file of its own."""

from tests.lab.kinds import KindCase, KindChange
from tests.lab.kinds.asking import has_header, header

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
    stop="""
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
    ),
    malformed=("KeepAlive", "yes", "KeepAlive takes On or Off, not 'yes'"),
    failing=("KeepAliveTimeout", "1.5", "KeepAliveTimeout has wrong format"),
    apart=KindChange("KeepAliveTimeout-8095", "7", header(_OWN, "keep-alive"), "timeout=7, max=100"),
)
