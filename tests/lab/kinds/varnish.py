"""Varnish by Debian's service script, and a second instance by a script and an option file of its own."""

from cockpit.model.hosts import StatusPage
from tests.lab.kinds import KindCase, KindChange

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
        service varnish start && service varnish-second start
    """,
    stop="service varnish stop; service varnish-second stop",
    second=_SECOND.format("thread_pool_min"),
    places="/etc/default /etc/varnish",
    changes=(
        KindChange("thread_pools", "3", _active("thread_pools"), "3"),
        KindChange("thread_pool_min", "33", _active("thread_pool_min"), "33"),
        KindChange("thread_pool_max", "777", _active("thread_pool_max"), "777"),
        KindChange("thread_queue_limit", "9", _active("thread_queue_limit"), "9"),
        KindChange("default_ttl", "7", _active("default_ttl"), "7.000"),
        KindChange("default_grace", "3.5", _active("default_grace"), "3.500"),
        KindChange("timeout_idle", "6", _active("timeout_idle"), "6.000"),
        KindChange("storage", "malloc,64m", _STAT.format("SMA.s0.g_space") + " | awk '{ print $2 }'", str(64 << 20)),
    ),
    malformed=("thread_pools", "33", "thread_pools takes a whole number from 1 to 32, not '33'"),
    failing=("thread_pool_min", "6000", "Must be no more than 5000"),
    apart=KindChange("thread_pool_min-6083", "17", _SECOND.format("thread_pool_min"), "17"),
    page=StatusPage(kind="varnish", url="unix:/var/lib/varnish/varnishd"),
    own=_STAT.format("MAIN.threads") + " | awk '{ print $1 \"=\" $2 }'",
    load="curl -sS -o /dev/null http://localhost:6081/",
)
