"""Two servers of one kind: only the target's server is found, watched, changed and reloaded. On real servers."""

import re
import shlex
import signal
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest
import pytest_asyncio
from msgspec.structs import replace

from cockpit.hosts.local import LocalShell
from cockpit.hosts.probe.probe import Probe
from cockpit.model.errors import ChangeRefused, ChangeRolledBack
from cockpit.model.events import StageName
from cockpit.model.host.samples import HostConfig
from cockpit.model.knobs import Knob
from cockpit.setup.profile_draft import HostSurvey
from cockpit.tuning.change_options import ChangeObserver
from cockpit.tuning.discovery.host_inventory import untrusted
from cockpit.tuning.pending import Timeouts
from cockpit.tuning.plan import Plan
from cockpit.tuning.server_check import read_by
from cockpit.tuning.tuner import Tuner
from tests.lab.masters import KINDS, Master, running_server
from tests.waiting import wait_until

NOBODY = 65534
# Knob, old value, new value, its section, and the signal of a reload.
CHANGES = {
    "nginx": ("keepalive_timeout", "65", "33", "http {", signal.SIGHUP),
    "apache": ("KeepAliveTimeout", "5", "7", None, signal.SIGUSR1),
    "haproxy": ("maxconn", "50", "60", "global", signal.SIGUSR2),
}
pytestmark = pytest.mark.asyncio(loop_scope="module")


class Pair:
    """Two servers of a kind."""

    def __init__(self, kind: str, masters: list[Master]) -> None:
        self.kind = kind
        self.masters = masters
        self.name, self.old, self.new, self.section, self.signal = CHANGES[kind]
        self.processes = KINDS[kind].process
        self._found: dict[Path, Knob] = {}

    async def found(self, shell: LocalShell, master: Master) -> Knob:
        """Return the discovered knob of one of the servers, whose files all tests leave as they were."""
        if master.root not in self._found:
            self._found[master.root] = (await master.knobs(shell))[self.name]
        return self._found[master.root]

    def knob(self, master: Master, reload: str, cost: str | None = None) -> Knob:
        """Return a knob of a profile, with the host's processes as its workers."""
        file, names = str(master.file), {"name": self.name, "directive": self.name, "section": self.section}
        one = Knob(host="here", kind=self.kind, file=file, workers=self.processes, **names)  # type: ignore[arg-type]
        return replace(one, reload=reload, cost=cost)

    def reload(self, master: Master) -> None:
        # HAProxy removes its PID file for an instant.
        process, before = psutil.Process(master.pid), master.workers
        process.send_signal(self.signal)
        wait_until(lambda: {child.pid for child in process.children()} - before)


class Meanwhile(ChangeObserver):
    """Calls a function during the change, after the workers were recorded and before the reload."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call

    def begun(self, plan: Plan) -> None:
        pass

    def stage(self, stage: StageName, seconds: float | None = None) -> None:
        if stage == "written":
            self._call()


@pytest.fixture(scope="module", params=CHANGES)
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    """Both servers for all tests, which leave their files as they were."""
    with running_server(request.param) as one, running_server(request.param) as other:
        yield Pair(request.param, [one, other])


@pytest.fixture
def start() -> Iterator[Callable[[], Master]]:
    """Start an nginx."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(running_server("nginx"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shell() -> AsyncIterator[LocalShell]:
    shell = LocalShell("here")
    yield shell
    await shell.close()


async def test_only_the_targets_server_is_watched_and_changed(pair: Pair, shell: LocalShell) -> None:
    config = HostConfig(name="here", processes=(pair.processes,))
    for master, other in (pair.masters, pair.masters[::-1]):
        probe = await Probe.start(shell, config, master.port)
        reading = await probe.read()
        probe.close()
        assert {process.pid for process in reading.processes} == {master.pid} | master.workers
        assert reading.excluded is not None and reading.excluded >= len({other.pid} | other.workers)
    probe = await Probe.start(shell, config)
    reading = await probe.read()
    probe.close()
    assert {each.pid for each in pair.masters} <= {process.pid for process in reading.processes}, "of another host"

    file, before, untouched = master.file.read_bytes(), master.workers, other.facts
    knob = replace(await pair.found(shell, master), workers=pair.processes)
    done = await master.tuner().apply(shell, "here", [(knob, pair.new)])
    assert [(setting.old, setting.new) for setting in done.settings] == [(pair.old, pair.new)]
    assert not [note for note in done.notes if "old worker" in note], "the other server's workers are not awaited"
    assert master.workers.isdisjoint(before), "the workers were replaced"
    assert other.facts == untouched
    (finding,) = await master.findings(shell, knob)
    assert finding.level == "ok" and f"answers on port {master.port}" in finding.text
    assert f"PID {master.pid}" in finding.text
    await master.tuner().undo(shell, done)
    assert master.file.read_bytes() == file and other.facts == untouched


