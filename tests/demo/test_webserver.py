"""The demo's prefork server: configuration, responses, number of children, reload and termination."""

import http.client
import signal
import socket
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import psutil
import pytest

from cockpit.demo.webconfig import WebConfigError, WebSettings, load
from cockpit.demo.webserver import main
from tests.data import data_of
from tests.demo.support import config_text, running
from tests.processes import is_gone
from tests.waiting import DEADLINE, wait_until

DATA = data_of(__file__)


def send(port: int, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), DEADLINE) as connection:
        connection.sendall(request)
        response = b""
        while data := connection.recv(65536):
            response += data
        return response


def test_responses(tmp_path: Path) -> None:
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
            assert send(server.port, bad).startswith(b"HTTP/1.1 400 Bad Request\r\n"), bad
        http10 = send(server.port, b"GET /hello.html HTTP/1.0\r\n\r\n")
        assert b"\r\nConnection: close\r\n" in http10
        assert http10.endswith(body)
        pipelined = b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        assert send(server.port, pipelined).count(body) == 2


def test_document_root(tmp_path: Path) -> None:
    root = tmp_path / "htdocs"
    root.mkdir()
    (root / "hello.html").write_bytes(b"<p>mine</p>")
    (tmp_path / "secret").write_text("no")
    with running(tmp_path, StartServers=1, DocumentRoot=root) as server:
        assert server.get()[:2] == (200, b"<p>mine</p>")
        assert server.get("/")[:2] == (200, b"<p>mine</p>")
        assert server.get("/../secret")[0] == 403
        assert server.get("/absent")[0] == 404


def test_idle_connection_is_closed_after_timeout(tmp_path: Path) -> None:
    with running(tmp_path, StartServers=3, KeepAliveTimeout=1) as server, closing(server.connect()) as connection:
        connection.request("GET", "/hello.html")
        connection.getresponse().read()
        assert connection.sock.recv(1) == b""
        wait_until(lambda: "K" not in server.status()["Scoreboard"])


def test_child_serves_exactly_max_requests(tmp_path: Path) -> None:
    limit = 7
    with running(tmp_path, StartServers=8, MinSpareServers=8, MaxSpareServers=99, MaxRequestsPerChild=limit) as server:
        with ThreadPoolExecutor(4) as pool:
            pids = [pid for _, _, pid in pool.map(lambda _: server.get(), range(20 * limit))]
        served = Counter(pids)
        assert max(served.values()) == limit
        gone = [pid for pid in served if pid not in server.children()]
        assert gone
        assert {served[pid] for pid in gone} == {limit}


def test_children_never_exceed_max_clients(tmp_path: Path) -> None:
    settings = {"StartServers": 1, "MinSpareServers": 3, "MaxClients": 4, "KeepAliveTimeout": 60}
    with running(tmp_path, **settings) as server, ExitStack() as stack:
        # A child serves no other client while a connection is kept open.
        *busy, waiting = (stack.enter_context(closing(server.connect())) for _ in range(4 + 1))
        for connection in busy:
            connection.request("GET", "/hello.html")
            assert connection.getresponse().read()
        waiting.request("GET", "/hello.html")
        wait_until(lambda: "server reached MaxClients setting" in server.log)
        assert len(server.children()) == 4
        busy[0].close()
        assert waiting.getresponse().status == 200
        assert len(server.children()) == 4


def test_idle_children_above_max_spare_are_stopped(tmp_path: Path) -> None:
    with running(tmp_path, StartServers=5, MinSpareServers=1, MaxSpareServers=3) as server:
        server.started(3)
        assert server.status()["MaxSpareServers"] == "3"
        assert len(server.children()) == 3


def test_reload_activates_new_settings(tmp_path: Path) -> None:
    with running(tmp_path, StartServers=2, MinSpareServers=2, MaxSpareServers=4) as server:
        before = server.started(2)
        server.reload(StartServers=4, MinSpareServers=6, MaxSpareServers=9, MaxRequestsPerChild=1000)
        wait_until(lambda: not set(before) & set(server.children()))
        wait_until(lambda: len(server.children()) >= 6)
        status = server.status()
        assert status["ParentServerMPMGeneration"] == "1"
        assert (status["MinSpareServers"], status["MaxSpareServers"]) == ("6", "9")
        assert status["MaxRequestsPerChild"] == "1000"
        assert "Graceful restart requested" in server.log


def test_request_completes_during_reload(tmp_path: Path) -> None:
    with running(tmp_path, StartServers=1, MinSpareServers=1) as server, closing(server.connect()) as connection:
        (old,) = server.started(1)
        connection.connect()
        connection.sock.sendall(b"GET /hello.html HT")
        # A spare child besides the busy child.
        server.started(2)
        server.reload(StartServers=2, MinSpareServers=1)
        wait_until(lambda: server.status()["ParentServerMPMGeneration"] == "1")
        connection.sock.sendall(b"TP/1.1\r\nHost: a\r\n\r\n")
        response = http.client.HTTPResponse(connection.sock)
        response.begin()
        assert (response.status, int(response.headers["X-Pid"]), len(response.read())) == (200, old, 92)
        assert response.headers["Connection"] == "close"
        connection.close()
        wait_until(lambda: old not in server.children())


