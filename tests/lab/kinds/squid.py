"""squid with Debian's configuration and a store, and a second server with a file of its own."""

from cockpit.model.host.samples import StatusPage
from tests.lab.kinds import Change, KindCase
from tests.lab.kinds.asking import restarted

PORT = 3128
_CONFIG = "/etc/squid/squid.conf"
_START_OWN = "squid -n second -f /srv/squid2/squid.conf"
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


def _result_of_last(make: str) -> str:
    """The result of the last request of a file, made by a command, that is new to the cache."""
    # A busy server might have stored the file only after some requests.
    return f"""
        file=kinds-$$.txt; {make} >/var/www/html/$file; touch -d '10 days ago' /var/www/html/$file
        for n in 1 2 3 4; do curl -sS -x localhost:{PORT} http://localhost/$file -o /dev/null; done
        rm /var/www/html/$file; awk '{{ result = $4 }} END {{ print result }}' /var/log/squid/access.log
    """


_RESTART = restarted("/run/squid.pid", "squid", _manager("info"))
_RESTART_OWN = restarted("/run/squid2.pid", _START_OWN, _manager("info", PORT + 1))
# In 4 MiB: the used memory divided by its share, which has two digits at most.
_SIZE = "/Storage Mem size/ { kib = $4 } /Storage Mem capacity/ { print int(kib / $4 / 40.96 + 0.5) }"
_KIDS = "pgrep -c -P $(cat /run/squid2.pid) -f -- '--kid squid-[0-9]'"
# Of both policies while a file is in the memory and in the store.
_LRU = (
    f"curl -sS -x localhost:{PORT} http://localhost/hello.html -o /dev/null; {_manager('mem')} | grep -c '^LRU policy'"
)
CASE = KindCase(
    name="squid",
    title="squid",
    port=PORT,
    start=f"""
        install -d -o proxy -g proxy /var/log/squid /run/squid /var/spool/squid && install -d /srv/squid2
        grep -q '^cache_dir' {_CONFIG} || printf '{_MORE}' >>{_CONFIG}
        printf %s '{_SECOND}' >/srv/squid2/squid.conf
        squid -z --foreground
        squid && {_START_OWN}
        until {_manager("info")} && {_manager("info", PORT + 1)}; do sleep 0.05; done
    """,
    stop="""
        kill $(cat /run/squid.pid /run/squid2.pid)
        while pgrep squid; do sleep 0.05; done
    """,
    second="cat /run/squid2.pid",
    places="/etc/squid /srv/squid2",
    changes=(
        Change("cache_mem", "16 MB", f"{_manager('info')} | awk '{_SIZE}'", "4"),
        Change("maximum_object_size_in_memory", "1 KB", _result_of_last("seq 999"), "TCP_HIT/200"),
        Change("maximum_object_size", "1 MB", _result_of_last("head -c 2097152 /dev/urandom"), "TCP_MISS/200"),
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
            Change("memory_replacement_policy", "heap LFUDA", f"{_RESTART}; {_LRU}", "0"),
            Change(
                "cache_replacement_policy",
                "heap GDSF",
                f"{_manager('storedir')} | sed -n 's/^Removal policy: //p'",
                "heap",
            ),
        ),
    ),
    malformed=("cache_mem", "much", "cache_mem takes a size such as 256 MB, not 'much'"),
    failing=("cache_dir", "ufs /var/spool/squid many 2 4", "No digits were found"),
    apart=(
        # Active after a restart only.
        Change(f"workers-{PORT + 1}", "2", f"{_RESTART_OWN}; {_KIDS}", "2"),
        # The workers share their memory.
        Change(
            f"cache_mem-{PORT + 1}",
            "12 MB",
            f"{_manager('storedir', PORT + 1)} | grep -c '^Maximum Size: 12288 KB'",
            "2",
        ),
    ),
    shown=("cache_mem", "cache_dir"),
    page=StatusPage(kind="squid", url=f"http://localhost:{PORT}/squid-internal-mgr/counters"),
    own="echo server.http.requests=$(grep -c 'HIER_DIRECT' /var/log/squid/access.log)",
    # The counters begin with the server.
    load=f"""
        {_RESTART}
        : >/var/log/squid/access.log
        for n in 1 2 3; do curl -sS -x localhost:{PORT} http://localhost/hello.html?$n -o /dev/null; done
    """,
)