async def test_the_other_servers_knob_has_a_name_of_its_own_and_is_refused(pair: Pair, shell: LocalShell) -> None:
    master, other = pair.masters
    found = await master.discovered(shell)
    named = {each.knob.name: each.knob for each in found.suggested}
    foreign = named[f"{pair.name}-{other.port}"]
    assert len(named) == len(found.suggested)
    assert (named[pair.name].file, foreign.file) == (str(master.file), str(other.file))
    before = master.facts, other.facts
    refusal = rf"is not read by the {pair.kind} on port {master.port}: .*{master.file}"
    with pytest.raises(ChangeRefused, match=refusal):
        await master.tuner().apply(shell, "here", [(foreign, pair.new)])
    (finding,) = await master.findings(shell, foreign)
    assert finding.level == "error" and str(master.file) in finding.text
    assert (master.facts, other.facts) == before
    # Without the target's port either may be meant.
    applied = await Tuner().apply(shell, "here", [(foreign, pair.new)])
    settings = [(setting.knob, setting.old, setting.new) for setting in applied.settings]
    assert settings == [(foreign.name, pair.old, pair.new)]
    await Tuner().undo(shell, applied)
    assert master.facts == before[0] and other.file.read_bytes() == before[1][0]


async def test_doctor_reports_file_edited_after_reload(pair: Pair, shell: LocalShell) -> None:
    master, _ = pair.masters
    knob = await pair.found(shell, master)
    master.set_age(3600)
    assert [finding.level for finding in await master.findings(shell, knob)] == ["ok"]
    master.set_age(-3600)
    _, stale = await master.findings(shell, knob)
    assert stale.level == "note" and f"{master.file} was edited after the last reload" in stale.text


async def test_reload_of_neighbour_does_not_confirm_change(pair: Pair, shell: LocalShell) -> None:
    master, other = pair.masters
    before = master.facts
    # Its reload succeeds and has no effect.
    lost = pair.knob(master, "true")
    # Servers of other tests may reload meanwhile.
    others = rf"another server .PID (\d+, )*{other.pid}(, \d+)*. got new workers, not PID {master.pid}"
    reloads = Meanwhile(lambda: pair.reload(other))
    with pytest.raises(ChangeRolledBack, match=others):
        await master.tuner(effect=5.0).apply(shell, "here", [(lost, pair.new)], reloads)
    assert master.facts == before


async def test_included_file_and_error_log_belong_to_their_server(pair: Pair, shell: LocalShell) -> None:
    if pair.kind == "haproxy":
        # It has neither.
        assert not KINDS["haproxy"].config.count("include")
        return
    master, other = pair.masters
    for each in (master, other):
        log = each.root / "error.log"
        found = await each.discovered(shell)
        assert {one.knob.log for one in found.suggested if one.server is found.serving} == {str(log)}
        assert found.serving is not None and found.serving.tail == (f"tail -n 3 -F {log}",)
    log.rename(log.with_suffix(".old"))
    found = await other.discovered(shell)
    assert found.serving is not None and found.serving.tail == (), "the log does not exist"
    log.with_suffix(".old").rename(log)

    ending, text = ";" if pair.kind == "nginx" else "", master.file.read_text()
    # nginx allows a directive only once per block.
    if pair.kind == "nginx":
        master.file.write_text(text.replace(f"    {pair.name} {pair.old};\n", ""))
    included = master.root / "conf.d" / "more.conf"
    included.write_text(f"{pair.name} 9{ending}\n")
    untouched = other.facts
    found = await master.discovered(shell)
    (offer,) = [each for each in found.suggested if each.knob.name == pair.name]
    assert (offer.knob.file, offer.value) == (str(included), "9")
    await master.tuner().apply(shell, "here", [(offer.knob, pair.new)])
    assert included.read_text() == f"{pair.name} {pair.new}{ending}\n"
    assert other.facts == untouched
    (own,) = await read_by(shell, "here", master.port, [offer.knob])
    assert own.instance is not None and own.instance.process.pid == master.pid and not own.wrong
    (foreign,) = await read_by(shell, "here", other.port, [offer.knob])
    assert foreign.wrong
    master.file.write_text(text)
    included.write_text("")


