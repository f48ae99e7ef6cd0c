"""The configuration of the demo's web server: directives and error messages."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from cockpit.demo.webconfig import WebConfigError, WebSettings, load
from cockpit.demo.webserver import main


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


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("Listen 80\n\nMinSpareServer 5\n", 3, "unknown directive MinSpareServer"),
        ("Listen 80\nMinSpareServers five\n", 2, "takes a whole number from 1 to 256, found five"),
        ("Listen 80\nMinSpareServers 0\n", 2, "takes a whole number from 1 to 256, found 0"),
        ("Listen 80\nMaxSpareServers -1\n", 2, "takes a whole number of at least 1, found -1"),
        ("Listen 80\nMaxClients 257\n", 2, "takes a whole number from 1 to 256, found 257"),
        ("Listen 80\nMaxRequestsPerChild\n", 2, "takes one value, found none"),
        ("Listen 80\nMaxRequestsPerChild 100 # few\n", 2, "takes one value, found 100 # few"),
        ("Listen 80\nKeepAlive yes\n", 2, "takes On or Off, found yes"),
        ("Listen 127.0.0.1:70000\n", 1, "the port from 0 (any free one) to 65535"),
        ("Listen 80\nDocumentRoot /no/such/place\n", 2, "takes a directory that exists"),
        ("Listen 80\n<IfModule prefork>\nMaxClients 3\n", 2, "never closed"),
        ("Listen 80\n</IfModule>\n", 2, "closes no open section"),
        ("Listen 80\n<Directory />\n</Directory>\n", 2, "use <IfModule NAME>"),
    ],
)
def test_error_has_file_line_and_allowed_values(tmp_path: Path, text: str, line: int, message: str) -> None:
    with pytest.raises(WebConfigError) as caught:
        read(tmp_path, text)
    assert str(caught.value).startswith(f"{tmp_path}/httpd.conf:{line}: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_listen_and_missing_file(tmp_path: Path) -> None:
    with pytest.raises(WebConfigError, match="no Listen directive"):
        read(tmp_path, "MaxClients 3\n")
    with pytest.raises(WebConfigError, match=r"absent\.conf: cannot be read: No such file"):
        load(tmp_path / "absent.conf")


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
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
