"""Child process of the demo web server; it serves one connection at a time."""

import mmap
import os
import signal
import socket
import sys
import time
import zlib
from pathlib import Path
from threading import Thread
from typing import NamedTuple

from cockpit.demo import kernel
from cockpit.demo.webconfig import SERVER_LIMIT, WebSettings

# The page without a DocumentRoot: 92 bytes.
PAGE = b"<html><head><title>hi</title></head>\n<body><p>Hello from a prefork child.</p></body></html>\n"

# Compressing this text takes the CPU time that a script would need for the page.
_KILOBYTE = b" ".join(b"%d" % (number * 7919 % 65521) for number in range(200))[:1024]

_REQUEST_TIMEOUT = 10.0  # seconds for a request to arrive, or a response to be read
_LINGER_TIMEOUT = 2.0  # seconds to read after a refused request, so that no reset overtakes the response
_HEAD_LIMIT = 16384  # bytes
_TYPES = {".html": "text/html", ".txt": "text/plain", ".css": "text/css", ".jpg": "image/jpeg", ".png": "image/png"}
_REASONS = {200: "OK", 400: "Bad Request", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed"}

# One byte per slot, with the letters of Apache's mod_status.
DEAD = ord(".")
STARTING = ord("S")
IDLE = ord("_")
BUSY = ord("W")
KEEPALIVE = ord("K")
FINISHING = ord("G")


class Scoreboard:
    """Shared memory with `states[slot]` and `served[slot]` (requests served in that slot since the server started).

    A slot is written by its child, and by the parent only if it has no child. Readers take no lock.
    """

    def __init__(self) -> None:
        shared = memoryview(mmap.mmap(-1, SERVER_LIMIT * 9))
        self.states = shared[:SERVER_LIMIT]
        self.served = shared[SERVER_LIMIT:].cast("Q")
        self.states[:] = bytes([DEAD]) * SERVER_LIMIT

    def is_idle(self, slot: int) -> bool:
        """Return whether the slot is idle. Starting children count, so that a slow start does not spawn even more."""
        return self.states[slot] in (IDLE, STARTING)

    def report(self) -> str:
        states = self.states.tobytes()
        idle = states.count(IDLE) + states.count(STARTING)
        busy = len(states) - states.count(DEAD) - idle
        used = len(states.rstrip(bytes([DEAD])))
        return (
            f"Total Accesses: {sum(self.served)}\nBusyWorkers: {busy}\nIdleWorkers: {idle}\n"
            f"Scoreboard: {states[:used].decode()}\n"
        )


class _Request(NamedTuple):
    method: bytes
    path: str
    keep_alive: bool


class _BadRequest(Exception):
    pass


class Child:
    """A child that exits after its number of connections, or at SIGUSR1."""

    def __init__(
        self, listener: socket.socket, board: Scoreboard, slot: int, settings: WebSettings, status: str
    ) -> None:
        self._listener = listener
        self._board = board
        self._slot = slot
        self._settings = settings
        self._status = status  # the status page, except for the scoreboard
        self._leaving = False
        self._pid = 0
        self._date = (0, "")  # the second, and its text

    def run(self, parent: int, alive: tuple[int, int]) -> None:
        """Run the child after the fork. `alive`: a pipe that only process `parent` keeps open."""
        self._pid = os.getpid()
        os.close(alive[1])
        if not kernel.die_with_parent(parent):
            Thread(target=_exit_with_parent, args=(alive[0],), daemon=True).start()
        signal.signal(signal.SIGUSR1, self._leave)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.set_wakeup_fd(-1)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        connections = 0
        limit = self._settings.max_requests_per_child
        while not self._is_leaving() and (limit == 0 or connections < limit):
            self._board.states[self._slot] = IDLE
            try:
                connection, _ = self._listener.accept()
            except ConnectionAbortedError:
                continue
            except OSError:
                if self._is_leaving():
                    break
                raise
            self._board.states[self._slot] = BUSY
            connections += 1
            with connection:
                self._serve(connection)
        self._board.states[self._slot] = FINISHING

    def _is_leaving(self) -> bool:
        return self._leaving

    def _leave(self, _signal: int, _frame: object) -> None:
        """Make a blocked accept fail, without losing a connection that is already accepted.

        The descriptor of the listening socket is replaced by one that cannot accept: the interrupted accept is
        retried on it and fails. The parent repeats the signal, in case it arrived just before the accept blocked.
        """
        self._leaving = True
        if self._listener.fileno() >= 0:
            nothing = os.open(os.devnull, os.O_RDONLY)
            os.dup2(nothing, self._listener.fileno(), inheritable=False)
            os.close(nothing)

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(_REQUEST_TIMEOUT)
        pending = b""
        try:
            while True:
                head, pending = _read_head(connection, pending)
                if not head:
                    return
                self._board.states[self._slot] = BUSY
                try:
                    request = _parse(head)
                except _BadRequest:
                    self._refuse(connection, 400)
                    return
                if request.method not in (b"GET", b"HEAD"):
                    self._refuse(connection, 405)
                    return
                keep = request.keep_alive and self._settings.keep_alive and not self._leaving
                self._answer(connection, request, keep)
                if not keep:
                    return
                self._board.states[self._slot] = KEEPALIVE
                connection.settimeout(self._settings.keep_alive_timeout)
        except OSError:
            return  # the client disconnected or timed out

    def _answer(self, connection: socket.socket, request: _Request, keep: bool) -> None:
        status, kind, body = self._content(request.path)
        self._board.served[self._slot] += 1
        head = self._head(status, kind, len(body), keep)
        connection.sendall(head if request.method == b"HEAD" else head + body)

    def _content(self, path: str) -> tuple[int, str, bytes]:
        if path == "/server-status":
            return 200, "text/plain", (self._board.report() + self._status).encode()
        work(self._settings.page_cost)
        root = self._settings.document_root
        if root is None:
            page = PAGE if path in ("/", "/hello.html") else None
            return (200, "text/html", page) if page is not None else _error(404)
        return _file(root, path)

    def _refuse(self, connection: socket.socket, status: int) -> None:
        """Send an error response, and close without a reset that would overtake it."""
        self._board.served[self._slot] += 1
        _, kind, body = _error(status)
        connection.sendall(self._head(status, kind, len(body), False) + body)
        connection.shutdown(socket.SHUT_WR)
        end = time.monotonic() + _LINGER_TIMEOUT
        while (left := end - time.monotonic()) > 0:
            connection.settimeout(left)
            if not connection.recv(65536):
                return

    def _head(self, status: int, kind: str, length: int, keep: bool) -> bytes:
        now = int(time.time())
        if self._date[0] != now:
            self._date = (now, time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(now)))
        allow = "Allow: GET, HEAD\r\n" if status == 405 else ""
        return (
            f"HTTP/1.1 {status} {_REASONS[status]}\r\nDate: {self._date[1]}\r\nServer: demo-httpd\r\n"
            f"X-Pid: {self._pid}\r\nContent-Length: {length}\r\nContent-Type: {kind}\r\n{allow}"
            f"Connection: {'keep-alive' if keep else 'close'}\r\n\r\n"
        ).encode()


