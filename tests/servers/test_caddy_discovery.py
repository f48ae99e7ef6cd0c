"""Servers of Caddy: found with their files, commands and admin endpoint."""

import os
import subprocess
from pathlib import Path

import pytest

from cockpit.servers.caddy.commands import in_its_environment
from cockpit.servers.inventory import Process
from cockpit.servers.kind import RunningServer
from cockpit.servers.sections import in_sections
from tests.data import data_of
from tests.servers.found import running
from tests.servers.test_grammars import FILES
from tests.waiting import programs

DATA = data_of(__file__)

HOST = DATA["host"]


def test_servers_with_and_without_file_are_discovered() -> None:
    packaged, shop, plain = running(HOST)
    assert packaged.startup and packaged.startup.file == "/etc/caddy/Caddyfile" and packaged.ports == (80, 2019)
    assert packaged.startup.test == "caddy validate --config /etc/caddy/Caddyfile --adapter caddyfile"
    assert packaged.startup.reload == "systemctl reload caddy.service" and not packaged.startup.uncertainty
    assert [page.url for page in packaged.status] == ["http://localhost:2019/metrics"]
    assert shop.startup and shop.startup.file == "/srv/shop/Caddyfile" and shop.status == ()
    assert shop.startup.reload.startswith("env -i sh -c ")
    assert shop.startup.reload.endswith(
        " sh 'caddy run --adapter=caddyfile' caddy reload --config /srv/shop/Caddyfile --adapter caddyfile"
    )
    assert plain.startup and plain.startup.files == () and plain.candidates == ()
    assert {candidate.name for candidate in shop.candidates} == {
        *("protocols", "max_header_size", "keepalive_interval", "idle-timeouts", "read_header-timeouts")
    }


def test_environment_of_other_user_is_not_used() -> None:
    own = "/srv/shop\tyes\t\thost"
    startup = running(HOST.replace(own, "/srv/shop\tyes\t\tuser"))[1].startup
    assert (
        startup and startup.read_only_reason.startswith("another user started it") and not startup.test + startup.reload
    )
    in_unit = running(HOST.replace(own, "/srv/shop\tyes\tshop.service\tuser"))[1].startup
    assert in_unit and in_unit.reload == "systemctl reload shop.service" and not in_unit.read_only_reason
    assert in_unit.test == "caddy validate --config /srv/shop/Caddyfile --adapter caddyfile"
    file = running(HOST.replace("--adapter=caddyfile", "--envfile\t/srv/env"))[1].startup
    assert file and file.read_only_reason.startswith("its --envfile may be part")
    plain = running(HOST.replace("caddy.service\tuser", "\tuser"))[0].startup
    assert plain and plain.reload == "caddy reload --config /etc/caddy/Caddyfile --adapter caddyfile"


@pytest.mark.parametrize("shell", programs("sh", "bash", "busybox sh"))
def test_command_has_only_server_environment(shell: str, tmp_path: Path) -> None:
    path, evil = os.environ["PATH"], tmp_path / "evil"
    environment = {
        "PATH": path,
        "PLAIN": "a  b",
        "EMPTY": "",
        "QUOTES": f"it's '$(touch {evil})' \"`touch {evil}`\" \\ \\n",
        "LINES": f"a\nb\nexport LINE=$(touch {evil})",
        "export NAME": f"$(touch {evil})",
    }
    line = ("sleep", "600", f"0.{os.getpid()}")
    with subprocess.Popen(line, env=environment) as server:
        process = Process(server.pid, 1, "sleep", line)
        command = in_its_environment(process, "env", "-0")
        own_environment = {"PATH": path, "MINE": "1"}
        try:
            done = subprocess.run([*shell.split(), "-c", command], capture_output=True, check=True, env=own_environment)
        finally:
            server.kill()
    found = dict(entry.split("=", 1) for entry in done.stdout.decode().split("\0") if entry)
    assert {name: found[name] for name in found if name not in ("PWD", "OLDPWD", "SHLVL", "_")} == {
        name: value for name, value in environment.items() if " " not in name
    }
    assert not evil.exists()
    assert subprocess.run(["sh", "-c", command], capture_output=True, check=False).returncode != 0


def test_admin_endpoint_is_read_from_global_options() -> None:
    without_unit = HOST.replace("caddy.service\tuser", "\thost").replace("127.0.0.1:2019", "127.0.0.1:2030")
    options = (
        "text\t/etc/caddy/Caddyfile\t{\ntext\t/etc/caddy/Caddyfile\t\tadmin ADMIN\ntext\t/etc/caddy/Caddyfile\t}\n"
    )
    without_unit += 'unix\t/run/admin.sock\tusers:(("caddy",pid=7,fd=9))\n'
    at = without_unit.index("text\t")

    def packaged(admin: str) -> RunningServer:
        return running(without_unit[:at] + options.replace("ADMIN", admin) + without_unit[at:])[0]

    startup = packaged("127.0.0.1:2030").startup
    reload = "caddy reload --config /etc/caddy/Caddyfile --adapter caddyfile"
    assert startup and startup.reload == f"{reload} --address 127.0.0.1:2030"
    assert [page.url for page in packaged("127.0.0.1:2030").status] == ["http://127.0.0.1:2030/metrics"]
    assert [page.url for page in packaged(":2030").status] == ["http://localhost:2030/metrics"]
    # The endpoint of another server.
    assert packaged("localhost:2020").status == packaged("unix//run/other.sock").status == ()
    for admin in ("unix//var/run/admin.sock", "unix//run/admin.sock|0200"):
        assert [page.url for page in packaged(admin).status] == ["unix:/run/admin.sock"]
    in_socket = packaged("unix//run/admin.sock").startup
    assert in_socket and in_socket.reload == f"{reload} --address unix//run/admin.sock"
    off = packaged("off")
    assert off.startup and off.startup.read_only_reason == "it cannot be reloaded: its admin endpoint is off"
    assert off.candidates == () and off.startup.reload == ""


@pytest.mark.parametrize(("command", "file", "fixed"), DATA["file_is_found_in_command_line"])
def test_file_is_found_in_command_line(command: str, file: str, fixed: str) -> None:
    (server,) = running(
        f"process\t7\t1\tcaddy\tcaddy\t{command}\t\nmaster\t7\t/usr/bin/caddy\t/srv\tyes\t\thost\n"
        'listen\t*:80\tusers:(("caddy",pid=7,fd=6))\n'
    )
    assert server.startup and server.startup.file == file and fixed in server.startup.read_only_reason
    assert (
        bool(server.startup.read_only_reason) == bool(fixed) == (not server.startup.reload) == (not server.candidates)
    )


def test_candidates_in_sections_are_offered() -> None:
    server = running(HOST)[0]
    text = FILES["caddy"]["text"][0]["text"].replace("\tencode @text {\n\t\tgzip 5\n\t}\n", "")
    offered = {candidate.name: candidate for candidate in in_sections(server, {"/etc/caddy/Caddyfile": text})}
    assert set(offered) == {
        "protocols-443",
        "encode-example.com-www.example.com-8443",
        "encode-PORT-80-81",
        *(f"{name}-localhost-9000-10.0.0.1-9001" for name in ("keepalive", "keepalive_idle_conns")),
        "keepalive_idle_conns_per_host-localhost-9000-10.0.0.1-9001"[: len("keepalive_idle_conns_per_host-") + 40],
    }
    assert offered["encode-PORT-80-81"].section == ":{$PORT:80 81} {"
    assert not in_sections(server, {"/etc/caddy/Caddyfile": "encode gzip\nhandle {\n}\n"})
