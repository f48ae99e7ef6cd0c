"""Apache's status page, `server-status?auto`: lines of `Name: value`."""

from __future__ import annotations

from cockpit.servers.kind import StatusPageKind
from cockpit.servers.status import separated_rows

# Not the CPU times: they are sums over the processes that exist now, so they fall when one ends.
_COUNTERS = frozenset({"Total Accesses", "Total kBytes", "Total Duration"})

STATUS = StatusPageKind(
    name="apache",
    url="/server-status?auto",
    rows=separated_rows,
    required="BusyWorkers",
    hint="the URL must end in server-status?auto",
    not_found="is mod_status enabled? a2enmod status",
    forbidden="does mod_status allow this host? Require local",
    is_counter=_COUNTERS.__contains__,
    means={"busy": "BusyWorkers", "idle": "IdleWorkers", "connections": "ConnsTotal"},
    rates={"requests": "Total Accesses", "kbytes": "Total kBytes"},
    age="Uptime",
    # Increases with every restart and every graceful reload.
    generation="ParentServerMPMGeneration",
    texts=("Scoreboard",),
    # States as in Apache's manual.
    scoreboard={
        "_": "waiting",
        "S": "starting",
        "R": "reading",
        "W": "sending",
        "K": "keepalive",
        "D": "DNS",
        "C": "closing",
        "L": "logging",
        "G": "finishing",
        "I": "idle cleanup",
        ".": "open slot",
    },
)
