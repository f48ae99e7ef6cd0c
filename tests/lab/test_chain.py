"""Backends of a proxy are found by its configuration, included in the profile draft, watched, and alone changed."""

from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from cockpit.hosts.local import LocalShell
from cockpit.hosts.probe.probe import Probe
from cockpit.model.errors import ChangeRefused
from cockpit.model.host.samples import HostConfig
from cockpit.profiles.writing import profile_text
from cockpit.setup.doctor_servers import diagnose_servers
from cockpit.setup.profile_draft import HostSurvey, draft_of
from cockpit.tuning.discovery.servers import discover
from cockpit.tuning.tuner import Tuner
from tests.data import data_of
from tests.lab.masters import PHP, running_server
from tests.waiting import free_port

DATA = data_of(__file__)

BEHIND_NGINX = DATA["behind_nginx"]
TO_PHP = "server {{ listen 127.0.0.1:{port}; location / {{ fastcgi_pass unix:{php}; }} }}\n"
TO_HTTP = "server {{ listen {listen}; location / {{ proxy_pass http://127.0.0.1:{to}; }} }}\n"


async def test_of_several_servers_behind_a_proxy_only_those_of_its_chain_are_changed(tmp_path: Path) -> None:
    shell, port, front = LocalShell("here"), free_port(), free_port()
    with (
        running_server("php") as own,
        running_server("php") as other,
        running_server("nginx", more=BEHIND_NGINX.format(root=tmp_path, php=own.root / "php.sock")) as third,
        running_server("nginx", more=TO_PHP.format(port=port, php=own.root / "php.sock")) as back,
        running_server("nginx", more=TO_HTTP.format(listen=front, to=port)) as master,
        running_server("haproxy", more=f"backend b\n    server n 127.0.0.1:{third.port}\n") as proxy,
    ):
        socket = own.root / "php.sock"
        found = await discover(shell, "here", proxy.port, answers=True)
        steps = [f"127.0.0.1:{third.port}", str(socket), "192.0.2.7:8080"]
        hops = [(hop.upstream.words, hop.is_here) for hop in found.chain]
        assert hops == list(zip(steps, (True, True, False), strict=True))
        assert found.chain[0].words == f"HAProxy :{proxy.port} -> nginx {steps[0]}"
        assert found.chain[1].front == found.chain[2].front == f"nginx {steps[0]}"
        draft = draft_of(f"http://127.0.0.1:{proxy.port}/", [HostSurvey(HostConfig(name="here"), found)])
        *proxies, backend = draft.hosts[0].processes
        assert proxies == ["haproxy", "nginx"] and fnmatchcase(PHP, backend)
        assert {str(proxy.file), str(third.file)} <= {knob.file for knob in draft.knobs}
        assert "192.0.2.7:8080, on another host" in profile_text(draft)

        found = await discover(shell, "here", front, answers=True)
        assert found.serving and found.serving.master and found.serving.master.pid == master.pid
        files = {
            one.knob.file: one.knob
            for one in found.suggested
            if one.knob.directive in ("keepalive_timeout", "pm.max_children")
        }
        usual = {one.knob.file for one in found.suggested if one.usual}
        chain = {str(each.file) for each in (master, back, own)}
        outside = {str(each.file) for each in (third, other)}
        assert chain <= usual and not outside & usual and files.keys() >= chain | outside

        config = draft_of(f"http://127.0.0.1:{front}/", [HostSurvey(HostConfig(name="here"), found)]).hosts[0]
        assert config.upstreams == (f"127.0.0.1:{port}", str(socket))
        probe = await Probe.start(shell, config, front)
        reading = await probe.read()
        probe.close()
        watched = {process.pid for process in reading.processes}
        assert watched >= {master.pid, back.pid, own.pid} | master.workers | back.workers
        assert not watched & ({third.pid, other.pid} | third.workers) and reading.excluded

        async def level(file: str, port: int | None = front) -> str:
            return (await diagnose_servers(shell, "here", port, [files[file]]))[0].level

        assert {file: await level(file) for file in sorted(chain)} == dict.fromkeys(sorted(chain), "ok")
        assert {file: await level(file) for file in sorted(outside)} == dict.fromkeys(sorted(outside), "error")
        # The target is on another host: each may serve it.
        assert await level(str(other.file), None) == "ok"
        tuner = Tuner(port_on=lambda host: front)
        with pytest.raises(ChangeRefused, match=f"is not read by the php-fpm behind port {front}: .*{own.file}"):
            await tuner.apply(shell, "here", [(files[str(other.file)], "2")])
        with pytest.raises(ChangeRefused, match=f"is not read by the nginx on port {front} or behind it: "):
            await tuner.apply(shell, "here", [(files[str(third.file)], "33")])
        file, workers = back.facts
        applied = await tuner.apply(shell, "here", [(files[str(back.file)], "33")])
        assert back.workers - workers, "a reload starts another worker"
        await tuner.undo(shell, applied)
        assert back.file.read_bytes() == file
        # An address that only the proxy knows: another server may be behind it.
        more = master.root / "conf.d" / "more.conf"
        unknown = f"server {{ listen {free_port()}; location / {{ proxy_pass http://$arg_to; }} }}\n"
        more.write_text(more.read_text() + unknown)
        assert await level(str(other.file)) == "note"
    await shell.close()
