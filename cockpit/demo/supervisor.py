"""Supervisor of the demo (python -m cockpit.demo.supervisor): its directory, both servers, and the clean-up."""

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cockpit.demo import kernel
from cockpit.demo.layout import DemoFiles

NAME = "demo-supervisor"

_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_PATIENCE = 5.0  # seconds for the servers to exit


class _CannotStart(Exception):
    pass


class DemoSupervisor:
    """Supervisor of both servers and of adopted orphans. Signals and exits of children wake it."""

    def __init__(self, layout: DemoFiles) -> None:
        self._layout = layout
        self._servers: list[subprocess.Popen[bytes]] = []
        self._stopping = False
        self._wake_read, wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(wake_write, False)
        for number in (*_ENDING, signal.SIGCHLD):
            # Never SIG_IGN, which the child processes would inherit.
            signal.signal(number, self._handle_signal)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)

    def start(self) -> str:
        """Start both servers, wait until they are ready, and return the page's URL. Raises _CannotStart."""
        self._layout.write_site()
        web = self._spawn("webserver", "--parent-pipe", str(self._layout.config_file))
        ssh = self._spawn("sshhost", str(self._layout.directory))
        url = self._ready(web, "webserver")
        self._ready(ssh, "sshhost")
        return f"{url}/hello.html"

    def watch(self) -> None:
        """Wait for the end of standard input or SIGTERM; collect exited children until then."""
        while not self._stopping:
            ready, _, _ = select.select([sys.stdin, self._wake_read], [], [])
            if sys.stdin in ready and not os.read(sys.stdin.fileno(), 4096):
                return
            self._drain_wakeups()
            self._collect_exited()

    def end(self) -> None:
        for server in self._servers:
            server.terminate()
        deadline = time.monotonic() + _PATIENCE
        self._collect_exited()
        while any(server.returncode is None for server in self._servers) and self._wait_child(deadline):
            self._collect_exited()
        self._kill_descendants(time.monotonic() + _PATIENCE)

    def _handle_signal(self, number: int, _frame: object) -> None:
        if number in _ENDING:
            self._stopping = True

    def _drain_wakeups(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._wake_read, 4096)

    def _spawn(self, module: str, *arguments: str) -> subprocess.Popen[bytes]:
        with (self._layout.directory / f"{module}.err").open("wb") as errors:
            server = subprocess.Popen(
                [sys.executable, "-m", f"cockpit.demo.{module}", *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=self._layout.directory,
            )
        self._servers.append(server)
        return server

    def _ready(self, server: subprocess.Popen[bytes], module: str) -> str:
        """Return the address that the server prints after `ready`. Raises _CannotStart."""
        assert server.stdout
        words = server.stdout.readline().split()
        if len(words) != 2 or words[0] != b"ready":
            lines = (self._layout.directory / f"{module}.err").read_text(errors="replace").strip().splitlines()
            raise _CannotStart(lines[-1] if lines else f"the demo's {module} exited before it was ready")
        return words[1].decode()

    def _collect_exited(self) -> None:
        """Wait for every child that has exited, adopted orphans included, so that no zombie remains."""
        for server in self._servers:
            server.poll()
        servers = {server.pid for server in self._servers}
        for pid in kernel.children():
            if pid not in servers:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)

    def _kill_descendants(self, deadline: float) -> None:
        """Kill children until none is left: a killed child's own children become orphans and are adopted."""
        while children := kernel.children():
            for pid in children:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            if not self._wait_child(deadline):
                return
            self._collect_exited()

    def _wait_child(self, deadline: float) -> bool:
        """Wait until a child has exited; return False after `deadline`."""
        left = deadline - time.monotonic()
        if left > 0:
            select.select([self._wake_read], [], [], left)
            self._drain_wakeups()
        return left > 0


def main() -> int:
    kernel.set_name(NAME)
    kernel.adopt_orphans()
    layout = DemoFiles(Path(tempfile.mkdtemp(prefix="cockpit-demo-")).resolve())
    supervisor = DemoSupervisor(layout)
    try:
        url = supervisor.start()
        _print({"directory": str(layout.directory), "url": url})
        supervisor.watch()
        return 0
    except (_CannotStart, OSError) as error:
        _print({"error": str(error)})
        return 1
    finally:
        try:
            supervisor.end()
        finally:
            shutil.rmtree(layout.directory, ignore_errors=True)


def _print(message: dict[str, str]) -> None:
    with contextlib.suppress(BrokenPipeError):  # the reader may be gone
        print(json.dumps(message), flush=True)


if __name__ == "__main__":
    sys.exit(main())
