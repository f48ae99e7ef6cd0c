"""Active values of a running PHP-FPM."""

from __future__ import annotations

from cockpit.servers.evidence import LISTEN_QUEUE, Evidence, at_most

_CHILDREN = """
count=0
for child in $(children "$pid"); do
    case $(tr '\\0' ' ' <"/proc/$child/cmdline") in "php-fpm: pool $section "*) count=$((count + 1)) ;; esac
done
echo "$count"
"""

SHOWN = {
    "listen.backlog": LISTEN_QUEUE,
    # The maximum runs always with pm = static, else under load only.
    "pm.max_children": Evidence("its processes", _CHILDREN, at_most),
}
