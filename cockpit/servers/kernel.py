"""Kernel settings that matter for web servers under load: https://docs.kernel.org/admin-guide/sysctl/"""

from __future__ import annotations

from cockpit.servers.inventory import Inventory
from cockpit.servers.kind import CandidateKnob
from cockpit.servers.settings import Impact, KnownSetting, ValueForm, integer

_PORT = integer(1, 65535)


def _is_range(value: str) -> bool:
    words = value.split()
    return len(words) == 2 and all(map(_PORT.matches, words)) and int(words[0]) < int(words[1])


# listen(2) caps the queue at this value; a change does not affect running listeners.
AT_LISTEN = "net.core.somaxconn"

SETTINGS = {
    AT_LISTEN: KnownSetting(
        "upper limit of accept queues; matters if nstat counts listen overflows (TcpExtListenOverflows)",
        integer(1, 2**31 - 1),
        Impact.RESTART,
    ),
    "net.ipv4.tcp_max_syn_backlog": KnownSetting(
        "pending handshakes per listener; matters if SYNs are dropped under many new connections",
        integer(1, 2**31 - 1),
        Impact.LIVE,
    ),
    "net.ipv4.tcp_tw_reuse": KnownSetting(
        "1: new outgoing connections can reuse ports in TIME_WAIT (2: loopback only); matters for proxies",
        integer(0, 2),
        Impact.LIVE,
    ),
    "net.ipv4.ip_local_port_range": KnownSetting(
        "ports for outgoing connections; matters for proxies without keep-alive to their upstreams",
        ValueForm("two ports such as 1024 65000", _is_range),
        Impact.LIVE,
    ),
    "vm.swappiness": KnownSetting(
        "0 to 200: preference for swapping over dropping the page cache; matters if memory is short",
        integer(0, 200),
        Impact.LIVE,
    ),
}
CANDIDATES = tuple(CandidateKnob(name=key.rpartition(".")[2], kind="sysctl", key=key) for key in SETTINGS)
# Maximum number of listeners in a note.
_MAX_LISTENERS = 8


def accept_queues(inventory: Inventory) -> str:
    """Return a note for a change of `net.core.somaxconn`: the limits of the current accept queues; "" if unknown."""
    known = {
        (listener.port, listener.name, listener.queue) for listener in inventory.listening if listener.queue is not None
    }
    rows = [f"port {port} ({name}) {queue}" for port, name, queue in sorted(known)]
    listed = ", ".join((*rows[:_MAX_LISTENERS], *(["…"] if len(rows) > _MAX_LISTENERS else ())))
    return f"accept queues now: {listed}; restart a server to apply the change to its queue" if rows else ""