async def test_the_loaded_mpm_decides_which_section_is_offered_and_changed(shell: LocalShell) -> None:
    with running_server("apache") as master:
        setting = "MaxRequestWorkers 2\n"
        sections = (f"<IfModule {name}>\n{setting}</IfModule>\n" for name in ("mpm_event_module", "prefork.c"))
        master.file.write_text(master.file.read_text().replace(setting, "".join(sections)))
        knob = (await master.knobs(shell))["MaxRequestWorkers"]
        assert knob.section == "IfModule mpm_event_module"
        other = replace(knob, name="other", section="IfModule prefork.c")
        with pytest.raises(ChangeRefused, match=r"line 17: <IfModule prefork.c> is false in .*apache \(PID"):
            await master.tuner().apply(shell, "here", [(other, "4")])
        assert [one.wrong for one in await read_by(shell, "here", master.port, [knob])] == [""]
        assert list(await master.tuner().inactive(shell, "here", [knob, other])) == ["other"]
        # Without the section of the loaded MPM, nothing is offered that has no effect.
        master.file.write_text(master.file.read_text().replace("mpm_event_module>", "!event.c>", 1))
        assert "MaxRequestWorkers" not in await master.knobs(shell)
        words = HostSurvey(HostConfig(name="here"), await master.discovered(shell)).words
        assert re.search(r"left out: MaxRequestWorkers \(/\S+: line \d+: .*\)", words), words


async def test_configuration_writable_by_other_user_is_not_offered(shell: LocalShell) -> None:
    assert await untrusted(shell, ["/usr/sbin/haproxy", "/etc/passwd"]) == []
    with running_server("haproxy", user=NOBODY) as master:
        found = await master.discovered(shell)
    assert found.serving is not None and found.serving.startup is not None
    assert found.serving.candidates == ()
    assert "another user can replace" in found.serving.startup.uncertainty


async def test_reload_of_other_server_is_refused(start: Callable[[], Master], shell: LocalShell) -> None:
    master, other = start(), start()
    own, foreign = [(await each.knobs(shell))["keepalive_timeout"] for each in (master, other)]
    before = master.facts, other.facts
    with pytest.raises(ChangeRefused, match="reloads nginx"):
        await master.tuner().apply(shell, "here", [(replace(own, reload=foreign.reload), "33")])
    file = f'kill -HUP "$(cat {other.root}/server.pid)"'
    for reload in (f"kill -HUP {other.pid}", file, "pkill -HUP nginx", "killall -HUP nginx"):
        knob = replace(own, reload=reload)
        with pytest.raises(ChangeRefused, match=rf"signals nginx .*PID {other.pid}\b.*set reload = 'nginx -s reload"):
            await master.tuner().apply(shell, "here", [(knob, "33")])
    (finding,) = await master.findings(shell, knob)
    assert finding.level == "error" and f"PID {other.pid}" in finding.text
    assert (master.facts, other.facts) == before
    knob = replace(own, reload=f"kill -HUP $(cat {master.root}/server.pid)")
    await master.tuner().apply(shell, "here", [(knob, "33")])


@pytest.mark.parametrize("workers", ["nginx", ""], ids=["by workers", "by log"])
async def test_dropped_reload_is_rolled_back_with_its_reason(
    start: Callable[[], Master], shell: LocalShell, workers: str
) -> None:
    master = start()
    knob, before = (await master.knobs(shell))["keepalive_timeout"], master.file.read_bytes()
    knob = replace(knob, name="listen", directive="listen", section="http { server {", workers=workers)
    # Without the target's port only the log shows it. nginx tries to bind for 2.5 s before it gives up.
    tuner = master.tuner(effect=20.0) if workers else Tuner(master.probe, Timeouts(effect=20.0))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        occupied = f"127.0.0.1:{listener.getsockname()[1]}"
        reason = rf"{master.root}/error.log reports: bind\(\) to {occupied} failed \(98: Address already in use\)"
        with pytest.raises(ChangeRolledBack, match=rf"{reason}.*rolled back"):
            await tuner.apply(shell, "here", [(knob, occupied)])
    assert master.file.read_bytes() == before and await master.probe() == ""


async def test_restart_is_confirmed_by_new_master(start: Callable[[], Master], shell: LocalShell) -> None:
    master, other, nginx = start(), start(), Pair("nginx", [])
    pid, workers = master.pid, master.workers
    root, file = shlex.quote(str(master.root)), shlex.quote(str(master.root / "server.pid"))
    stop = f'kill -QUIT "$(cat {file})"; while [ -e {file} ]; do sleep 0.02; done'
    restart = nginx.knob(master, f"{stop}; cd {root} && nginx -p . -c server.conf", cost="restart")
    done = await master.tuner().apply(shell, "here", [(restart, "33")], Meanwhile(lambda: nginx.reload(other)))
    assert [note for note in done.notes if not note.startswith("written and reloaded; ")] == []
    assert master.pid != pid and master.workers.isdisjoint(workers)
    await master.tuner().undo(shell, done)
    assert "keepalive_timeout 65;" in master.file.read_text()
