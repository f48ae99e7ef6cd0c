"""Which of several servers of one name is the target's: the one whose processes listen on the target's port. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from cockpit.model.hosts import ProcessCounters, identity


class Namesakes:
    """Leaves out the process trees of other servers. `left_out` is the number of their processes; None: which of
    several servers of one name is the target's is unknown, so that all are counted. So it is behind a proxy whose
    addresses behind it are unknown: only the proxy listens on the port.

    A server stays the target's while it runs, and another one another. While none listens, as in a restart, only new
    trees are added.
    """

    def __init__(self) -> None:
        self.left_out: int | None = 0
        self._own: set[tuple[int, int]] = set()
        self._others: set[tuple[int, int]] = set()

    def take(self, known: Sequence[ProcessCounters], listeners: Collection[int]) -> list[ProcessCounters]:
        """The processes without those of other servers. `listeners` are the pids that listen on the port
        or behind it."""
        roots = _roots(known)
        trees = {identity(root): root for root in roots.values()}
        if listening := {identity(roots[pid]) for pid in listeners if pid in roots}:
            self._own = listening | (self._own & trees.keys())
            names = {trees[own].comm for own in self._own}
            self._others = {other for other, root in trees.items() if root.comm in names} - self._own
        own = [one for one in known if identity(roots[one.pid]) not in self._others]
        counted = {identity(roots[one.pid]) for one in own}
        others = [trees[one].comm for one in counted - self._own]
        left_out = len(known) - len(own)
        self.left_out = left_out if left_out or len(set(others)) == len(others) else None
        return own


def _roots(known: Sequence[ProcessCounters]) -> dict[int, ProcessCounters]:
    """The topmost ancestor of each process among them."""
    by_pid = {one.pid: one for one in known}
    roots: dict[int, ProcessCounters] = {}
    for one in known:
        path = [one.pid]
        # No longer than all of them: a host could claim a cycle.
        while one.pid not in roots and one.ppid in by_pid and len(path) <= len(known):
            one = by_pid[one.ppid]
            path.append(one.pid)
        roots |= dict.fromkeys(path, roots.get(one.pid, one))
    return roots
