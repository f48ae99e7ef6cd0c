"""The worker generations of one server, apart from other servers with the same process name. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from cockpit.model.knobs import Knob

# PID and start (clock ticks since boot), which identify a process uniquely.
Identity = tuple[str, str]


class ServerProcess(NamedTuple):
    """A process of a server; `start` in clock ticks since boot, `parent` is a PID."""

    pid: str
    start: str
    parent: str

    @property
    def identity(self) -> Identity:
        return self.pid, self.start


class Generation:
    """Compares the workers of one server, the descendants of its master, with the workers before a reload.

    `pattern` matches the names of its processes, `knob` is a setting in its files. `master` is the PID of its first
    process, from discovery, "" if unknown. `is_fresh`: it has new workers; `old_workers` is the number of old ones.
    `is_lost`: the master has exited; call `adopt` with its successor. If discovery found no master, the only server
    with processes of that name is used; of several servers all workers count, and `same_named` is the number of
    servers.
    """

    def __init__(self, pattern: str, knob: str, master: str) -> None:
        self.pattern = pattern
        self.knob = knob
        self.master = master
        self.is_lost = False
        self.is_fresh = False
        self.old_workers = 0
        self.same_named = 0
        self._is_known = bool(master)
        # Identity of the master, or of the only server with that name; None: not seen yet.
        self._identity: Identity | None = None
        # Before the reload: workers of this server, all processes, and masters of other servers.
        self._before: frozenset[Identity] = frozenset()
        self._all_before: frozenset[Identity] = frozenset()
        self._others: frozenset[Identity] = frozenset()

    def begin(self, processes: Collection[ServerProcess]) -> None:
        """Record the processes right before the reload."""
        masters = _masters(processes)
        own = next((process for process in processes if process.pid == self.master), None)
        if own is None:
            self.master, self._is_known = "", False
            own = masters[0] if len(masters) == 1 else None
        self._identity = own.identity if own else None
        self._before = frozenset(process.identity for process in self._workers(processes))
        self._all_before = frozenset(process.identity for process in processes)
        self._others = frozenset(process.identity for process in masters if self._is_known and process is not own)

    def update(self, processes: Collection[ServerProcess]) -> None:
        """Compare the processes with those before the reload."""
        if self._is_known:
            self._watch_master(processes)
        self.old_workers = len(self._before & {process.identity for process in processes})
        now = {process.identity for process in self._workers(processes)}
        self.is_fresh = not self.is_lost and (not self._before or bool(now - self._before))

    @property
    def others(self) -> frozenset[int]:
        """The PIDs of other servers with that name that ran before the reload; empty if the own master is unknown."""
        return frozenset(int(pid) for pid, _ in self._others)

    def adopt(self, master: str) -> None:
        """Continue with the successor found by discovery ("": none), unless it is another server that ran before."""
        if master and int(master) not in self.others:
            self.master, self.is_lost = master, False

    def others_with_new_workers(self, processes: Collection[ServerProcess]) -> list[str]:
        """Return the PIDs of other servers with workers that started since `begin`."""
        masters = sorted((process.pid for process in processes if process.identity in self._others), key=int)
        return [
            pid
            for pid in masters
            if any(process.identity not in self._all_before for process in _descendants({pid}, processes))
        ]

    def _watch_master(self, processes: Collection[ServerProcess]) -> None:
        identity = next((process.identity for process in processes if process.pid == self.master), None)
        if self.master and (identity is None or self._identity not in (None, identity)):
            self.master, self.is_lost, identity = "", True, None
        self._identity = identity

    def _workers(self, processes: Collection[ServerProcess]) -> list[ServerProcess]:
        if self._is_known:
            return _descendants({self.master} - {""}, processes)
        roots = _masters(processes)
        roots = [process for process in roots if process.identity == self._identity] or roots
        if len(roots) > 1:
            self.same_named = max(self.same_named, len(roots))
        return _descendants({process.pid for process in roots}, processes)


def generations_of(knobs: Iterable[Knob], masters: Mapping[str, int]) -> tuple[Generation, ...]:
    """Return a Generation for each server whose workers a change of the knobs replaces.

    `masters` are the PIDs of the servers that read the knobs' files, by knob name.
    """
    generations: dict[tuple[str, str], Generation] = {}
    for knob in knobs:
        if knob.workers and (knob.reload or knob.live):
            master = str(masters.get(knob.name) or "")
            generations.setdefault((knob.workers, master), Generation(knob.workers, knob.name, master))
    known = {pattern for pattern, master in generations if master}
    return tuple(generation for (pattern, master), generation in generations.items() if master or pattern not in known)


def _masters(processes: Collection[ServerProcess]) -> list[ServerProcess]:
    """Return the processes with children among `processes`, but without their parent there."""
    pids, parents = {process.pid for process in processes}, {process.parent for process in processes}
    return [process for process in processes if process.parent not in pids and process.pid in parents]


def _descendants(roots: Collection[str], processes: Collection[ServerProcess]) -> list[ServerProcess]:
    """Return the descendants of the PIDs `roots`, without these."""
    tree = set(roots)
    while children := {process.pid for process in processes if process.parent in tree} - tree:
        tree |= children
    return [process for process in processes if process.pid in tree - set(roots)]
