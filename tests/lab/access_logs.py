"""Servers that write access logs, each in its own format."""

from typing import NamedTuple

from tests.data import data_of

DATA = data_of(__file__)

_APP = DATA["app"]
_HAPROXY = DATA["haproxy"]
_LIGHTTPD = DATA["lighttpd"]
_CADDY = DATA["caddy"]


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


def _own(name: str, port: int, start: str, *also: str, resolution: float = 1.0, delay: float = 0.0) -> LogWriter:
    """A server on web1 whose log and PID file have its name; `also` are other PID files."""
    stop = _ended_by(f"{name}.pid", *also)
    return LogWriter("web1", port, f"/srv/logs/{name}.log", resolution=resolution, delay=delay, start=start, stop=stop)


def _caddy(name: str, port: int, formats: str = "") -> LogWriter:
    start = f"""
        printf %s '{_CADDY.format(name=name, port=port, formats=formats)}' >/srv/logs/{name}.Caddyfile
        {_in_background(name, f"caddy run --adapter caddyfile --config /srv/logs/{name}.Caddyfile")}
    """
    return _own(name, port, start, resolution=0.001)


def _with(file: str, text: str, command: str) -> str:
    """Write a file in /srv/logs, then start a server."""
    return f"printf %s '{text}' >/srv/logs/{file}; {command}"


_START_HAPROXY = _in_background("haproxy", "haproxy -db -f /srv/logs/haproxy.cfg", "/srv/logs/haproxy.log")
_START_GUNICORN = """
    cd /srv/logs && PYTHONDONTWRITEBYTECODE=1 gunicorn -D -p /srv/logs/gunicorn.pid -b 0.0.0.0:8074 \\
        --access-logfile /srv/logs/gunicorn.log app:application
"""
_VARNISH = """
    varnishd -n /srv/logs/varnish -P /srv/logs/varnish.pid -a :8071 -b origin1:80 -s malloc,8m
    varnishncsa -n /srv/logs/varnish -D -w /srv/logs/varnish.log -P /srv/logs/varnishncsa.pid
"""
WRITERS = {
    "apache": LogWriter("web1", 80, "/var/log/apache2/access.log"),
    "nginx": LogWriter("proxy1", 8080, "/var/log/nginx/access.log"),
    # By default it logs no query strings.
    "squid": LogWriter(
        "proxy1", 80, "/var/log/squid/access.log", path="/img/{:05}.jpg", site="origin1", resolution=0.001
    ),
    "tomcat": LogWriter("app1", 8080, "/var/log/tomcat10/access.log"),
    "haproxy": _own("haproxy", 8076, _with("haproxy.cfg", _HAPROXY, _START_HAPROXY), resolution=0.001),
    "varnish": _own("varnish", 8071, _VARNISH, "varnishncsa.pid"),
    "caddy": _caddy("caddy", 8073),
    "caddy with other times": _caddy("caddy-iso", 8069, "time_format iso8601\n\t\t\tduration_format string"),
    # It reads the clock once per second of the monotonic clock.
    "lighttpd": _own(
        "lighttpd", 8072, _with("lighttpd.conf", _LIGHTTPD, "lighttpd -f /srv/logs/lighttpd.conf"), delay=1.0
    ),
    "gunicorn": _own("gunicorn", 8074, _with("app.py", _APP, _START_GUNICORN)),
}
