"""Shared memory in which each child of the demo server shows its parent what it is doing."""

import mmap

from cockpit.demo.webconfig import SERVER_LIMIT

# One byte a slot, with the letters of Apache's mod_status.
DEAD = ord(".")
STARTING = ord("S")
IDLE = ord("_")
BUSY = ord("W")
KEEPALIVE = ord("K")
FINISHING = ord("G")


class Scoreboard:
    """`states[slot]` and `served[slot]` (requests answered in that slot since the server began).

    A slot is written by the child that holds it, and by the parent only while no child does; a reader takes no lock.
    """

    def __init__(self) -> None:
        shared = memoryview(mmap.mmap(-1, SERVER_LIMIT * 9))
        self.states = shared[:SERVER_LIMIT]
        self.served = shared[SERVER_LIMIT:].cast("Q")
        self.states[:] = bytes([DEAD]) * SERVER_LIMIT

    def is_idle(self, slot: int) -> bool:
        """Starting counts as idle: a server that is slow to start is not helped by starting more."""
        return self.states[slot] in (IDLE, STARTING)

    def report(self) -> str:
        """The figures of mod_status's `?auto` page that a prefork server has here, one a line."""
        states = self.states.tobytes()
        idle = states.count(IDLE) + states.count(STARTING)
        busy = len(states) - states.count(DEAD) - idle
        used = len(states.rstrip(bytes([DEAD])))
        return (
            f"Total Accesses: {sum(self.served)}\nBusyWorkers: {busy}\nIdleWorkers: {idle}\n"
            f"Scoreboard: {states[:used].decode()}\n"
        )
