"""How many files, and so sockets, a process may have open."""

from __future__ import annotations

import resource

# A worker's own: pipes, epoll, libraries.
OWN_FILES = 32


def raise_file_limit(connections: int) -> None:
    """Let this process have a socket for each connection, as far as its hard limit goes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = connections + OWN_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        ceiling = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (ceiling, hard))


def most_connections_here() -> int | None:
    """How many connections a process of this machine may have; None when nothing limits them."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return None if hard == resource.RLIM_INFINITY else max(0, hard - OWN_FILES)
