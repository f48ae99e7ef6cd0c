"""Code for Dask's processes, in a small module because importing blocks their event loop."""

from typing import Any

import psutil


def forge(topic: str, place: int, number: int, line: bytes, ending: str) -> None:
    """Log this as a line of a load worker; on a Dask worker."""
    from distributed import get_worker

    get_worker().log_event(topic, {"place": place, "number": number, "line": line, "ending": ending})


def modules(dask_scheduler: Any = None) -> tuple[str, list[int]]:
    """Return the directory from which this process of Dask imports modules, and the ports on which it listens."""
    from distributed import get_worker

    connections = psutil.Process().net_connections("tcp")
    node = dask_scheduler or get_worker()
    return node.local_directory, [each.laddr.port for each in connections if each.status == psutil.CONN_LISTEN]


def tolerate_silence(seconds: float) -> None:
    """Let the load continue for longer without a ping, which a busy machine delays."""
    from cockpit.cluster import generator_actor

    generator_actor.SILENCE = seconds