def test_invalid_configuration_and_killed_child(tmp_path: Path) -> None:
    with running(tmp_path, StartServers=2, MinSpareServers=2) as server:
        before = server.started(2)
        server.reload(MinSpareServers="lots")
        wait_until(lambda: f"{server.config}:5: MinSpareServers takes" in server.log)
        assert server.children() == before
        assert server.status()["MinSpareServers"] == "2"
        server.config.write_text(config_text(MaxClients=3).replace("error.log", "absent/error.log"))
        server.process.send_signal(signal.SIGUSR1)
        wait_until(lambda: "absent/error.log" in server.log)
        assert server.status()["MaxClients"] == "150"
        psutil.Process(before[0]).kill()
        wait_until(lambda: f"child pid {before[0]} ended with signal 9" in server.log)
        wait_until(lambda: len(server.children()) == 2 and before[0] not in server.children())


@pytest.mark.parametrize("how", ["parent_pipe", "TERM", "KILL"])
def test_children_end_with_parent(tmp_path: Path, how: str) -> None:
    with running(tmp_path, StartServers=5) as server, closing(server.connect()) as busy:
        children = server.started(5)
        assert int((tmp_path / "httpd.pid").read_text()) == server.process.pid
        if sys.platform == "linux":
            # The name of the probe's pattern, which is set through prctl.
            names = {Path(f"/proc/{pid}/comm").read_text() for pid in (server.process.pid, *children)}
            assert names == {f"demo-http-{server.port}\n"}
        busy.request("GET", "/hello.html")
        busy.getresponse().read()
        if how == "parent_pipe":
            assert server.process.stdin
            server.process.stdin.close()
        else:
            server.process.send_signal(getattr(signal, f"SIG{how}"))
        server.process.wait(DEADLINE)
        wait_until(lambda: all(is_gone(pid) for pid in children))
        assert (tmp_path / "httpd.pid").exists() == (how == "KILL")


def read(tmp_path: Path, text: str) -> WebSettings:
    file = tmp_path / "httpd.conf"
    file.write_text(text)
    return load(file)


def test_every_directive(tmp_path: Path) -> None:
    root = tmp_path / "a root"
    root.mkdir()
    settings = read(
        tmp_path,
        f"""
        # a comment
        Listen 127.0.0.1:8080
        DocumentRoot "{root}"
        PidFile run/httpd.pid
        ErrorLog /var/log/error.log
        PageCost 12
        KeepAlive Off
        KeepAliveTimeout 7
        <IfModule prefork>
            StartServers 1
            MinSpareServers 2
            MaxSpareServers 9
            MaxClients 20
            MaxRequestsPerChild 100
        </IfModule>
        """,
    )
    assert settings == WebSettings(
        listen=("127.0.0.1", 8080),
        document_root=root,
        pid_file=tmp_path / "run/httpd.pid",
        error_log=Path("/var/log/error.log"),
        page_cost=12,
        keep_alive=False,
        keep_alive_timeout=7,
        start_servers=1,
        min_spare=2,
        max_spare=9,
        max_clients=20,
        max_requests_per_child=100,
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Names ignore case, and the last value wins.
        (
            "listen 80\n<ifmodule MPM_PREFORK_MODULE>\nMAXREQUESTWORKERS 9\nmaxclients 8\n"
            "MaxConnectionsPerChild 7\n</IFMODULE>\n",
            {"listen": ("127.0.0.1", 80), "max_clients": 8, "max_requests_per_child": 7},
        ),
        # Sections of other modules are ignored.
        (
            "Listen 80\n<IfModule worker>\nThreadsPerChild 64\n<IfModule prefork>\nMaxClients 3\n</IfModule>\n"
            "</IfModule>\n<IfModule !prefork>\nMaxClients 4\n</IfModule>\n"
            "<IfModule !worker>\nMinSpareServers 6\n</IfModule>\n",
            {"max_clients": 150, "min_spare": 6},
        ),
        ("Listen 80\nMinSpareServers 20\nMaxSpareServers 10\n", {"min_spare": 20, "max_spare": 21}),
    ],
    ids=["case", "sections", "max spare above min spare"],
)
def test_settings_of_file(tmp_path: Path, text: str, expected: dict[str, object]) -> None:
    settings = read(tmp_path, text)
    assert {name: getattr(settings, name) for name in expected} == expected


@pytest.mark.parametrize(("text", "line", "message"), DATA["error_has_file_line_and_allowed_values"])
def test_error_has_file_line_and_allowed_values(tmp_path: Path, text: str, line: int, message: str) -> None:
    with pytest.raises(WebConfigError) as caught:
        read(tmp_path, text)
    assert str(caught.value).startswith(f"{tmp_path}/httpd.conf:{line}: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_listen_file_and_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(WebConfigError, match="no Listen directive"):
        read(tmp_path, "MaxClients 3\n")
    with pytest.raises(WebConfigError, match=r"absent\.conf: cannot be read: No such file"):
        load(tmp_path / "absent.conf")
    file = tmp_path / "httpd.conf"
    file.write_text("Listen 80\nMaxClients 3\n")
    assert (main(["-t", str(file)]), *capsys.readouterr()) == (0, "Syntax OK\n", "")
    file.write_text("Listen 80\nMaxClients many\n")
    error = f"Syntax error: {file}:2: MaxClients takes a whole number from 1 to 256, found many\n"
    assert (main(["-t", str(file)]), *capsys.readouterr()) == (1, "", error)
    assert main([]) == main(["-t"]) == main(["-x", str(file)]) == 2


def test_address_in_use_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "httpd.conf"
    with socket.create_server(("127.0.0.1", 0)) as occupied:
        file.write_text(f"Listen 127.0.0.1:{occupied.getsockname()[1]}\n")
        command = [sys.executable, "-m", "cockpit.demo.webserver", str(file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1 and "Address already in use" in done.stderr
