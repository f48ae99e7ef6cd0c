"""squid with Debian's configuration and a store, and a second server with a file of its own."""

from cockpit.model.hosts import StatusPage
from tests.lab.kinds import KindCase, KindChange

PORT = 3128
_CONFIG, _OWN = "/etc/squid/squid.conf", "/srv/squid2/squid.conf"
_RESULT = "awk '{ result = $4 } END { print result }' /var/log/squid/access.log"


def _second_of(make: str) -> str:
    """The result of a second request of a file that is new to the cache, made by a command.

    A busy server may not have stored the whole file when the next request arrives, so a miss is repeated."""
    return f"""
        file=kinds-$$.txt
        {make} >/var/www/html/$file && touch -d '10 days ago' /var/www/html/$file
        for n in 1 2 3 4 5; do
            curl -sS -x localhost:{PORT} http://localhost/$file -o /dev/null
            result=$({_RESULT})
            [ $n = 1 ] || [ "$result" = TCP_MISS/200 ] || break
        done
        rm /var/www/html/$file
        echo $result
    """


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


def _restarted(own: str = "", pid: str = "/run/squid.pid", port: int = PORT) -> str:
    return f"""
        kill $(cat {pid}); while [ -e {pid} ]; do sleep 0.02; done
        squid {own}; until {_manager("info", port)} >/dev/null 2>&1; do sleep 0.05; done
    """


def _memory(mib: int, port: int = PORT) -> str:
    """Whether the memory is `as set`: what is used divided by its share, which has two digits at most, or the size of
    the memory that workers share."""
    used = "/Storage Mem size/ { kib = $4 } /Storage Mem capacity/ { print kib / $4 / 10.24 }"
    shared = "/^Shared Memory/ { own = 1 } /^Maximum Size/ && own { print $3 / 1024 }"
    return f"""
        {{ {_manager("storedir", port)} | awk '{shared}'; {_manager("info", port)} | awk '{used}' 2>/dev/null; }} |
            head -n 1 | awk '{{ print ($1 > {0.9 * mib} && $1 < {1.1 * mib} ? "as set" : "another") }}'
    """


# Whether the memory of the server still has a file that was requested often, after many others: as LFUDA keeps it. By
# the last use it would have been replaced.
_FREQUENT = f"""
    {_restarted()}
    for n in $(seq 15); do
        file=/var/www/html/kinds-$n.bin
        [ -e $file ] || {{ head -c 400000 /dev/urandom >$file; touch -d '10 days ago' $file; }}
    done
    for n in 1 1 1 1 1 $(seq 2 15) 1; do
        curl -sS -o /dev/null -x localhost:{PORT} http://localhost/kinds-$n.bin
    done
    {_RESULT}
"""
_POLICY = f"{_restarted()} {_manager('storedir')} | sed -n 's/^Removal policy: //p'"
_KIDS = "pgrep -c -P $(cat /run/squid2.pid) -f -- '--kid squid-[0-9]'"


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
        rm -f /var/www/html/kinds-*.bin
        kill $(cat /run/squid.pid /run/squid2.pid)
        while pgrep squid; do sleep 0.05; done
    """,
    second="cat /run/squid2.pid",
    places="/etc/squid /srv/squid2",
    changes=(
        KindChange("cache_mem", "16 MB", _memory(16), "as set"),
        KindChange("maximum_object_size_in_memory", "1 KB", _second_of("seq 999"), "TCP_HIT/200"),
        KindChange("maximum_object_size", "1 MB", _second_of("head -c 2097152 /dev/urandom"), "TCP_MISS/200"),
        KindChange(
            "cache_dir",
            "ufs /var/spool/squid 50 2 4",
            f"{_manager('storedir')} | sed -n 's/^Maximum Swap Size *: *//p'",
            "51200 KB",
        ),
    ),
    # Active after a restart only.
    later=(
        (
            KindChange("memory_replacement_policy", "heap LFUDA", _FREQUENT, "TCP_MEM_HIT/200"),
            KindChange("cache_replacement_policy", "heap GDSF", _POLICY, "heap"),
        ),
    ),
    malformed=("cache_mem", "much", "cache_mem takes a size such as 256 MB, not 'much'"),
    failing=("cache_dir", "ufs /var/spool/squid many 2 4", "No digits were found"),
    apart=(
        KindChange(f"cache_mem-{PORT + 1}", "12 MB", _memory(12, PORT + 1), "as set"),
        # Active after a restart only.
        KindChange(
            f"workers-{PORT + 1}",
            "2",
            f"{_restarted('-n second -f ' + _OWN, '/run/squid2.pid', PORT + 1)} {_KIDS}",
            "2",
        ),
    ),
    shown=("cache_mem", "cache_dir"),
    page=StatusPage(kind="squid", url=f"http://localhost:{PORT}/squid-internal-mgr/counters"),
    own="echo server.http.requests=$(grep -c 'HIER_DIRECT' /var/log/squid/access.log)",
    # The counters begin with the server.
    load=f"""
        {_restarted()}
        : >/var/log/squid/access.log
        for n in 1 2 3; do curl -sS -x localhost:{PORT} http://localhost/hello.html?$n -o /dev/null; done
    """,
)
