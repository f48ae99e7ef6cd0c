"""Apache's `server-status?auto`: lines of `Name: value`."""

from __future__ import annotations

from functools import partial

from cockpit.servers.kind import StatusPageKind
from cockpit.servers.status import colon_lines

_COUNTERS = frozenset(
    {
        *("Total Accesses", "Total kBytes", "Total Duration"),
        *("CPUUser", "CPUSystem", "CPUChildrenUser", "CPUChildrenSystem"),
    }
)

STATUS = StatusPageKind(
    name="apache",
    url="/server-status?auto",
    parse=partial(
        colon_lines, required="BusyWorkers", hint="the URL should end in server-status?auto", text=("Scoreboard",)
    ),
    not_found="is mod_status on? a2enmod status",
    forbidden="does mod_status let this host in? Require local",
    is_counter=_COUNTERS.__contains__,
    means={"busy": "BusyWorkers", "idle": "IdleWorkers", "connections": "ConnsTotal"},
    rates={"requests": "Total Accesses", "kbytes": "Total kBytes"},
    age="Uptime",
    # It grows with every restart, a graceful one too.
    generation="ParentServerMPMGeneration",
    # In the words of Apache's manual.
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
