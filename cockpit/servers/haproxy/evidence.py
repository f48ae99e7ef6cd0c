"""Active values of a running HAProxy, by the stats socket of its configuration and by its processes."""

from __future__ import annotations

from cockpit.servers.evidence import Evidence

_SOCKET = """
socket=$(sed -n 's/^[[:blank:]]*stats[[:blank:]]*socket[[:blank:]]*\\(\\/[^[:blank:]]*\\).*/\\1/p' "$file" | head -n 1)
[ -n "$socket" ] || exit 0
"""
_COLUMN = """
column() { ask "$socket" 'show stat' | awk -F, -v name="$1" -v proxy="${section#* }" -v row="$2" '
    NR == 1 { for (n = 1; n <= NF; n++) at[$n] = n; $1 = substr($1, 3) }
    $1 == proxy && $2 == row { print $at[name] }'; }
"""

SHOWN = {
    "maxconn": Evidence(
        "its stats socket",
        f"""{_SOCKET}{_COLUMN}
        case $section in
            global) ask "$socket" 'show info' | sed -n 's/^Maxconn: //p' ;;
            'frontend '* | 'listen '*) column slim FRONTEND ;;
        esac
        """,
    ),
    "balance": Evidence(
        "its stats socket",
        f"{_SOCKET}{_COLUMN} case $section in 'backend '* | 'listen '*) column algo BACKEND ;; esac",
        lambda value, shown: value.partition(" ")[0].partition("(")[0] == shown,
    ),
    "nbthread": Evidence(
        "the threads of its newest process", 'newest=$(children "$pid" | tail -n 1); threads "${newest:-$pid}"'
    ),
}
