"""Apache's `server-status?auto`: a line each of `Name: value`."""

from __future__ import annotations

from cockpit.servers.kind import StatusPageKind
from cockpit.servers.status import NotThePageError, PageMetrics, number


def parse(page: str) -> PageMetrics:
    """All its figures; as text the scoreboard, the version, the MPM and whatever else is no number."""
    values: dict[str, float] = {}
    text: dict[str, str] = {}
    for line in page.splitlines():
        name, colon, rest = line.partition(": ")
        if not colon:
            continue
        value = None if name == "Scoreboard" else number(rest)
        if value is None:
            text[name] = rest
        else:
            values[name] = value
    if "BusyWorkers" not in values:
        raise NotThePageError("no BusyWorkers on it: the URL should end in server-status?auto")
    return PageMetrics(values, text)


_COUNTERS = frozenset(
    {
        *("Total Accesses", "Total kBytes", "Total Duration"),
        *("CPUUser", "CPUSystem", "CPUChildrenUser", "CPUChildrenSystem"),
    }
)

STATUS = StatusPageKind(
    name="apache",
    url="/server-status?auto",
    parse=parse,
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
