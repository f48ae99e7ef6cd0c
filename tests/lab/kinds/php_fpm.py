"""PHP-FPM behind an nginx of its own: Debian's pool www, and a second master with the pool api."""

from cockpit.model.host.samples import StatusPage
from tests.data import data_of
from tests.lab.kinds import Change, KindCase
from tests.lab.kinds.asking import written
from tests.lab.services import nginx_config

DATA = data_of(__file__)

PORT = 8085
_POOL = "/etc/php/*/fpm/pool.d/www.conf"
_PASS = "include /etc/nginx/fastcgi_params; fastcgi_pass unix:/run/php/php-www.sock; fastcgi_param SCRIPT_FILENAME {};"
_NGINX = nginx_config(
    f"{PORT}",
    f"location / {{ {_PASS.format('/srv/php/index.php')} }}"
    f"location /status {{ {_PASS.format('$fastcgi_script_name')} }}",
    pid="/run/kinds-nginx.pid",
    log="/var/log/kinds-nginx.log",
)
_SECOND = DATA["second"]
_PAGE = '<?php usleep(1000 * (int) ($_GET["ms"] ?? 0)); echo isset($_GET["ini"]) ? ini_get($_GET["ini"]) : getmypid();'
_COUNT = "pgrep -c -f '^php-fpm: pool {}'"
_ASK = f"curl -sS --fail 'http://localhost:{PORT}/{{}}'"

_PROCESSES = f"for n in 1 2 3 4 5 6 7 8 9; do {_ASK.format('')}; echo; done | sort -u | wc -l"


# The process that served a request ends before the ten seconds of the default.
_ENDED = f"""
    pid=$({_ASK.format("")}); for i in $(seq 50); do [ -e /proc/$pid ] || {{ echo ended; break; }}; sleep 0.1; done
"""
_SLOW_LOG = "/var/log/php-slow.log"
_LOGGED = f"""
    : >{_SLOW_LOG}; {_ASK.format("?ms=2500")} >/dev/null; sed -n 's/^.*\\] \\(usleep()\\).*/\\1/p' {_SLOW_LOG}
"""


def _ini(name: str) -> str:
    return _ASK.format(f"?ini={name}")


CASE = KindCase(
    name="php-fpm",
    title="PHP-FPM",
    port=PORT,
    start=f"""
        install -d /srv/php /srv/second && install -d -o www-data /run/php
        printf %s '{_NGINX}' >/etc/kinds-nginx.conf
        printf %s '{_PAGE}' >/srv/php/index.php
        printf %s '{_SECOND}' >/srv/second/php-fpm.conf
        sed -i 's|^listen = .*|listen = /run/php/php-www.sock|; s|^;pm.status_path.*|pm.status_path = /status|
            s|^;slowlog.*|slowlog = {_SLOW_LOG}|' {_POOL}
        fpm=$(ls /usr/sbin/php-fpm?.? | head -n 1)
        version=${{fpm#/usr/sbin/php-fpm}}
        "$fpm" -D -y "/etc/php/$version/fpm/php-fpm.conf" && "$fpm" -D -y /srv/second/php-fpm.conf
        nginx -c /etc/kinds-nginx.conf
    """,
    stop="""
        kill $(cat /run/kinds-nginx.pid); pkill -TERM -f '^php-fpm: master'
        while pgrep '^php-fpm' || [ -e /run/kinds-nginx.pid ]; do sleep 0.02; done
    """,
    second="pgrep -f '^php-fpm: pool api' | sort",
    places="/etc/php /srv/second",
    changes=(
        Change("pm.start_servers-www", "4", _COUNT.format("www"), "4"),
        Change("pm.min_spare_servers-www", "4", _COUNT.format("www"), "4"),
        Change("pm.max_spare_servers-www", "5", _COUNT.format("www"), "4"),
        Change("pm.max_children-www", "9", _COUNT.format("www"), "4"),
        # Each request ends its process.
        Change("pm.max_requests-www", "1", _PROCESSES, "9"),
        Change("request_terminate_timeout-www", "1s", f"{_ASK.format('?ms=1300')} >/dev/null && echo served", ""),
        Change("opcache.max_accelerated_files", "4321", _ini("opcache.max_accelerated_files"), "4321"),
        Change("opcache.memory_consumption", "64", _ini("opcache.memory_consumption"), "64"),
        Change("opcache.interned_strings_buffer", "9", _ini("opcache.interned_strings_buffer"), "9"),
        Change("opcache.validate_timestamps", "0", _ini("opcache.validate_timestamps"), "0"),
        Change("opcache.revalidate_freq", "7", _ini("opcache.revalidate_freq"), "7"),
        Change("opcache.enable", "0", _ini("opcache.enable"), "0"),
        # It needs a restart.
        Change("listen.backlog-www", "99", written("listen.backlog = 99", _POOL), "1"),
    ),
    later=(
        (
            Change("pm-www", "ondemand", _COUNT.format("www"), "0"),
            Change("pm.process_idle_timeout-www", "1s", _ENDED, "ended"),
            Change("request_slowlog_timeout-www", "1s", _LOGGED, "usleep()"),
        ),
    ),
    malformed=("pm.max_children-www", "many", "pm.max_children takes a whole number of at least 1, not 'many'"),
    failing=("pm.max_spare_servers-www", "1", "pm.max_spare_servers"),
    apart=(Change("pm-api", "ondemand", _COUNT.format("api"), "0"),),
    page=StatusPage(kind="php-fpm", url=f"http://localhost:{PORT}/status?json"),
    # The page counts the process that serves it.
    own=f"echo total processes=$({_COUNT.format('www')})",
    load=_ASK.format(""),
)
