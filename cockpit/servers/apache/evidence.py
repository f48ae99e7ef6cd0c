"""Active values of a running Apache."""

from __future__ import annotations

from cockpit.servers.evidence import LISTEN_QUEUE, Evidence, at_least

# A process with threads has one thread per worker, one that accepts connections and one that waits for signals.
_WORKERS = """
newest=
for child in $(children "$pid"); do [ "$(threads "$child")" -le 2 ] || newest=$child; done
[ -z "$newest" ] || workers=$(($(threads "$newest") - 2))
"""


def _scoreboard(value: str, shown: str) -> bool | None:
    """Compare with the number of workers in total and per process: Apache rounds down to whole processes. After a
    change, slots above the new value can still be in use."""
    every, each = (int(word) for word in shown.split())
    return at_least(str(int(value) // each * each), str(every)) if value.isdecimal() else None


SHOWN = {
    "ListenBacklog": LISTEN_QUEUE,
    # Modules such as http2 start additional threads.
    "ThreadsPerChild": Evidence("the threads of its newest process", f'{_WORKERS} echo "$workers"', at_least),
    "MaxRequestWorkers": Evidence(
        "the scoreboard of its status page",
        f"""{_WORKERS}
        board=$(page '/server-status?auto' | sed -n 's/^Scoreboard: //p')
        [ -z "$board" ] || echo "${{#board}} ${{workers:-1}}"
        """,
        _scoreboard,
    ),
}
