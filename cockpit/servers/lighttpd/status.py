"""lighttpd's status page, `server-status?auto`: lines of `Name: value`."""

from __future__ import annotations

from cockpit.servers.kind import StatusPageKind
from cockpit.servers.status import separated_rows

STATUS = StatusPageKind(
    name="lighttpd",
    url="/server-status?auto",
    rows=separated_rows,
    required="BusyServers",
    hint="the URL must end in server-status?auto",
    not_found="is mod_status enabled, with a status.status-url? lighty-enable-mod status",
    forbidden="does the condition around status.status-url allow this host?",
    is_counter=frozenset({"Total Accesses", "Total kBytes"}).__contains__,
    means={"busy": "BusyServers", "idle": "IdleServers"},
    rates={"requests": "Total Accesses", "kbytes": "Total kBytes"},
    age="Uptime",
    texts=("Scoreboard",),
    # States as printed by mod_status.
    scoreboard={
        ".": "connect",
        "q": "request start",
        "r": "read",
        "R": "read body",
        "Q": "request end",
        "h": "handle request",
        "s": "response start",
        "W": "write",
        "S": "response end",
        "k": "keep-alive",
        "C": "close",
        "E": "hard error",
        "_": "idle",
    },
)
