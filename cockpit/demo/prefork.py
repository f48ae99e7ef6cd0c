"""Parent process of the demo web server; it manages its children as Apache's prefork MPM does.

Once per second it reads the scoreboard. With fewer idle children than MinSpareServers it spawns 1, then 2, 4, up to
32 per pass until there are enough; with more than MaxSpareServers it asks one to exit. A child that has served its
MaxRequestsPerChild exits and stays defunct until the next pass.
"""

import gc
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

from cockpit.demo import kernel
from cockpit.demo.webchild import DEAD, FINISHING, STARTING, Child, Scoreboard, run_child
from cockpit.demo.webconfig import WebConfigError, WebSettings, load

_PASS = 1.0  # seconds between two maintenance passes
_MAX_SPAWN = 32  # maximum children per pass
_BURST = 8  # a pass that spawns at least this many is logged as busy
_HOLD_OFF = 10  # passes after a reload in which the spawn rate does not double
_PATIENCE = 3.0  # seconds that children have to exit at shutdown before they are killed
_SIGNALS = {signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP}


def process_name(port: int) -> str:
    """Return the name of the server's processes, at most 15 bytes and unique per demo."""
    return f"demo-http-{port}"


class PreforkChild:
    def __init__(self, slot: int) -> None:
        self.slot = slot
        self.leaving = False


