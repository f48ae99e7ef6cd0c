"""Servers that write access logs, each in its own format, and an nginx that notes when it receives a request."""

from __future__ import annotations

from typing import NamedTuple

_APP = """\
def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    # A proxy closes after the headers of a HEAD response; gunicorn logs no request whose body it cannot send, even b"".
    return [] if environ["REQUEST_METHOD"] == "HEAD" else [b"ok"]
"""
_HAPROXY = """\
global
    log {to} local0
defaults
    mode http
    log global
    option httplog
    timeout connect 5s
    timeout client 60s
    timeout server 60s
frontend web
    bind :{port}
    default_backend app
backend app
    server origin origin1:80
"""
_LIGHTTPD = """\
server.modules = ( "mod_accesslog" )
server.document-root = "/var/www/html"
server.port = 8072
server.pid-file = "/srv/logs/lighttpd.pid"
mimetype.assign = ( ".html" => "text/html" )
accesslog.filename = "/srv/logs/lighttpd.log"
"""
_CADDY = """\
{{
	admin off
}}
:{port} {{
	root * /var/www/html
	file_server
	log {{
		output file /srv/logs/{name}.log
		format json {{
			{formats}
		}}
	}}
}}
"""
# In front of gunicorn on a Unix socket, without a log of its own.
_FRONT = """\
pid /srv/logs/front.pid;
error_log /srv/logs/front-error.log;
events { worker_connections 64; }
http {
    access_log off;
    server {
        listen 8075;
        location / { proxy_pass http://unix:/srv/logs/gunicorn.sock; proxy_set_header Host $http_host; }
    }
}
"""
_ASGI = """\
async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"ok"})
"""
_FPM = """\
[global]
pid = /srv/logs/fpm.pid
error_log = /srv/logs/fpm-error.log
[www]
user = www-data
group = www-data
listen = /srv/logs/fpm.sock
listen.owner = www-data
pm = static
pm.max_children = 1
access.log = /srv/logs/fpm.log
"""
_FPM_FRONT = """\
user www-data;
pid /srv/logs/fpm-front.pid;
error_log /srv/logs/fpm-front-error.log;
events { worker_connections 64; }
http {
    access_log off;
    server {
        listen 8079;
        location / {
            include /etc/nginx/fastcgi_params;
            fastcgi_param SCRIPT_NAME /index.php;
            fastcgi_param SCRIPT_FILENAME /srv/logs/index.php;
            fastcgi_pass unix:/srv/logs/fpm.sock;
        }
    }
}
"""
RECEIVER_PORT = 8070
RECEIVER_LOG = "/srv/logs/received.log"
# It waits for silent clients, so that no request is repeated on another connection.
_RECEIVER = f"""\
worker_processes 1;
pid /srv/logs/receiver.pid;
error_log /srv/logs/receiver-error.log;
events {{ worker_connections 64; }}
http {{
    log_format received "$msec $connection $request_method $request_uri";
    access_log {RECEIVER_LOG} received;
    keepalive_timeout 600s;
    server {{
        listen {RECEIVER_PORT};
        location / {{ return 200 "received\\n"; }}
    }}
}}
"""


class LogWriter(NamedTuple):
    """A server on a host of the lab. `path` is that of a request, with a place for its number; `site` is the Host
    header, if it is not that of the URL; `resolution` (s) is that of the times in its log, and `delay` (s) is how old a
    time may be when it is logged. `start` and `stop` are commands; "": it runs."""

    host: str
    port: int
    log: str
    path: str = "/hello.html?q=a%20b&n={}"
    site: str = ""
    resolution: float = 1.0
    delay: float = 0.0
    start: str = ""
    stop: str = ""


def _ended_by(*files: str) -> str:
    """Kill the processes of PID files in /srv/logs, and wait for their end."""
    return "; ".join(
        f"pid=$(cat /srv/logs/{file}); kill $pid; while kill -0 $pid; do sleep 0.02; done" for file in files
    )


def _in_background(name: str, command: str, output: str = "/dev/null") -> str:
    return f"setsid {command} </dev/null >{output} 2>/srv/logs/{name}.err & echo $! >/srv/logs/{name}.pid"


def _haproxy(name: str, port: int, to: str, before: str = "") -> str:
    return f"""
        printf %s '{_HAPROXY.format(to=to, port=port)}' >/srv/logs/{name}.cfg
        {before}
        {_in_background(name, f"haproxy -db -f /srv/logs/{name}.cfg", f"/srv/logs/{name}.log")}
    """


def _caddy(name: str, port: int, formats: str = "") -> str:
    return f"""
        printf %s '{_CADDY.format(name=name, port=port, formats=formats)}' >/srv/logs/{name}.Caddyfile
        {_in_background(name, f"caddy run --adapter caddyfile --config /srv/logs/{name}.Caddyfile")}
    """


