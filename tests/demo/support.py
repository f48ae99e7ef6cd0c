"""Helpers of the demo's tests: run a web server, check processes."""

import http.client
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from tests.processes import is_gone
from tests.waiting import DEADLINE, wait_until


class Server:
    """A running web server: process, files and responses."""

    def __init__(self, process: "subprocess.Popen[bytes]", config: Path, port: int) -> None:
        self.process = process
        self.config = config
        self.port = port

    @property
    def log(self) -> str:
        return (self.config.parent / "error.log").read_text()

    def children(self) -> list[int]:
        """Return the PIDs of the children, defunct ones included."""
        return [child.pid for child in psutil.Process(self.process.pid).children()]

    def started(self, number: int) -> list[int]:
        """Wait for this number of children and return their PIDs."""
        wait_until(lambda: len(self.children()) == number)
        return self.children()

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE)

    def get(self, path: str = "/hello.html", method: str = "GET") -> tuple[int, bytes, int]:
        """Send a request over a new connection; return status, body and the PID of the child."""
        connection = self.connect()
        connection.request(method, path, headers={"Connection": "close"})
        response = connection.getresponse()
        body = response.read()
        connection.close()
        return response.status, body, int(response.headers["X-Pid"])

    def status(self) -> dict[str, str]:
        lines = self.get("/server-status?auto")[1].decode().splitlines()
        return dict(line.split(": ") for line in lines)

    def reload(self, **settings: object) -> None:
        self.config.write_text(config_text(**settings))
        self.process.send_signal(signal.SIGUSR1)


def config_text(**settings: object) -> str:
    directives = "".join(f"    {name} {value}\n" for name, value in settings.items())
    return f"Listen 127.0.0.1:0\nPidFile httpd.pid\nErrorLog error.log\n<IfModule prefork>\n{directives}</IfModule>\n"


@contextmanager
def module(name: str, *arguments: str) -> Iterator[tuple["subprocess.Popen[bytes]", str]]:
    """Run a module of the demo until the end of its standard input; yield the process and its first line."""
    command = [sys.executable, "-m", f"cockpit.demo.{name}", *arguments]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin and process.stdout
    try:
        ready = process.stdout.readline().decode()
        assert ready.startswith("ready "), ready
        yield process, ready
    finally:
        children = [child.pid for child in psutil.Process(process.pid).children()] if process.poll() is None else []
        process.stdin.close()
        process.wait(DEADLINE)
        process.stdout.close()
    assert all(is_gone(pid) for pid in children)


@contextmanager
def running(directory: Path, **settings: object) -> Iterator[Server]:
    """Run a web server with these prefork directives; stop it at the end and check that no child remains."""
    config = directory / "httpd.conf"
    config.write_text(config_text(**settings))
    with module("webserver", "--parent-pipe", str(config)) as (process, ready):
        assert ready.startswith("ready http://127.0.0.1:"), ready
        yield Server(process, config, int(ready.rpartition(":")[2]))