class Prefork:
    """The parent process. Raises WebConfigError, OSError if it cannot start."""

    def __init__(self, config: Path, parent_pipe: int | None = None) -> None:
        """The server ends at end of file on descriptor `parent_pipe` (None: only at a signal)."""
        self._config = config
        self._settings = load(config)
        self._generation = 0
        self._board = Scoreboard()
        self._workers: dict[int, PreforkChild] = {}  # by pid
        self._spawn_rate = 1
        self._hold_off = 0
        self._to_replace = 0  # children of the new generation that wait for an old one to exit
        self._logged_full = False
        self._pending: set[int] = set()
        self._parent_pipe = parent_pipe
        self._alive = os.pipe()  # for the children: end of file on it means that this process has exited
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        self._log = sys.stderr.fileno()
        self._open_log(self._settings)
        self._listener = socket.create_server(self._settings.listen, backlog=511)

    @property
    def address(self) -> tuple[str, int]:
        host, port = self._listener.getsockname()[:2]
        return host, port

    def run(self, ready: Callable[[], None]) -> None:
        """Serve until SIGTERM, SIGINT or the end of the parent pipe; no child is left when it returns.

        `ready` is called once signal handlers are set and the first children are started.
        """
        kernel.set_name(process_name(self.address[1]))
        for number in _SIGNALS:
            signal.signal(number, self._handle_signal)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        self._write_pid_file(self._settings)
        gc.collect()
        gc.freeze()
        try:
            self._start(min(self._settings.start_servers, self._settings.max_clients))
            self._write_log("notice", "demo-httpd configured -- resuming normal operations")
            ready()
            while not self._stopping():
                self._collect_exited()
                if self._wait(_PASS):
                    self._maintain()
                if self._pending & {signal.SIGUSR1, signal.SIGHUP}:
                    self._pending -= {signal.SIGUSR1, signal.SIGHUP}
                    self._reload()
            self._write_log("notice", "caught SIGTERM, shutting down")
        finally:
            self._listener.close()
            self._pending.add(signal.SIGTERM)  # also without a signal
            self._end_children()
            if self._settings.pid_file is not None:
                self._settings.pid_file.unlink(missing_ok=True)

    def _handle_signal(self, number: int, _frame: object) -> None:
        self._pending.add(number)

    def _stopping(self) -> bool:
        return bool(self._pending & {signal.SIGTERM, signal.SIGINT})

    def _wait(self, seconds: float) -> bool:
        """Wait for a signal or the end of the parent pipe; return whether `seconds` passed without either."""
        watched = [self._wake_read] if self._parent_pipe is None else [self._wake_read, self._parent_pipe]
        ready, _, _ = select.select(watched, [], [], seconds)
        if self._wake_read in ready:
            os.read(self._wake_read, 4096)
        if self._parent_pipe in ready and not os.read(self._parent_pipe, 4096):
            self._pending.add(signal.SIGTERM)
        return not ready

    def _maintain(self) -> None:
        for pid, worker in self._workers.items():
            if worker.leaving and self._board.states[worker.slot] != FINISHING:
                os.kill(pid, signal.SIGUSR1)  # the first signal may have been lost: see Child._leave
        if self._to_replace:
            self._start(self._to_replace)
            self._to_replace = 0
            return
        idle = [
            (worker.slot, pid)
            for pid, worker in self._workers.items()
            if not worker.leaving and self._board.is_idle(worker.slot)
        ]
        if len(idle) > self._settings.max_spare:
            self._spawn_rate = 1
            self._dismiss(max(idle)[1])
        elif len(idle) < self._settings.min_spare:
            self._spawn(len(idle))
        else:
            self._spawn_rate = 1

    def _spawn(self, idle: int) -> None:
        room = self._settings.max_clients - len(self._workers)
        if room <= 0:
            if not self._logged_full:
                self._write_log("error", "server reached MaxClients setting, consider raising the MaxClients setting")
            self._logged_full = True
            self._spawn_rate = 1
            return
        if self._spawn_rate >= _BURST:
            self._write_log(
                "info",
                "server seems busy, (you may need to increase StartServers, or Min/MaxSpareServers), "
                f"spawning {min(room, self._spawn_rate)} children, there are {idle} idle, "
                f"and {len(self._workers)} total children",
            )
        self._start(self._spawn_rate)
        if self._hold_off:
            self._hold_off -= 1
        elif self._spawn_rate < _MAX_SPAWN:
            self._spawn_rate *= 2

    def _start(self, count: int) -> int:
        """Start up to `count` children within MaxClients; return the number of started ones."""
        taken = {worker.slot for worker in self._workers.values()}
        slots = [slot for slot in range(len(self._board.states)) if slot not in taken]
        room = self._settings.max_clients - len(self._workers)
        started = 0
        for slot in slots[: max(0, min(count, room))]:
            if not self._fork(slot):
                break
            started += 1
        return started

    def _fork(self, slot: int) -> bool:
        """Fork one child. Signals are blocked until the child has its own handlers, so that none is lost."""
        parent = os.getpid()
        child = Child(self._listener, self._board, slot, self._settings, self._active_settings())
        self._board.states[slot] = STARTING
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        try:
            pid = os.fork()
            if pid == 0:
                run_child(child, parent, self._alive)
        except OSError as error:
            self._board.states[slot] = DEAD
            self._write_log("error", f"fork: Unable to fork new process: {error.strerror}")
            return False
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        self._workers[pid] = PreforkChild(slot)
        return True

    def _dismiss(self, pid: int) -> None:
        """Ask a child to exit after its current connection."""
        self._workers[pid].leaving = True
        os.kill(pid, signal.SIGUSR1)

    def _collect_exited(self) -> None:
        """Wait for exited children, and replace those that a reload dismissed."""
        while self._workers:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            worker = self._workers.pop(pid)
            self._board.states[worker.slot] = DEAD
            if status != 0 and not self._stopping():
                self._write_log("error", f"child pid {pid} ended with {_exit_text(status)}")
            if self._to_replace:
                self._to_replace -= self._start(1)

    def _reload(self) -> None:
        """Read the configuration again and replace all children. An invalid configuration is only logged."""
        self._write_log("notice", "Graceful restart requested, doing restart")
        try:
            settings = load(self._config)
            self._open_log(settings)
            self._write_pid_file(settings)
        except (WebConfigError, OSError) as error:
            self._write_log("error", f"{error}; the previous configuration stays active")
            return
        if settings.listen != self._settings.listen:
            self._write_log("warn", "a new Listen takes effect only after a restart")
        self._settings = settings
        self._generation += 1
        self._logged_full = False
        self._hold_off = _HOLD_OFF
        for pid in self._workers:
            self._dismiss(pid)
        target = min(settings.start_servers, settings.max_clients)
        self._to_replace = target - self._start(target)
        self._write_log("notice", "demo-httpd configured -- resuming normal operations")

    def _end_children(self) -> None:
        signal.signal(signal.SIGCHLD, self._handle_signal)
        for pid in self._workers:
            os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + _PATIENCE
        self._parent_pipe = None
        self._to_replace = 0
        self._collect_exited()
        while self._workers and (left := deadline - time.monotonic()) > 0:
            self._wait(left)
            self._collect_exited()
        for pid in self._workers:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    def _active_settings(self) -> str:
        settings = self._settings
        return (
            f"ParentServerMPMGeneration: {self._generation}\nMinSpareServers: {settings.min_spare}\n"
            f"MaxSpareServers: {settings.max_spare}\nMaxClients: {settings.max_clients}\n"
            f"MaxRequestsPerChild: {settings.max_requests_per_child}\n"
        )

    def _write_pid_file(self, settings: WebSettings) -> None:
        if settings.pid_file is not None:
            settings.pid_file.write_text(f"{os.getpid()}\n")

    def _open_log(self, settings: WebSettings) -> None:
        """Open the error log, standard error if none is configured."""
        old, path = self._log, settings.error_log
        standard = sys.stderr.fileno()
        self._log = standard if path is None else os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        if old != standard:
            os.close(old)

    def _write_log(self, level: str, text: str) -> None:
        now = time.time()
        date, year = time.strftime("%a %b %d %H:%M:%S|%Y", time.localtime(now)).split("|")
        line = f"[{date}.{int(now % 1 * 1e6):06d} {year}] [mpm_prefork:{level}] [pid {os.getpid()}] {text}\n"
        os.write(self._log, line.encode(errors="surrogateescape"))


def _exit_text(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    return f"exit status {code}" if code >= 0 else f"signal {-code}"
