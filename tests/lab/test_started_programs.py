"""uvicorn, Node.js and gunicorn, whose settings are in the systemd unit that starts them: found by the wizard from the
port alone, active after a change, and undone byte for byte."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest

from cockpit.hosts.shell import Shell
from cockpit.hosts.transport import open_shell
from cockpit.model.errors import ChangeRolledBack
from cockpit.model.hosts import HostConfig
from cockpit.model.knobs import Knob
from cockpit.setup.doctor_servers import diagnose_servers
from cockpit.tuning.change_options import Timeouts
from cockpit.tuning.server_discovery import DiscoveredHost, discover
from cockpit.tuning.tuner import Tuner
from tests.lab.containers import response_from
from tests.lab.systemd import Booted, booted

_APP = """
async def app(scope, receive, send):
    await send({'type': 'http.response.start', 'status': 200, 'headers': []})
    await send({'type': 'http.response.body', 'body': b'hello'})

def application(environ, start):
    start('200 OK', [])
    return [b'hello']
"""
# An EnvironmentFile.
_FILE = "/srv/web/{}.env"
_FILED = """
# Of the lab.
WEB_CONCURRENCY=1
UVICORN_BACKLOG="33"
UV_THREADPOOL_SIZE=6
"""
_NODE = "require('http').createServer((_, answer) => answer.end('hello')).listen(process.argv[2], '127.0.0.1')"
# The units, with the command that each runs: `{}` is the port.
UNITS = {
    "given.service": "/usr/bin/uvicorn app:app --port {} --workers 2 \\\n --backlog=100 --lifespan off",
    "plain.service": "/usr/bin/uvicorn app:app --port {} --lifespan off",
    "scripts.service": "/usr/bin/node app.js {}",
    "forking.service": "/usr/bin/gunicorn -w 2 -b 127.0.0.1:{} app:application",
    # With an EnvironmentFile.
    "filed-uvicorn.service": "/usr/bin/uvicorn app:app --port {} --lifespan off",
    "filed-node.service": "/usr/bin/node --max-old-space-size=100 app.js {}",
    "filed-gunicorn.service": "/usr/bin/gunicorn -b 127.0.0.1:{} app:application",
}
_PROCESSES = "systemctl show -P MainPID {0} | xargs pgrep -c -P"
_CHILDREN = "systemctl show -P MainPID {0} | xargs pgrep -P | wc -l"
_QUEUE = "ss -ltnH sport = :{1} | awk '{{ print $3 }}'"
_ENVIRONMENT = "tr '\\0' '\\n' </proc/$(systemctl show -P MainPID {0})/environ | grep UV_"


def _free_ports() -> dict[str, int]:
    found = {unit: socket.create_server(("127.0.0.1", 0)) for unit in UNITS}
    ports = {unit: one.getsockname()[1] for unit, one in found.items()}
    for one in found.values():
        one.close()
    return ports


class Programs:
    """A container with the units; `ports` are those of their servers."""

    def __init__(self, machine: Booted) -> None:
        self.machine = machine
        self.ports = _free_ports()
        self.found: DiscoveredHost | None = None
        files = [("/srv/web/app.py", _APP), ("/srv/web/app.js", _NODE)]
        # The number of workers is not in it.
        files.append(("/srv/web/gunicorn.conf.py", "timeout = 30"))
        for unit, command in UNITS.items():
            start = command.format(self.ports[unit])
            # uvicorn 0.17 with several workers does not end by SIGTERM.
            settings = "TimeoutStopSec=1\nWorkingDirectory=/srv/web\nEnvironment=A=1 WEB_CONCURRENCY=2"
            if unit.startswith("filed"):
                # Of two files that set a variable the last one counts.
                files += [("/srv/web/first.env", _FILED), (_FILE.format(unit), _FILED)]
                settings += f"\nEnvironmentFile=-/srv/web/first.e*\nEnvironmentFile={_FILE.format(unit)}"
            text = f"[Service]\n{settings}\nExecStart={start}\n"
            files.append((f"/etc/systemd/system/{unit}", text))
        for file, text in files:
            machine.run(f"cat >{file} <<'EOF'\n{text.strip()}\nEOF")
        machine.run(f"systemctl daemon-reload && systemctl start {' '.join(UNITS)}")

    def url(self, unit: str) -> str:
        return f"http://127.0.0.1:{self.ports[unit]}/"

    def files(self) -> str:
        return self.machine.run("cd /etc/systemd/system && find . | sort && cat *.service /srv/web/*.env")


@pytest.fixture(scope="module")
def programs(lab_allowed: None) -> Iterator[Programs]:
    with booted() as machine:
        yield Programs(machine)


@pytest.fixture
async def shell(programs: Programs) -> AsyncIterator[Shell]:
    shell = await open_shell(HostConfig(name="web1", via=f"podman:{programs.machine.name}"))
    yield shell
    await shell.close()


def _tuner(programs: Programs, unit: str, effect: float = 120.0) -> Tuner:
    """Return a tuner that waits `effect` seconds: on a busy machine Python takes many seconds to start in a quota."""

    async def probe() -> str:
        try:
            return "" if (await response_from(programs.url(unit))).text == "hello" else "another text"
        except httpx.HTTPError as error:
            return f"no response: {error!r}"

    return Tuner(probe, Timeouts(effect=effect))


async def _up(programs: Programs, unit: str) -> None:
    async with asyncio.timeout(300):
        while await _is_down(programs, unit):
            await asyncio.to_thread(programs.machine.run, f"systemctl is-active {unit}")


async def _knobs(programs: Programs, shell: Shell, unit: str) -> dict[str, Knob]:
    """The knobs of a unit's program, as the wizard finds them, by their settings' names."""
    await asyncio.gather(*(_up(programs, each) for each in UNITS))
    if programs.found is None:
        programs.found = await discover(shell, "web1", programs.ports["given.service"], answers=True)
    serving = programs.found.serving
    assert serving and serving.master and serving.master.unit == "given.service"
    offered = [one for one in programs.found.offered if one.server and one.server.master]
    own = [one.knob for one in offered if one.server and one.server.master and one.server.master.unit == unit]
    return {knob.name.removesuffix(f"-{programs.ports[unit]}"): knob for knob in own}


async def _is_down(programs: Programs, unit: str) -> bool:
    try:
        return (await response_from(programs.url(unit))).status_code != 200
    except httpx.HTTPError:
        return True


@pytest.mark.parametrize(
    ("unit", "name", "old", "new", "effect", "counted"),
    [
        ("given.service", "workers", "2", "3", _PROCESSES, "4"),  # and the tracker of its resources
        ("plain.service", "backlog", "2048", "55", _QUEUE, "55"),
        ("forking.service", "workers", "2", "4", _PROCESSES, "4"),
        ("scripts.service", "UV_THREADPOOL_SIZE", "4", "9", _ENVIRONMENT, "UV_THREADPOOL_SIZE=9"),
        ("filed-uvicorn.service", "backlog", "33", "44", _QUEUE, "44"),
        ("filed-node.service", "UV_THREADPOOL_SIZE", "6", "8", _ENVIRONMENT, "UV_THREADPOOL_SIZE=8"),
        ("filed-gunicorn.service", "workers", "1", "3", _CHILDREN, "3"),
    ],
)
async def test_a_change_is_active_and_undone_byte_for_byte(
    programs: Programs, shell: Shell, unit: str, name: str, old: str, new: str, effect: str, counted: str
) -> None:
    knob = (await _knobs(programs, shell, unit))[name]
    tuner, files = _tuner(programs, unit), programs.files()
    assert (await tuner.read(shell, knob), knob.effective_cost) == (old, "restart")
    assert (knob.file, knob.kind) == (_FILE.format(unit), "keyvalue") or not unit.startswith("filed")
    applied = await tuner.apply(shell, "web1", [(knob, new)])
    assert await tuner.read(shell, knob) == new
    assert programs.machine.run(effect.format(unit, programs.ports[unit])).strip() == counted
    await tuner.undo(shell, applied)
    assert (programs.files(), await tuner.read(shell, knob)) == (files, old)
    assert programs.machine.run("find /etc/systemd/system -name '*.d'") == ""


@pytest.mark.parametrize(
    ("unit", "values"),
    [
        (
            "plain.service",
            {
                "timeout_keep_alive": "7",
                "limit_concurrency": "90",
                "limit_max_requests": "9000",
                "loop": "asyncio",
                "http": "h11",
            },
        ),
        ("filed-node.service", {"max-old-space-size": "110"}),
    ],
)
async def test_the_other_settings_of_a_program_are_set_and_undone(
    programs: Programs, shell: Shell, unit: str, values: dict[str, str]
) -> None:
    knobs = await _knobs(programs, shell, unit)
    tuner, files = _tuner(programs, unit), programs.files()
    before = {name: await tuner.read(shell, knobs[name]) for name in values}
    applied = await tuner.apply(shell, "web1", [(knobs[name], value) for name, value in values.items()])
    assert {name: await tuner.read(shell, knobs[name]) for name in values} == values
    await tuner.undo(shell, applied)
    assert (programs.files(), {name: await tuner.read(shell, knobs[name]) for name in values}) == (files, before)


async def test_the_value_is_the_one_that_the_program_falls_back_to(programs: Programs, shell: Shell) -> None:
    knobs = await _knobs(programs, shell, "plain.service")
    assert await _tuner(programs, "plain.service").read(shell, knobs["workers"]) == "2"
    assert programs.machine.run(_PROCESSES.format("plain.service")).strip() == "3"


async def test_an_environment_file_that_wins_rolls_the_change_back(programs: Programs, shell: Shell) -> None:
    knobs = await _knobs(programs, shell, "plain.service")
    programs.machine.run("echo UVICORN_BACKLOG=33 >/srv/env && mkdir /run/systemd/system/plain.service.d")
    drop_in = "/run/systemd/system/plain.service.d/10-env.conf"
    programs.machine.run(f"printf '[Service]\\nEnvironmentFile=/srv/env\\n' >{drop_in}")
    programs.machine.run("systemctl daemon-reload && systemctl restart plain.service")
    await _up(programs, "plain.service")
    files = programs.files()
    try:
        with pytest.raises(ChangeRolledBack, match=r"it is still 33: the host ignored 44"):
            await _tuner(programs, "plain.service", 30.0).apply(shell, "web1", [(knobs["backlog"], "44")])
        assert programs.files() == files
    finally:
        programs.machine.run("rm -r /run/systemd/system/plain.service.d && systemctl daemon-reload")
        programs.machine.run("systemctl restart plain.service")


async def test_a_value_with_which_it_does_not_start_is_rolled_back(programs: Programs, shell: Shell) -> None:
    knobs = await _knobs(programs, shell, "plain.service")
    files = programs.files()
    with pytest.raises(ChangeRolledBack, match="rolled back"):
        await _tuner(programs, "plain.service", 10.0).apply(shell, "web1", [(knobs["loop"], "uvloop")])
    assert programs.files() == files
    await _up(programs, "plain.service")


async def test_doctor_compares_the_unit_with_that_of_the_answering_server(programs: Programs, shell: Shell) -> None:
    knobs = await _knobs(programs, shell, "given.service")
    knob = [knobs["workers"]]
    good = await diagnose_servers(shell, "web1", programs.ports["given.service"], knob)
    assert [one.level for one in good] == ["ok"]
    other = await diagnose_servers(shell, "web1", programs.ports["plain.service"], knob)
    assert [one.level for one in other] == ["error"]
    assert "given.service is not the unit of the server that answers on port" in other[0].text


async def test_doctor_examines_who_can_write_an_environment_file(programs: Programs, shell: Shell) -> None:
    unit = "filed-uvicorn.service"
    knob, port, file = (await _knobs(programs, shell, unit))["backlog"], programs.ports[unit], _FILE.format(unit)
    run, drop_in = programs.machine.run, f"/run/systemd/system/{unit}.d"

    async def findings() -> list[str]:
        return [f"{one.level} {one.text}" for one in await diagnose_servers(shell, "web1", port, [knob])]

    (read,) = await findings()
    assert read.startswith(f"ok {file} is read by uvicorn (PID ") and read.endswith(f"which answers on port {port}")
    why = "or its folder is writable by users other than root and root, the user of"
    try:
        for change, facts in (("chown nobody", "owner nobody, mode 644"), ("chmod 666", "owner root, mode 666")):
            run(f"chown root {file} && {change} {file}")
            assert (await findings())[1:] == [f"error {file} ({facts}) {why} {unit}"]
            run(f"chmod 644 {file}")
        # The owner is the user of the unit, who could start the program with other variables anyway.
        run(f"chown nobody {file} && mkdir {drop_in} && printf '[Service]\\nUser=nobody\\n' >{drop_in}/user.conf")
        run("systemctl daemon-reload")
        assert len(await findings()) == 1
        other = programs.ports["filed-node.service"]
        assert (await diagnose_servers(shell, "web1", other, [knob]))[0].level == "ok"
    finally:
        run(f"chown root {file} && chmod 644 {file} && rm -rf {drop_in} && systemctl daemon-reload")
