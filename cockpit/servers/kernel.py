"""Settings of the kernel that a web server meets under load: https://docs.kernel.org/admin-guide/sysctl/"""

from __future__ import annotations

from cockpit.servers.inventory import Inventory
from cockpit.servers.kind import CandidateKnob
from cockpit.servers.settings import Impact, KnownSetting, ValueForm, integer

_PORT = integer(1, 65535)


def _is_range(value: str) -> bool:
    """Whether it is two ports, the lower one first."""
    words = value.split()
    return len(words) == 2 and all(map(_PORT.takes, words)) and int(words[0]) < int(words[1])


# listen(2) limits a queue once; a running listener keeps its own.
AT_LISTEN = "net.core.somaxconn"

SETTINGS = {
    AT_LISTEN: KnownSetting(
        "upper limit of accept queues; matters if listen overflows are counted (nstat TcpExtListenOverflows)",
        integer(1, 2**31 - 1),
        Impact.RESTART,
    ),
    "net.ipv4.tcp_max_syn_backlog": KnownSetting(
        "handshakes that wait per listener; matters if SYNs are dropped under many new connections",
        integer(1, 2**31 - 1),
        Impact.LIVE,
    ),
    "net.ipv4.tcp_tw_reuse": KnownSetting(
        "1 lets new outgoing connections take ports in TIME_WAIT (2: loopback only); matters for proxies",
        integer(0, 2),
        Impact.LIVE,
    ),
    "net.ipv4.ip_local_port_range": KnownSetting(
        "ports for outgoing connections; matters for proxies without keep-alive to their upstreams",
        ValueForm("two ports such as 1024 65000", _is_range),
        Impact.LIVE,
    ),
    "vm.swappiness": KnownSetting(
        "0 to 200: how readily memory is swapped out instead of dropping the page cache; matters if memory is short",
        integer(0, 200),
        Impact.LIVE,
    ),
}
CANDIDATES = tuple(CandidateKnob(name=key.rpartition(".")[2], kind="sysctl", key=key) for key in SETTINGS)
# Most listeners that a note lists.
_MOST = 8


def accept_queues(inventory: Inventory) -> str:
    """The limits of the running listeners' accept queues, for a change of `net.core.somaxconn`; "" if unknown."""
    known = {(one.port, one.name, one.queue) for one in inventory.listening if one.queue is not None}
    rows = [f"port {port} ({name}) {queue}" for port, name, queue in sorted(known)]
    listed = ", ".join((*rows[:_MOST], *(["…"] if len(rows) > _MOST else ())))
    return f"accept queues now: {listed}; the change takes effect when a server listens again" if rows else ""
