"""The limit of open files, which limits sockets."""

from __future__ import annotations

import resource

# Open files of a worker beside its sockets: pipes, epoll, libraries.
OWN_FILES = 32


def raise_file_limit(connections: int) -> None:
    """Raise the soft limit so that each connection can have a socket, up to the hard limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = connections + OWN_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        ceiling = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (ceiling, hard))


def most_connections_here() -> int | None:
    """Return the maximum number of connections of a process on this machine; None: unlimited."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return None if hard == resource.RLIM_INFINITY else max(0, hard - OWN_FILES)
