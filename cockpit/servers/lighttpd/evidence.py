"""Active values of a running lighttpd."""

from __future__ import annotations

from cockpit.servers.evidence import LIMIT_OF_FILES, Evidence

SHOWN = {
    "server.max-fds": LIMIT_OF_FILES,
    "server.max-worker": Evidence("its processes", 'children "$pid" | wc -l'),
    "server.max-connections": Evidence(
        "the slots of its status page",
        """
        url=$(cat "$file" "${file%/*}"/conf-enabled/*.conf 2>/dev/null |
            sed -n 's/^[[:blank:]]*status\\.status-url[[:blank:]]*=[[:blank:]]*"\\(\\/[^"]*\\)".*/\\1/p' | head -n 1)
        [ -z "$url" ] || page "$url?auto" |
            awk '/^(Busy|Idle)Servers:/ { sum += $2; rows++ } END { if (rows == 2) print sum }'
        """,
    ),
    "server.event-handler": Evidence(
        "its open files",
        """
        worker=$(children "$pid" | head -n 1)
        case $(ls -l "/proc/${worker:-$pid}/fd") in *eventpoll*) echo linux-sysepoll ;; ?*) echo another ;; esac
        """,
        lambda value, shown: (value == "linux-sysepoll") == (shown == "linux-sysepoll"),
    ),
}
