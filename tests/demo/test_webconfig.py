"""The configuration of the demo's web server: directives and error messages."""

import subprocess
import sys
from pathlib import Path

import pytest

from cockpit.demo.webconfig import WebConfigError, WebSettings, load


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


def test_names_ignore_case_and_last_value_wins(tmp_path: Path) -> None:
    settings = read(
        tmp_path,
        "listen 80\n<ifmodule MPM_PREFORK_MODULE>\nMAXREQUESTWORKERS 9\nmaxclients 8\n"
        "MaxConnectionsPerChild 7\n</IFMODULE>\n",
    )
    assert settings.listen == ("127.0.0.1", 80)
    assert (settings.max_clients, settings.max_requests_per_child) == (8, 7)


def test_sections_of_other_modules_are_ignored(tmp_path: Path) -> None:
    settings = read(
        tmp_path,
        "Listen 80\n<IfModule worker>\nThreadsPerChild 64\n<IfModule prefork>\nMaxClients 3\n</IfModule>\n</IfModule>\n"
        "<IfModule !prefork>\nMaxClients 4\n</IfModule>\n<IfModule !worker>\nMinSpareServers 6\n</IfModule>\n",
    )
    assert (settings.max_clients, settings.min_spare) == (150, 6)


def test_max_spare_is_raised_above_min_spare(tmp_path: Path) -> None:
    assert read(tmp_path, "Listen 80\nMinSpareServers 20\nMaxSpareServers 10\n").max_spare == 21


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


def config_test(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "cockpit.demo.webserver", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_config_test_command(tmp_path: Path) -> None:
    file = tmp_path / "httpd.conf"
    file.write_text("Listen 80\nMaxClients 3\n")
    good = config_test("-t", str(file))
    assert (good.returncode, good.stdout, good.stderr) == (0, "Syntax OK\n", "")
    file.write_text("Listen 80\nMaxClients many\n")
    bad = config_test("-t", str(file))
    assert (bad.returncode, bad.stdout) == (1, "")
    assert bad.stderr == f"Syntax error: {file}:2: MaxClients takes a whole number from 1 to 256, found many\n"
    assert config_test().returncode == config_test("-t").returncode == config_test("-x", str(file)).returncode == 2


def test_address_in_use_is_one_line(tmp_path: Path) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        file = tmp_path / "httpd.conf"
        file.write_text(f"Listen 127.0.0.1:{taken.getsockname()[1]}\n")
        refused = config_test(str(file))
    assert refused.returncode == 1
    assert refused.stderr.count("\n") == 1
    assert "Address already in use" in refused.stderr
