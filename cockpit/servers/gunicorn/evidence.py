"""How a running gunicorn shows its settings."""

from __future__ import annotations

from cockpit.servers.evidence import LISTEN_QUEUE, Evidence

SHOWN = {
    "workers": Evidence("its processes", 'children "$pid" | wc -l'),
    "backlog": LISTEN_QUEUE,
}
