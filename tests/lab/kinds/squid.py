"""squid with Debian's configuration and a store, and a second server with a file of its own."""

from cockpit.model.hosts import StatusPage
from tests.lab.kinds import KindCase, KindChange

PORT = 3128
_CONFIG, _OWN = "/etc/squid/squid.conf", "/srv/squid2/squid.conf"
# The result of the second request of a file that is new to the cache.
_HIT = f"""
    file=kinds-$$.txt
    seq 999 >/var/www/html/$file && touch -d '10 days ago' /var/www/html/$file
    for n in 1 2; do curl -sS -x localhost:{PORT} http://localhost/$file -o /dev/null; done
    rm /var/www/html/$file
    awk '{{ result = $4 }} END {{ print result }}' /var/log/squid/access.log
"""
_MORE = (
    "cache_dir ufs /var/spool/squid 100 2 4\\nshutdown_lifetime 0 seconds\\npinger_enable off\\n"
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


# The running server does not print these: the file has the value, and the reload ended well.
def _written(name: str, file: str = _CONFIG) -> str:
    return f"sed -n 's/^{name} //p' {file}"


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
    second=f"cat /run/squid2.pid; {_written('cache_mem', _OWN)}",
    places="/etc/squid /srv/squid2",
    changes=(
        KindChange("cache_mem", "16 MB", _written("cache_mem"), "16 MB"),
        KindChange("maximum_object_size_in_memory", "1 KB", _HIT, "TCP_HIT/200"),
        KindChange("memory_replacement_policy", "heap LFUDA", _written("memory_replacement_policy"), "heap LFUDA"),
        KindChange("maximum_object_size", "8 MB", _written("maximum_object_size"), "8 MB"),
        KindChange("cache_replacement_policy", "heap GDSF", _written("cache_replacement_policy"), "heap GDSF"),
        KindChange("workers", "1", _written("workers"), "1"),
        KindChange(
            "cache_dir",
            "ufs /var/spool/squid 50 2 4",
            f"{_manager('storedir')} | sed -n 's/^Maximum Swap Size *: *//p'",
            "51200 KB",
        ),
    ),
    malformed=("cache_mem", "much", "cache_mem takes a size such as 256 MB, not 'much'"),
    failing=("cache_dir", "ufs /var/spool/squid many 2 4", "No digits were found"),
    apart=(KindChange(f"cache_mem-{PORT + 1}", "12 MB", _written("cache_mem", _OWN), "12 MB"),),
    page=StatusPage(kind="squid", url=f"http://localhost:{PORT}/squid-internal-mgr/counters"),
    own="echo server.http.requests=$(grep -c 'HIER_DIRECT' /var/log/squid/access.log)",
    load=f"for n in 1 2 3; do curl -sS -x localhost:{PORT} http://localhost/hello.html?$n -o /dev/null; done",
)
