"""A real HTTP server for tests, in threads of the test's own process."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BODY = b"x" * 92
# Seconds before a response: load on this server computes little, however long it lasts.
DELAY = 0.01


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body in one segment; two would wait 40 ms for a delayed acknowledgement.
    wbufsize = -1

    def do_GET(self) -> None:
        self.do_HEAD()
        self.wfile.write(BODY)

    def do_HEAD(self) -> None:
        time.sleep(DELAY)
        status = int(self.path.removeprefix("/status/")) if self.path.startswith("/status/") else 200
        self.send_response(status)
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing, since tests read stderr."""


class _Server(ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore clients that disconnect; tests do so on purpose."""


@contextmanager
def http_server() -> Iterator[str]:
    """The server's URL, without a path. `/status/503` has that status."""
    server = _Server(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
