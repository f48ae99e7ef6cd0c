"""squid with Debian's configuration and a store, and a second server with a file of its own."""

from cockpit.model.hosts import StatusPage
from tests.lab.kinds import Change, KindCase
from tests.lab.kinds.asking import written

PORT = 3128
_CONFIG, _OWN = "/etc/squid/squid.conf", "/srv/squid2/squid.conf"
_MORE = (
    "cache_mem 4 MB\\ncache_dir ufs /var/spool/squid 100 2 4\\nshutdown_lifetime 0 seconds\\npinger_enable off\\n"
    "cachemgr_passwd none config\\n"
)
_SECOND = f"""\
http_port {PORT + 1}
visible_hostname second
pid_filename /run/squid2.pid
cache_log /var/log/squid/second.log
access_log none
http_access allow localhost manager
http_access deny all
shutdown_lifetime 0 seconds
pinger_enable off
cache_mem 8 MB
"""


def _manager(page: str, port: int = PORT) -> str:
    return f"curl -sS --fail http://localhost:{port}/squid-internal-mgr/{page}"


CASE = KindCase(
    name="squid",
    title="squid",
    port=PORT,
    start=f"""
        install -d -o proxy -g proxy /var/log/squid /run/squid /var/spool/squid && install -d /srv/squid2
        grep -q '^cache_dir' {_CONFIG} || printf '{_MORE}' >>{_CONFIG}
        printf %s '{_SECOND}' >/srv/squid2/squid.conf
        squid -z --foreground
        squid && squid -n second -f /srv/squid2/squid.conf
        until {_manager("info")} && {_manager("info", PORT + 1)}; do sleep 0.05; done
    """,
    stop="""
        kill $(cat /run/squid.pid /run/squid2.pid)
        while pgrep squid; do sleep 0.05; done
    """,
    second="cat /run/squid2.pid",
    places="/etc/squid /srv/squid2",
    changes=(
        Change("cache_mem", "16 MB", written("cache_mem 16 MB", _CONFIG), "1"),
        Change("maximum_object_size_in_memory", "1 KB", written("maximum_object_size_in_memory 1 KB", _CONFIG), "1"),
        Change("maximum_object_size", "1 MB", written("maximum_object_size 1 MB", _CONFIG), "1"),
        Change(
            "cache_dir",
            "ufs /var/spool/squid 50 2 4",
            f"{_manager('storedir')} | sed -n 's/^Maximum Swap Size *: *//p'",
            "51200 KB",
        ),
    ),
    # Active after a restart only.
    later=(
        (
            Change(
                "memory_replacement_policy", "heap LFUDA", written("memory_replacement_policy heap LFUDA", _CONFIG), "1"
            ),
            Change(
                "cache_replacement_policy", "heap GDSF", written("cache_replacement_policy heap GDSF", _CONFIG), "1"
            ),
        ),
    ),
    malformed=("cache_mem", "much", "cache_mem takes a size such as 256 MB, not 'much'"),
    failing=("cache_dir", "ufs /var/spool/squid many 2 4", "No digits were found"),
    apart=(
        Change(f"cache_mem-{PORT + 1}", "12 MB", written("cache_mem 12 MB", _OWN), "1"),
        # Active after a restart only.
        Change(f"workers-{PORT + 1}", "2", written("workers 2", _OWN), "1"),
    ),
    shown=("cache_mem", "cache_dir"),
    page=StatusPage(kind="squid", url=f"http://localhost:{PORT}/squid-internal-mgr/counters"),
    own="echo server.http.requests=$(grep -c 'HIER_DIRECT' /var/log/squid/access.log)",
    # The counters begin with the server.
    load=f"""
        kill $(cat /run/squid.pid); while [ -e /run/squid.pid ]; do sleep 0.02; done
        squid; until {_manager("info")} >/dev/null 2>&1; do sleep 0.05; done
        : >/var/log/squid/access.log
        for n in 1 2 3; do curl -sS -x localhost:{PORT} http://localhost/hello.html?$n -o /dev/null; done
    """,
)
