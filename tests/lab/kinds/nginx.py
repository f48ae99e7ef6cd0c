"""nginx with Debian's configuration, a server and an upstream in conf.d, and a second master with a file of its own."""

from cockpit.model.host.samples import StatusPage
from tests.lab.kinds import Change, KindCase
from tests.lab.kinds.asking import (
    END_HELD,
    MAKE_FILES,
    MAKE_PEM,
    PEM,
    compressed,
    connections,
    copies,
    established,
    get,
    has_header,
    header,
    held_open,
    http_version,
    open_files,
    while_open,
    written,
)
from tests.lab.services import nginx_config

PORT, TLS_PORT = 8088, 8448
_SITE = f"""\
proxy_cache_path /var/cache/kinds levels=1 keys_zone=kinds:1m;
upstream app {{ server 127.0.0.1:80; }}
server {{
    listen {PORT};
    root /var/www/html;
    location /status {{ stub_status; }}
    location /app/ {{
        proxy_pass http://app/;
        proxy_http_version 1.1;
        proxy_set_header Connection "";
    }}
    location /kept/ {{
        proxy_pass http://127.0.0.1:80/;
        proxy_cache off;
        proxy_cache_valid 200 1m;
        add_header X-Cache $upstream_cache_status;
    }}
}}
server {{
    listen {TLS_PORT} ssl;
    ssl_certificate {PEM};
    ssl_certificate_key {PEM};
    root /var/www/html;
}}
"""
_SECOND = nginx_config(f"{PORT + 1}", "return 204;", pid="/run/nginx2.pid", log="/var/log/nginx2.log")
_LOG, _OTHER_LOG = "/var/log/nginx/access.log", "/var/log/nginx/kinds.log"
_WORKERS = "pgrep -P $(cat /run/nginx.pid)"
_URL = f"http://localhost:{PORT}"
_OPEN = f"ls -l $(printf '/proc/%s/fd ' $({_WORKERS})) | grep -c '/hello.html$' | sed 's/[1-9].*/open/'"
_CONNECTED = f"ss -HOitn state established sport = :{PORT}"
_PACKETS = f"{_CONNECTED} | grep -o data_segs_out:[0-9]*"

CASE = KindCase(
    name="nginx",
    title="nginx",
    port=PORT,
    start=f"""
        rm -f /etc/nginx/sites-enabled/default {_OTHER_LOG}
        install -d /srv/nginx2 /var/log/nginx && install -d -o www-data /var/cache/kinds
        : >{_LOG}
        {MAKE_FILES}
        {MAKE_PEM}
        printf %s '{_SITE}' >/etc/nginx/conf.d/kinds.conf
        printf %s '{_SECOND}' >/srv/nginx2/nginx.conf
        nginx && nginx -c /srv/nginx2/nginx.conf
    """,
    stop=f"""
        {END_HELD}
        kill $(cat /run/nginx.pid /run/nginx2.pid)
        while [ -e /run/nginx.pid ] || [ -e /run/nginx2.pid ]; do sleep 0.02; done
    """,
    second="pgrep -P $(cat /run/nginx2.pid) | sort",
    places="/etc/nginx /srv/nginx2",
    changes=(
        Change("worker_processes", "3", f"{_WORKERS} -f 'worker process$' | wc -l", "3"),
        Change("keepalive_timeout", "9s 9s", header(f"{_URL}/hello.html", "keep-alive"), "timeout=9"),
        Change("keepalive_requests", "2", connections(f"{_URL}/hello.html", 3), "1"),
        Change("gzip", "off", has_header(f"{_URL}/hello.html", "content-encoding"), "0"),
        Change("open_file_cache", "max=100 inactive=60s", f"curl -sS {_URL}/hello.html -o /dev/null; {_OPEN}", "open"),
        Change("proxy_cache-kept", "kinds", header(f"{_URL}/kept/hello.html", "x-cache"), "HIT"),
        Change(
            "keepalive-app",
            "4",
            f"curl -sS {_URL}/app/hello.html -o /dev/null; ss -Htnp state established dport = :80 | grep -c nginx",
            "1",
        ),
        Change("worker_rlimit_nofile", "1999", open_files(f"{_WORKERS} -n -f 'worker process$'"), "1999"),
        Change(f"listen-http2-{TLS_PORT}", "on", http_version(f"https://localhost:{TLS_PORT}/hello.html"), "2"),
        Change("sendfile", "off", copies("syscr", 50, _WORKERS, _URL), "1"),
        Change(
            "access_log",
            _OTHER_LOG,
            f"curl -sS {_URL}/hello.html -o /dev/null; [ -s {_OTHER_LOG} ] && echo logged",
            "logged",
        ),
    ),
    later=(
        (
            Change(
                "worker_connections",
                "12",
                f"[ $({while_open(PORT, 60, f'{_CONNECTED} | wc -l')}) -lt 60 ]; echo $?",
                "0",
            ),
            Change("gzip_comp_level", "6", compressed(_URL), "12"),
            # A running server does not show it.
            Change(
                "http2_max_concurrent_streams",
                "9",
                written("http2_max_concurrent_streams 9;", "/etc/nginx/nginx.conf"),
                "1",
            ),
            Change("tcp_nodelay", "off", written("tcp_nodelay off;", "/etc/nginx/nginx.conf"), "1"),
            # The headers and the file in a packet each.
            Change("tcp_nopush", "off", while_open(PORT, 1, _PACKETS, get("/hello.html")), "data_segs_out:2"),
        ),
    ),
    malformed=("keepalive_timeout", "soon", "keepalive_timeout takes a time such as 65s, not 'soon'"),
    failing=("access_log", "/nowhere/a.log", "nowhere"),
    apart=(Change(f"worker_processes-{PORT + 1}", "2", "pgrep -P $(cat /run/nginx2.pid) | wc -l", "2"),),
    page=StatusPage(kind="nginx", url=f"{_URL}/status"),
    own=f"""
        echo "requests=$(cat {_LOG} {_OTHER_LOG} 2>/dev/null | wc -l)"
        echo "Active connections={established(PORT)}"
    """,
    load=f"ab -q -n 50 {_URL}/hello.html; {held_open(PORT)}",
)
