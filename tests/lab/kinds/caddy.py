"""Caddy with Debian's Caddyfile, a proxy and metrics, and a second server with its own file and admin endpoint."""

from cockpit.model.host.samples import StatusPage
from tests.lab.kinds import Change, KindCase
from tests.lab.kinds.asking import has_header

PORT = 8060
_ADMIN, SOCKET = "http://localhost:2019", "/run/caddy2.sock"
# On a socket it answers if the host is empty.
_SECOND_ADMIN = f"--unix-socket {SOCKET} -H 'Host;' http://localhost"
_CONFIG = "/etc/caddy/Caddyfile"
_OPTIONS = "{\\n\\tservers {\\n\\t\\tmetrics\\n\\t}\\n}\\n"
_PROXY = "\\treverse_proxy /hello.html localhost:80 {\\n\\t\\ttransport http {\\n\\t\\t}\\n\\t}"
# Its port is known to the running server alone.
_SECOND = f"""\
{{
	admin unix/{SOCKET}
}}

:{{$SECOND_PORT}} {{
	root * /usr/share/caddy
	file_server
}}
"""
_URL = f"http://localhost:{PORT}"
_OWN = f"http://localhost:{PORT + 2}"
_ANSWERED = 'caddy_http_requests_total[{]handler="(file_server|reverse_proxy|static_response)"'


def _active(path: str, admin: str = _ADMIN) -> str:
    """A part of the configuration that runs."""
    return f"curl -sS --fail {admin}/config/apps/http/servers/srv0/{path}"


def _number(name: str) -> str:
    """A number in the configuration that runs."""
    return f"{_active('routes')} | sed -n 's/.*\"{name}\":\\([0-9]*\\).*/\\1/p'"


def _in_background(name: str, command: str) -> str:
    return f"setsid {command} </dev/null >/var/log/{name}.log 2>&1 & echo $! >/run/{name}.pid"


CASE = KindCase(
    name="caddy",
    title="Caddy",
    port=PORT,
    start=f"""
        grep -q '^:{PORT} ' {_CONFIG} || sed -i \\
            -e '1i {_OPTIONS}' -e 's/^:80 /:{PORT} /' -e 's|^\\tfile_server$|&\\n{_PROXY}|' {_CONFIG}
        install -d /srv/caddy2
        printf %s '{_SECOND}' >/srv/caddy2/Caddyfile
        {_in_background("caddy", f"caddy run --environ --config {_CONFIG}")}
        cd /srv/caddy2
        {_in_background("caddy2", f"env SECOND_PORT={PORT + 2} caddy run")}
        until curl -sS --fail {_URL}/ && curl -sS --fail {_OWN}/; do sleep 0.02; done
    """,
    stop="""
        kill $(cat /run/caddy.pid /run/caddy2.pid)
        while kill -0 $(cat /run/caddy.pid) || kill -0 $(cat /run/caddy2.pid); do sleep 0.02; done
    """,
    second=f"curl -sS {_SECOND_ADMIN}/config/",
    places="/etc/caddy /srv/caddy2",
    changes=(
        Change(f"encode-{PORT}", "gzip", has_header(f"{_URL}/", "content-encoding"), "1"),
        Change("idle-timeouts", "30s", _active("idle_timeout"), str(30 * 10**9)),
        Change("read_header-timeouts", "5s", _active("read_header_timeout"), str(5 * 10**9)),
        Change("protocols", "h1 h2", _active("protocols"), '["h1","h2"]'),
        Change("max_header_size", "16KB", _active("max_header_bytes"), "16000"),
        Change("keepalive_interval", "9s", _active("keepalive_interval"), str(9 * 10**9)),
        Change("keepalive-localhost-80", "off", f"{_active('routes')} | grep -c '\"enabled\":false'", "1"),
        Change("keepalive_idle_conns-localhost-80", "17", _number("max_idle_conns"), "17"),
        Change("keepalive_idle_conns_per_host-localhost-80", "9", _number("max_idle_conns_per_host"), "9"),
    ),
    malformed=("idle-timeouts", "soon", "idle takes a time with its unit such as 30s or 5m, not 'soon'"),
    # It passes the test, and the running server refuses it.
    failing=(f"encode-{PORT}", "203.0.113.9", "cannot assign requested address"),
    unchecked="bind",
    apart=(Change(f"max_header_size-{PORT + 2}", "32KB", _active("max_header_bytes", _SECOND_ADMIN), "32000"),),
    page=StatusPage(kind="caddy", url=f"{_ADMIN}/metrics"),
    own=f"curl -sS --fail {_ADMIN}/metrics | awk '/^{_ANSWERED}/ {{ sum += $NF }} END {{ print \"requests=\" sum }}'",
    load=f"ab -q -n 50 {_URL}/",
)
