"""The demo's prefork server as a process among processes: what it serves, how many children it keeps, how it ends."""

import http.client
import signal
import socket
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from tests.demo.support import DEADLINE, config_text, is_gone, running, wait_until


def ask(port: int, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), DEADLINE) as connection:
        connection.sendall(request)
        reply = b""
        while data := connection.recv(65536):
            reply += data
        return reply


def test_what_it_serves(tmp_path: Path) -> None:
    with running(tmp_path, StartServers=2) as server:
        status, body, _ = server.get()
        assert (status, len(body)) == (200, 92)
        assert server.get(method="HEAD")[:2] == (200, b"")
        assert server.get("/absent.html")[0] == 404
        assert server.get(method="POST")[0] == 405
        for bad in (
            b"nonsense\r\n\r\n",
            b"GET /hello.html HTTP/1.1\r\n\r\n",
            b"GET hello.html HTTP/1.0\r\n\r\n",
            b"GET / HTTP/1.0\r\nno colon\r\n\r\n",
            b"GET / HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc",
            b"GET /" + b"x" * 20000,
        ):
            assert ask(server.port, bad).startswith(b"HTTP/1.1 400 Bad Request\r\n"), bad
        old = ask(server.port, b"GET /hello.html HTTP/1.0\r\n\r\n")
        assert b"\r\nConnection: close\r\n" in old
        assert old.endswith(body)
        two = b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        assert ask(server.port, two).count(body) == 2


def test_a_document_root(tmp_path: Path) -> None:
    root = tmp_path / "htdocs"
    root.mkdir()
    (root / "hello.html").write_bytes(b"<p>mine</p>")
    (tmp_path / "secret").write_text("no")
    with running(tmp_path, StartServers=1, DocumentRoot=root) as server:
        assert server.get()[:2] == (200, b"<p>mine</p>")
        assert server.get("/")[:2] == (200, b"<p>mine</p>")
        assert server.get("/../secret")[0] == 403
        assert server.get("/absent")[0] == 404


def test_keep_alive_holds_its_child(tmp_path: Path) -> None:
    with running(tmp_path, StartServers=3, KeepAliveTimeout=60) as server, closing(server.connect()) as connection:
        pids = set()
        for _ in range(5):
            connection.request("GET", "/hello.html")
            reply = connection.getresponse()
            reply.read()
            pids.add(reply.headers["X-Pid"])
        assert len(pids) == 1
        wait_until(lambda: "K" in server.status()["Scoreboard"], "its child to wait for the next request")
        connection.close()
        wait_until(lambda: "K" not in server.status()["Scoreboard"], "its child to be free")


def test_an_idle_connection_is_closed_in_time(tmp_path: Path) -> None:
    with running(tmp_path, StartServers=3, KeepAliveTimeout=1) as server, closing(server.connect()) as connection:
        connection.request("GET", "/hello.html")
        connection.getresponse().read()
        assert connection.sock.recv(1) == b""
        wait_until(lambda: "K" not in server.status()["Scoreboard"], "its child to be free")


def test_a_child_serves_exactly_its_share(tmp_path: Path) -> None:
    share = 7
    with running(tmp_path, StartServers=8, MinSpareServers=8, MaxSpareServers=99, MaxRequestsPerChild=share) as server:
        with ThreadPoolExecutor(4) as pool:
            pids = [pid for _, _, pid in pool.map(lambda _: server.get(), range(20 * share))]
        served = Counter(pids)
        assert max(served.values()) == share
        gone = [pid for pid in served if pid not in server.children()]
        assert gone
        assert {served[pid] for pid in gone} == {share}


def test_never_more_children_than_max_clients(tmp_path: Path) -> None:
    limit, seen = 4, set()
    with (
        running(tmp_path, StartServers=1, MinSpareServers=3, MaxClients=limit, KeepAliveTimeout=60) as server,
        ThreadPoolExecutor(12) as pool,
    ):
        connections = [server.connect() for _ in range(12)]

        def visit(connection: http.client.HTTPConnection) -> int:
            connection.request("GET", "/hello.html")
            reply = connection.getresponse()
            reply.read()
            return reply.status  # the connection is still open, so its child serves nobody else

        visits = [pool.submit(visit, connection) for connection in connections]

        def full() -> bool:
            seen.add(len(server.children()))
            return "server reached MaxClients setting" in server.log

        wait_until(full, "the server to say that it is full")
        wait_until(lambda: sum(visit.done() for visit in visits) == limit, "as many visits to be answered")

        def all_served() -> bool:
            seen.add(len(server.children()))
            for connection, visit in zip(connections, visits, strict=True):
                if visit.done():
                    connection.close()
            return all(visit.done() for visit in visits)

        wait_until(all_served, "every visit to be answered once those before it make room")
        all_served()
        assert [visit.result() for visit in visits] == [200] * 12
    assert max(seen) == limit


