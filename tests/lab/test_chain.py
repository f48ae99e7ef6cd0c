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
from cockpit.hosts.probe import Probe
from cockpit.hosts.ssh import connect
from cockpit.model.errors import ChangeRefused
from cockpit.model.hosts import HostConfig
from cockpit.profiles.writing import profile_text
from cockpit.setup.doctor_servers import diagnose_servers
from cockpit.setup.profile_draft import HostSurvey, draft_of
from cockpit.tuning.server_discovery import discover
from cockpit.tuning.tuner import Tuner
from tests.lab.lab import Lab
from tests.lab.test_two_masters import free_port, running_server, wait_for_end

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


TO_PHP = "server {{ listen 127.0.0.1:{port}; location / {{ fastcgi_pass unix:{root}/php.sock; }} }}\n"
TO_HTTP = "server {{ listen {listen}; location / {{ proxy_pass http://127.0.0.1:{to}; }} }}\n"
DIRECTIVES = ("keepalive_timeout", "pm.max_children")


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
    draft = draft_of(f"http://127.0.0.1:{haproxy.port}/", [HostSurvey(HostConfig(name="here"), found)])
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
    draft = draft_of("http://app1/shop/", [HostSurvey(HostConfig(name="app1", ssh="app1"), found)])
    assert draft.hosts[0].processes == ("apache2", "java")
    assert "JAVA_OPTS" in {knob.name for knob in draft.knobs}


async def test_of_several_servers_behind_a_proxy_only_those_of_its_chain_are_changed(
    lab_allowed: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    shell = LocalShell("here")
    own, other = tmp_path / "own", tmp_path / "other"
    for root in (own, other):
        root.mkdir()
    with (
        php(own),
        php(other),
        running_server("nginx", tmp_path / "third") as third,
        running_server("nginx", tmp_path / "back", more=TO_PHP.format(port=(port := free_port()), root=own)) as back,
        running_server(
            "nginx", tmp_path / "front", more=TO_HTTP.format(listen=(front := free_port()), to=port)
        ) as master,
    ):
        found = await discover(shell, "here", front, answers=True)
        assert found.serving and found.serving.master and found.serving.master.pid == master.pid
        files = {
            one.knob.file: one.knob
            for one in found.offered
            if one.knob.directive in ("keepalive_timeout", "pm.max_children")
        }
        usual = {one.knob.file for one in found.offered if one.usual}
        chain = {str(master.file), str(back.file), str(own / "php.conf")}
        outside = {str(third.file), str(other / "php.conf")}
        assert chain <= usual and not outside & usual and files.keys() >= chain | outside

        config = draft_of(f"http://127.0.0.1:{front}/", [HostSurvey(HostConfig(name="here"), found)]).hosts[0]
        assert config.upstreams == (f"127.0.0.1:{port}", f"{own}/php.sock")
        probe = await Probe.start(shell, config, front)
        reading = await probe.read()
        probe.close()
        watched = {process.pid for process in reading.processes}
        masters = [int((root / "php.pid").read_text()) for root in (own, other)]
        assert watched >= {master.pid, back.pid, masters[0]} | master.workers | back.workers
        assert not watched & ({third.pid, masters[1]} | third.workers) and reading.excluded

        async def level(file: str, port: int | None = front) -> str:
            return (await diagnose_servers(shell, "here", port, [files[file]]))[0].level

        assert {file: await level(file) for file in sorted(chain)} == dict.fromkeys(sorted(chain), "ok")
        assert {file: await level(file) for file in sorted(outside)} == dict.fromkeys(sorted(outside), "error")
        # The target is on another host: each may serve it.
        assert [await level(file, None) for file in sorted(outside)] == ["ok", "ok"]
        tuner = Tuner(port_on=lambda host: front)
        with pytest.raises(ChangeRefused, match=f"is not read by the php-fpm behind port {front}: .*{own}/php.conf"):
            await tuner.apply(shell, "here", [(files[str(other / "php.conf")], "2")])
        with pytest.raises(ChangeRefused, match=f"is not read by the nginx on port {front} or behind it: "):
            await tuner.apply(shell, "here", [(files[str(third.file)], "33")])
        before = (back.workers, (back.root / "server.conf").read_bytes())
        applied = await tuner.apply(shell, "here", [(files[str(back.file)], "33")])
        assert back.workers - before[0], "a reload starts another worker"
        await tuner.undo(shell, applied)
        assert (back.root / "server.conf").read_bytes() == before[1]
        # An address that only the proxy knows: another server may be behind it.
        more = master.root / "conf.d" / "more.conf"
        more.write_text(
            more.read_text() + f"server {{ listen {free_port()}; location / {{ proxy_pass http://$arg_to; }} }}\n"
        )
        assert await level(str(other / "php.conf")) == "note"
    await shell.close()
