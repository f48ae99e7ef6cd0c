"""Backends of a proxy are found by its configuration and included in the profile draft. On real servers."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path

import psutil
import pytest

from cockpit.hosts.local import LocalShell
from cockpit.hosts.ssh import connect
from cockpit.model.hosts import HostConfig
from cockpit.profiles.writing import profile_text
from cockpit.setup.profile_draft import Surveyed, draft_of
from cockpit.tuning.server_discovery import discover
from tests.lab.lab import Lab
from tests.lab.test_two_masters import running_server, wait_for_end

NAME = "php-fpm8.2"
POOL = """\
[global]
pid = {root}/php.pid
error_log = {root}/php.log
[www]
user = nobody
listen = {root}/php.sock
pm = static
pm.max_children = 1
"""
BEHIND_NGINX = """\
server {{
    listen unix:{root}/nginx.sock;
    location / {{ fastcgi_pass unix:{root}/php.sock; }}
    # location /old {{ proxy_pass http://192.0.2.9; }}
    location /away {{ proxy_pass http://192.0.2.7:8080; }}
}}
"""


@contextmanager
def php(root: Path) -> Iterator[None]:
    program = shutil.which(NAME, path="/usr/sbin") or pytest.skip(f"{NAME} is not installed")
    (root / "php.conf").write_text(POOL.format(root=root))
    subprocess.run([program, "-y", root / "php.conf", "-D"], check=True, capture_output=True)
    master = psutil.Process(int((root / "php.pid").read_text()))
    try:
        yield
    finally:
        tree = [master, *master.children()]
        master.terminate()
        wait_for_end(tree)


async def test_backends_of_proxy_are_in_draft(
    lab_allowed: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    shell = LocalShell("here")
    with (
        php(tmp_path),
        running_server("nginx", tmp_path / "nginx", more=BEHIND_NGINX.format(root=tmp_path)) as nginx,
        running_server(
            "haproxy", tmp_path / "haproxy", more=f"backend b\n    server n 127.0.0.1:{nginx.port}\n"
        ) as haproxy,
    ):
        found = await discover(shell, "here", haproxy.port, answers=True)
    await shell.close()
    steps = [f"127.0.0.1:{nginx.port}", f"{tmp_path}/php.sock", "192.0.2.7:8080"]
    assert [(hop.upstream.words, hop.is_here) for hop in found.chain] == list(
        zip(steps, (True, True, False), strict=True)
    )
    assert found.chain[0].words == f"HAProxy :{haproxy.port} -> nginx {steps[0]}"
    assert found.chain[1].front == found.chain[2].front == f"nginx {steps[0]}"
    draft = draft_of(f"http://127.0.0.1:{haproxy.port}/", [Surveyed(HostConfig(name="here"), found)])
    *proxies, backend = draft.hosts[0].processes
    assert proxies == ["haproxy", "nginx"] and fnmatchcase(NAME, backend)
    assert {str(haproxy.file), str(nginx.file)} <= {knob.file for knob in draft.knobs}
    assert "192.0.2.7:8080, on another host" in profile_text(draft)


async def test_tomcat_behind_mod_jk_is_in_draft(whole_lab: Lab) -> None:
    shell = await connect(HostConfig(name="app1", ssh="app1"), whole_lab.app1.ssh_config)
    found = await discover(shell, "app1", 80, answers=True)
    await shell.close()
    (hop,) = found.chain
    assert hop.words == f"{found.serving.title if found.serving else ''} :80 -> Tomcat10 app1:8009"
    assert hop.server is not None and hop.server.ports == (8009, 8080)
    draft = draft_of("http://app1/shop/", [Surveyed(HostConfig(name="app1", ssh="app1"), found)])
    assert draft.hosts[0].processes == ("apache2", "java")
    assert "JAVA_OPTS" in {knob.name for knob in draft.knobs}
