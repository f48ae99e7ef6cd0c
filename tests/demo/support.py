"""What the demo's tests share: waiting for a condition, a web server of one's own, and who is still alive."""

import http.client
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

DEADLINE = 120.0  # seconds; far more than anything here takes


def wait_until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, f"not within {DEADLINE} s: {what}"
        time.sleep(0.01)


def is_gone(pid: int) -> bool:
    """Whether process `pid` has ended, be it that nobody has reaped it yet."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


class Server:
    """A running web server: its process, its files, its replies."""

    def __init__(self, process: "subprocess.Popen[bytes]", config: Path, port: int) -> None:
        self.process = process
        self.config = config
        self.port = port

    @property
    def log(self) -> str:
        return (self.config.parent / "error.log").read_text()

    def children(self) -> list[int]:
        """The children that there are, defunct ones included."""
        return [child.pid for child in psutil.Process(self.process.pid).children()]

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE)

    def get(self, path: str = "/hello.html", method: str = "GET") -> tuple[int, bytes, int]:
        """Status, body and the pid that answered, over a connection of its own."""
        connection = self.connect()
        connection.request(method, path, headers={"Connection": "close"})
        reply = connection.getresponse()
        body = reply.read()
        connection.close()
        return reply.status, body, int(reply.headers["X-Pid"])

    def status(self) -> dict[str, str]:
        lines = self.get("/server-status?auto")[1].decode().splitlines()
        return dict(line.split(": ") for line in lines)

    def reload(self, **settings: object) -> None:
        self.config.write_text(config_text(**settings))
        self.process.send_signal(signal.SIGUSR1)


def config_text(**settings: object) -> str:
    inner = "".join(f"    {name} {value}\n" for name, value in settings.items())
    return f"Listen 127.0.0.1:0\nPidFile httpd.pid\nErrorLog error.log\n<IfModule prefork>\n{inner}</IfModule>\n"


@contextmanager
def running(directory: Path, **settings: object) -> Iterator[Server]:
    """A web server with these prefork directives; ended, with a check that it took all its children with it."""
    config = directory / "httpd.conf"
    config.write_text(config_text(**settings))
    process = subprocess.Popen(
        [sys.executable, "-m", "cockpit.demo.webserver", "--leash", str(config)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin and process.stdout
    try:
        ready = process.stdout.readline().decode()
        assert ready.startswith("ready http://127.0.0.1:"), ready
        yield Server(process, config, int(ready.rpartition(":")[2]))
    finally:
        left = [child.pid for child in psutil.Process(process.pid).children()] if process.poll() is None else []
        process.stdin.close()
        process.wait(DEADLINE)
        process.stdout.close()
    assert all(is_gone(pid) for pid in left)