def test_idle_children_beyond_max_spare_are_sent_away(tmp_path: Path) -> None:
    with running(tmp_path, StartServers=5, MinSpareServers=1, MaxSpareServers=3) as server:
        wait_until(lambda: len(server.children()) == 5, "the first five")
        wait_until(lambda: len(server.children()) < 5, "one to leave")
        wait_until(lambda: len(server.children()) <= 3, "another to leave")
        assert server.status()["MaxSpareServers"] == "3"
        assert len(server.children()) == 3


def test_reload_brings_new_settings_into_force(tmp_path: Path) -> None:
    with running(tmp_path, StartServers=2, MinSpareServers=2, MaxSpareServers=4) as server:
        wait_until(lambda: len(server.children()) == 2, "the first two")
        before = server.children()
        server.reload(StartServers=4, MinSpareServers=6, MaxSpareServers=9, MaxRequestsPerChild=1000)
        wait_until(lambda: not set(before) & set(server.children()), "the old generation to be gone")
        wait_until(lambda: len(server.children()) >= 6, "six spare children")
        status = server.status()
        assert status["ParentServerMPMGeneration"] == "1"
        assert (status["MinSpareServers"], status["MaxSpareServers"]) == ("6", "9")
        assert status["MaxRequestsPerChild"] == "1000"
        assert "Graceful restart requested" in server.log


def test_reload_lets_a_request_finish(tmp_path: Path) -> None:
    with running(tmp_path, StartServers=1, MinSpareServers=1) as server:
        wait_until(lambda: len(server.children()) == 1, "the first child")
        (old,) = server.children()
        connection = server.connect()
        connection.connect()
        connection.sock.sendall(b"GET /hello.html HT")
        wait_until(lambda: len(server.children()) == 2, "a spare child beside the busy one")
        server.reload(StartServers=2, MinSpareServers=1)
        wait_until(lambda: server.status()["ParentServerMPMGeneration"] == "1", "the new generation")
        connection.sock.sendall(b"TP/1.1\r\nHost: a\r\n\r\n")
        reply = http.client.HTTPResponse(connection.sock)
        reply.begin()
        assert (reply.status, int(reply.headers["X-Pid"]), len(reply.read())) == (200, old, 92)
        assert reply.headers["Connection"] == "close"
        connection.close()
        wait_until(lambda: old not in server.children(), "the old child to be gone")


def test_a_bad_configuration_at_reload_changes_nothing(tmp_path: Path) -> None:
    with running(tmp_path, StartServers=2, MinSpareServers=2) as server:
        wait_until(lambda: len(server.children()) == 2, "the first two")
        before = server.children()
        server.reload(MinSpareServers="lots")
        wait_until(lambda: f"{server.config}:5: MinSpareServers takes" in server.log, "the error in the log")
        assert server.children() == before
        assert server.status()["MinSpareServers"] == "2"
        server.config.write_text(config_text(MaxClients=3).replace("error.log", "absent/error.log"))
        server.process.send_signal(signal.SIGUSR1)
        wait_until(lambda: "absent/error.log" in server.log, "the log to say that the new one cannot be had")
        assert server.status()["MaxClients"] == "150"


@pytest.mark.skipif(sys.platform != "linux", reason="the name is set through Linux's prctl")
def test_every_process_goes_by_the_name_a_probe_looks_for(tmp_path: Path) -> None:
    with running(tmp_path, StartServers=3) as server:
        wait_until(lambda: len(server.children()) >= 3, "the children")
        for pid in [server.process.pid, *server.children()]:
            assert Path(f"/proc/{pid}/comm").read_text() == f"demo-http-{server.port}\n"


@pytest.mark.parametrize("how", ["leash", "TERM", "KILL"])
def test_no_child_outlives_the_parent(tmp_path: Path, how: str) -> None:
    with running(tmp_path, StartServers=5) as server:
        wait_until(lambda: len(server.children()) == 5, "the children")
        children = server.children()
        assert int((tmp_path / "httpd.pid").read_text()) == server.process.pid
        busy = server.connect()
        busy.request("GET", "/hello.html")
        busy.getresponse().read()
        if how == "leash":
            assert server.process.stdin
            server.process.stdin.close()
        else:
            server.process.send_signal(getattr(signal, f"SIG{how}"))
        server.process.wait(DEADLINE)
        wait_until(lambda: all(is_gone(pid) for pid in children), "every child to end")
        assert (tmp_path / "httpd.pid").exists() == (how == "KILL")
        busy.close()


def test_a_child_that_is_killed_is_reported_and_replaced(tmp_path: Path) -> None:
    with running(tmp_path, StartServers=2, MinSpareServers=2) as server:
        wait_until(lambda: len(server.children()) == 2, "the first two")
        victim = server.children()[0]
        psutil.Process(victim).kill()
        wait_until(lambda: f"child pid {victim} ended with signal 9" in server.log, "the log to tell")
        wait_until(lambda: len(server.children()) == 2 and victim not in server.children(), "another child")
