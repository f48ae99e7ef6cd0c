"""HAProxy in front of web1's Apache: Debian's configuration with a frontend and the statistics page."""

from tests.lab.services import Service, stop_all

PORT, STATS_PORT = 8082, 8404
CONFIG = "/etc/haproxy/haproxy.cfg"
FRONTEND = f"""\
frontend web
\\tbind :{PORT}
\\tdefault_backend app
backend app
\\tserver apache 127.0.0.1:80 check
frontend stats
\\tbind 127.0.0.1:{STATS_PORT}
\\tstats enable
\\tstats uri /stats
"""

HAPROXY = Service(
    name="haproxy",
    port=PORT,
    prepare=(
        f"grep -q '^frontend web' {CONFIG} || printf '{FRONTEND.replace(chr(10), chr(92) + 'n')}' >>{CONFIG}",
        "install -d /run/haproxy",
    ),
    start="service haproxy start",
    stop=stop_all("haproxy"),
)