def work(kilobytes: int) -> None:
    """Use the CPU time of a page with this cost."""
    for _ in range(kilobytes):
        zlib.compress(_KILOBYTE)


def _exit_with_parent(alive: int) -> None:
    """Exit at end of file on `alive`, for kernels without a parent-death signal."""
    while os.read(alive, 1):
        pass
    os._exit(0)


def _read_head(connection: socket.socket, pending: bytes) -> tuple[bytes, bytes]:
    """Return the next request's head and the bytes after it; an empty head if the client closed."""
    while b"\r\n\r\n" not in pending and len(pending) <= _HEAD_LIMIT:
        received = connection.recv(_HEAD_LIMIT)
        if not received:
            break
        pending += received
    if b"\r\n\r\n" not in pending:
        return pending, b""  # truncated or too long: _parse refuses it
    head, _, rest = pending.partition(b"\r\n\r\n")
    return head + b"\r\n\r\n", rest


def _parse(head: bytes) -> _Request:
    """Parse a request head. Raises _BadRequest for invalid (RFC 9112) and unsupported requests."""
    if not head.endswith(b"\r\n\r\n"):
        raise _BadRequest
    line, *fields = head[:-4].split(b"\r\n")
    words = line.split(b" ")
    if len(words) != 3 or not words[0].isalpha() or words[2] not in (b"HTTP/1.0", b"HTTP/1.1"):
        raise _BadRequest
    headers: dict[bytes, bytes] = {}
    for field in fields:
        name, colon, value = field.partition(b":")
        if not colon or not name or name != name.strip():
            raise _BadRequest
        headers[name.lower()] = value.strip()
    if words[2] == b"HTTP/1.1" and b"host" not in headers:
        raise _BadRequest
    target = words[1].removeprefix(b"http://" + headers.get(b"host", b"")) or b"/"
    if not target.startswith(b"/") or b"\0" in target:
        raise _BadRequest
    body = headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers
    if body and words[0] in (b"GET", b"HEAD"):
        raise _BadRequest
    tokens = [token.strip() for token in headers.get(b"connection", b"").lower().split(b",")]
    keep_alive = b"close" not in tokens if words[2] == b"HTTP/1.1" else b"keep-alive" in tokens
    return _Request(words[0], target.partition(b"?")[0].decode("latin-1"), keep_alive)


def _file(root: Path, path: str) -> tuple[int, str, bytes]:
    if ".." in path.split("/"):
        return _error(403)
    name = f"{root}{path}hello.html" if path.endswith("/") else f"{root}{path}"
    try:
        with open(name, "rb", buffering=0) as file:  # noqa: PTH123  # once per request: cheaper than Path
            return 200, _TYPES.get(os.path.splitext(name)[1], "application/octet-stream"), file.readall()  # noqa: PTH122
    except PermissionError:
        return _error(403)
    except OSError:
        return _error(404)


def _error(status: int) -> tuple[int, str, bytes]:
    return status, "text/html", f"<html><body><h1>{status} {_REASONS[status]}</h1></body></html>\n".encode()


def run_child(child: Child, parent: int, alive: tuple[int, int]) -> None:
    """Run `child` and end the process. Never returns."""
    code = 1
    try:
        child.run(parent, alive)
        code = 0
    except Exception as error:
        print(f"child {os.getpid()}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(code)
