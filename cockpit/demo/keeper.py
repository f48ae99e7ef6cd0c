"""Keeps the demo together (python -m cockpit.demo.keeper): its directory, both servers, and the clean-up."""

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
from cockpit.demo.layout import Layout

NAME = "demo-keeper"

_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_PATIENCE = 5.0  # seconds for the servers to exit


class _CannotStart(Exception):
    pass


class DemoSupervisor:
    """Both servers, and whatever else becomes a child of this process. Signals and ending children wake it."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._servers: list[subprocess.Popen[bytes]] = []
        self._stopping = False
        self._wake_read, wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(wake_write, False)
        for number in (*_ENDING, signal.SIGCHLD):
            signal.signal(number, self._note)  # a handler, never SIG_IGN: the commands run below would inherit that
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)

    def start(self) -> str:
        """Start both servers and wait until they are ready; the web server's URL. Raises _CannotStart."""
        self._layout.write_site()
        web = self._spawn("webserver", "--parent-pipe", str(self._layout.config_file))
        ssh = self._spawn("sshhost", str(self._layout.directory))
        url = self._ready(web, "webserver")
        self._ready(ssh, "sshhost")
        return f"{url}/hello.html"

    def watch(self) -> None:
        """Return when standard input ends or SIGTERM arrives; reap children until then."""
        while not self._stopping:
            ready, _, _ = select.select([sys.stdin, self._wake_read], [], [])
            if sys.stdin in ready and not os.read(sys.stdin.fileno(), 4096):
                return
            self._drain()
            self._reap()

    def end(self) -> None:
        for server in self._servers:
            server.terminate()
        deadline = time.monotonic() + _PATIENCE
        self._reap()
        while any(server.returncode is None for server in self._servers) and self._wait_child(deadline):
            self._reap()
        self._kill_descendants(time.monotonic() + _PATIENCE)

    def _note(self, number: int, _frame: object) -> None:
        if number in _ENDING:
            self._stopping = True

    def _drain(self) -> None:
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
            raise _CannotStart(lines[-1] if lines else f"the demo's {module} ended before it was ready")
        return words[1].decode()

    def _reap(self) -> None:
        """Reap every child that has ended, adopted orphans too."""
        for server in self._servers:
            server.poll()
        servers = {server.pid for server in self._servers}
        for pid in kernel.children():
            if pid not in servers:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)

    def _kill_descendants(self, deadline: float) -> None:
        """Kill all children until none is left; orphans of a killed process are adopted."""
        while children := kernel.children():
            for pid in children:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            if not self._wait_child(deadline):
                return
            self._reap()

    def _wait_child(self, deadline: float) -> bool:
        """Wait until a child has ended; False after `deadline`."""
        left = deadline - time.monotonic()
        if left > 0:
            select.select([self._wake_read], [], [], left)
            self._drain()
        return left > 0


def main() -> int:
    kernel.set_name(NAME)
    kernel.adopt_orphans()
    layout = Layout(Path(tempfile.mkdtemp(prefix="cockpit-demo-")).resolve())
    keeper = DemoSupervisor(layout)
    try:
        url = keeper.start()
        _print({"directory": str(layout.directory), "url": url})
        keeper.watch()
        return 0
    except (_CannotStart, OSError) as error:
        _print({"error": str(error)})
        return 1
    finally:
        try:
            keeper.end()
        finally:
            shutil.rmtree(layout.directory, ignore_errors=True)


def _print(message: dict[str, str]) -> None:
    with contextlib.suppress(BrokenPipeError):  # the reader may be gone
        print(json.dumps(message), flush=True)


if __name__ == "__main__":
    sys.exit(main())