def _gunicorn(name: str, bind: str) -> str:
    return f"""
        printf %s '{_APP}' >/srv/logs/app.py
        cd /srv/logs && PYTHONDONTWRITEBYTECODE=1 gunicorn -D -p /srv/logs/{name}.pid -b {bind} \\
            --access-logfile /srv/logs/{name}.log app:application
    """


_SYSLOGD = "busybox syslogd -n -O /srv/logs/syslog"

WRITERS = {
    "apache": LogWriter("web1", 80, "/var/log/apache2/access.log"),
    "nginx": LogWriter("proxy1", 8080, "/var/log/nginx/access.log"),
    # By default it logs no query strings.
    "squid": LogWriter(
        "proxy1", 80, "/var/log/squid/access.log", path="/img/{:05}.jpg", site="origin1", resolution=0.001
    ),
    "tomcat": LogWriter("app1", 8080, "/var/log/tomcat10/access.log"),
    "haproxy": LogWriter(
        "web1",
        8076,
        "/srv/logs/haproxy.log",
        resolution=0.001,
        start=_haproxy("haproxy", 8076, "stdout format raw"),
        stop=_ended_by("haproxy.pid"),
    ),
    "haproxy by syslog": LogWriter(
        "web1",
        8077,
        "/srv/logs/syslog",
        resolution=0.001,
        start=_haproxy("by-syslog", 8077, "/dev/log", _in_background("syslogd", _SYSLOGD)),
        stop=_ended_by("by-syslog.pid", "syslogd.pid"),
    ),
    "varnish": LogWriter(
        "web1",
        8071,
        "/srv/logs/varnish.log",
        start="""
            varnishd -n /srv/logs/varnish -P /srv/logs/varnishd.pid -a :8071 -b origin1:80 -s malloc,8m
            varnishncsa -n /srv/logs/varnish -D -w /srv/logs/varnish.log -P /srv/logs/varnishncsa.pid
        """,
        stop=_ended_by("varnishncsa.pid", "varnishd.pid"),
    ),
    "caddy": LogWriter(
        "web1",
        8073,
        "/srv/logs/caddy.log",
        resolution=0.001,
        start=_caddy("caddy", 8073),
        stop=_ended_by("caddy.pid"),
    ),
    "caddy with other times": LogWriter(
        "web1",
        8069,
        "/srv/logs/caddy-iso.log",
        resolution=0.001,
        start=_caddy("caddy-iso", 8069, "time_format iso8601\n\t\t\tduration_format string"),
        stop=_ended_by("caddy-iso.pid"),
    ),
    "lighttpd": LogWriter(
        "web1",
        8072,
        "/srv/logs/lighttpd.log",
        # It reads the clock once per second of the monotonic clock.
        delay=1.0,
        start=f"printf %s '{_LIGHTTPD}' >/srv/logs/lighttpd.conf; lighttpd -f /srv/logs/lighttpd.conf",
        stop=_ended_by("lighttpd.pid"),
    ),
    "gunicorn": LogWriter(
        "web1",
        8074,
        "/srv/logs/gunicorn.log",
        start=_gunicorn("gunicorn", "0.0.0.0:8074"),
        stop=_ended_by("gunicorn.pid"),
    ),
    "gunicorn on a Unix socket": LogWriter(
        "web1",
        8075,
        "/srv/logs/on-socket.log",
        start=f"""
            {_gunicorn("on-socket", "unix:/srv/logs/gunicorn.sock")}
            printf %s '{_FRONT}' >/srv/logs/front.conf; nginx -c /srv/logs/front.conf
        """,
        stop=_ended_by("front.pid", "on-socket.pid"),
    ),
}
# Logs without times or without URLs.
PARTIAL_WRITERS = {
    "uvicorn": LogWriter(
        "web1",
        8078,
        "/srv/logs/uvicorn.log",
        start=f"""
            printf %s '{_ASGI}' >/srv/logs/asgi.py
            cd /srv/logs && export PYTHONDONTWRITEBYTECODE=1
            {_in_background("uvicorn", "uvicorn --host 0.0.0.0 --port 8078 asgi:app", "/srv/logs/uvicorn.log")}
        """,
        stop=_ended_by("uvicorn.pid"),
    ),
    "php-fpm": LogWriter(
        "web1",
        8079,
        "/srv/logs/fpm.log",
        start=f"""
            echo ok >/srv/logs/index.php
            printf %s '{_FPM}' >/srv/logs/fpm.conf; printf %s '{_FPM_FRONT}' >/srv/logs/fpm-front.conf
            $(ls /usr/sbin/php-fpm?.? | head -n 1) -D -y /srv/logs/fpm.conf && nginx -c /srv/logs/fpm-front.conf
        """,
        stop=_ended_by("fpm-front.pid", "fpm.pid"),
    ),
}
RECEIVER = LogWriter(
    "web1",
    RECEIVER_PORT,
    RECEIVER_LOG,
    path="/{}",
    start=f"printf %s '{_RECEIVER}' >/srv/logs/receiver.conf; nginx -c /srv/logs/receiver.conf",
    stop=_ended_by("receiver.pid"),
)
