"""Varnish by Debian's service script in front of a slow server, and a second instance by a script of its own."""

from cockpit.model.host.samples import StatusPage
from tests.lab.kinds import Change, KindCase
from tests.lab.kinds.haproxy import BACKEND

_OPTIONS = "-n second -a :6083 -T localhost:6084 -b localhost:8080 -s malloc,8m -p thread_pool_min=7"
_SECOND = "varnishadm -n second param.show {} | awk '/Value is/ {{ print $3 }}'"
_STAT = "varnishstat -1 -f {}"


def _active(name: str) -> str:
    return f"varnishadm param.show {name} | awk '/Value is/ {{ print $3 }}'"


CASE = KindCase(
    name="varnish",
    title="Varnish",
    port=6081,
    start=f"""
        echo 'DAEMON_OPTS="{_OPTIONS}"' >/etc/default/varnish-second
        sed 's|/etc/default/varnish|&-second|; s|^NAME=.*|NAME=varnish-second|' /etc/init.d/varnish \\
            >/etc/init.d/varnish-second
        chmod +x /etc/init.d/varnish-second
        install -d /srv/slow
        printf %s '{BACKEND.replace("8096", "8080")}' >/srv/slow/slow.py
        setsid python3 /srv/slow/slow.py </dev/null >/dev/null 2>&1 & echo $! >/run/slow.pid
        service varnish start && service varnish-second start
        until curl -sS --fail http://localhost:8080/; do sleep 0.02; done
    """,
    stop="kill $(cat /run/slow.pid); service varnish stop; service varnish-second stop",
    second=_SECOND.format("thread_pool_min"),
    places="/etc/default /etc/varnish",
    changes=(
        Change("thread_pools", "3", _active("thread_pools"), "3"),
        Change("thread_pool_min", "33", _active("thread_pool_min"), "33"),
        Change("thread_pool_max", "777", _active("thread_pool_max"), "777"),
        Change("thread_queue_limit", "9", _active("thread_queue_limit"), "9"),
        Change("default_ttl", "7", _active("default_ttl"), "7.000"),
        Change("default_grace", "3.5", _active("default_grace"), "3.500"),
        Change("timeout_idle", "6", _active("timeout_idle"), "6.000"),
        Change("storage", "malloc,64m", _STAT.format("SMA.s0.g_space") + " | awk '{ print $2 }'", str(64 << 20)),
    ),
    malformed=("thread_pools", "33", "thread_pools takes a whole number from 1 to 32, not '33'"),
    failing=("thread_pool_min", "6000", "Must be no more than 5000"),
    apart=(Change("thread_pool_min-6083", "17", _SECOND.format("thread_pool_min"), "17"),),
    page=StatusPage(kind="varnish", url="unix:/var/lib/varnish/varnishd"),
    own=_STAT.format("MAIN.threads") + " | awk '{ print $1 \"=\" $2 }'",
    load="curl -sS -o /dev/null http://localhost:6081/",
)
