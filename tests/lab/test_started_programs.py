"""uvicorn, Node.js and gunicorn, whose settings are in the systemd unit that starts them: found by the wizard from the
port alone, active after a change, and undone byte for byte."""

from collections.abc import AsyncIterator

import httpx
import pytest
import pytest_asyncio

from cockpit.hosts.transport import open_shell
from cockpit.model.errors import ChangeRolledBack
from cockpit.model.host.samples import HostConfig
from cockpit.model.knobs import Knob
from cockpit.setup.doctor_servers import diagnose_servers
from cockpit.tuning.discovery.servers import discover
from cockpit.tuning.pending import Timeouts
from cockpit.tuning.tuner import Tuner
from tests.data import data_of
from tests.lab.containers import response_from
from tests.lab.systemd import Booted, booted
from tests.waiting import free_port, until

DATA = data_of(__file__)

pytestmark = pytest.mark.asyncio(loop_scope="module")

_APP = DATA["app"]
# An EnvironmentFile.
_FILE = "/srv/web/{}.env"
_FILED = """
# A comment.
WEB_CONCURRENCY=1
UVICORN_BACKLOG="33"
UV_THREADPOOL_SIZE=6
"""
_NODE = "require('http').createServer((_, answer) => answer.end('hello')).listen(process.argv[2], '127.0.0.1')"
# The units, with the command that each runs: `{}` is the port.
UNITS = DATA["units"]
_PROCESSES = "systemctl show -P MainPID {0} | xargs pgrep -c -P"
_CHILDREN = "systemctl show -P MainPID {0} | xargs pgrep -P | wc -l"
_QUEUE = "ss -ltnH sport = :{1} | awk '{{ print $3 }}'"
_ENVIRONMENT = "tr '\\0' '\\n' </proc/$(systemctl show -P MainPID {0})/environ | sed -n 's/^UV_THREADPOOL_SIZE=//p'"


class Programs:
    """A container with the units; `ports` are those of their servers."""

    def __init__(self, machine: Booted) -> None:
        self.machine = machine
        self.ports = {unit: free_port() for unit in UNITS}
        # The number of workers is not in the configuration of gunicorn.
        files = {"/srv/web/app.py": _APP, "/srv/web/app.js": _NODE, "/srv/web/gunicorn.conf.py": "timeout = 30"}
        files["/srv/web/first.env"] = _FILED
        for unit, command in UNITS.items():
            # uvicorn 0.17 with several workers does not end by SIGTERM.
            settings = "TimeoutStopSec=1\nWorkingDirectory=/srv/web\nEnvironment=A=1 WEB_CONCURRENCY=2"
            if unit.startswith("filed"):
                # Of two files that set a variable the last one counts.
                files[_FILE.format(unit)] = _FILED
                settings += f"\nEnvironmentFile=-/srv/web/first.e*\nEnvironmentFile={_FILE.format(unit)}"
            start = command.format(self.ports[unit])
            files[f"/etc/systemd/system/{unit}"] = f"[Service]\n{settings}\nExecStart={start}\n"
        machine.run("".join(f"cat >{file} <<'EOF'\n{text.strip()}\nEOF\n" for file, text in files.items()))
        machine.run(f"systemctl daemon-reload && systemctl start {' '.join(UNITS)}")

    async def discover(self) -> None:
        """Connect, and find all programs as the wizard does from the port of one."""
        self.shell = await open_shell(HostConfig(name="web1", via=self.machine.via))
        for unit in UNITS:
            await self.up(unit)
        self.found = await discover(self.shell, "web1", self.ports["given.service"], answers=True)

    def knobs(self, unit: str) -> dict[str, Knob]:
        """Return the knobs of a unit's program by their settings' names."""
        offered = [one for one in self.found.suggested if one.server and one.server.master]
        own = [one.knob for one in offered if one.server and one.server.master and one.server.master.unit == unit]
        return {knob.name.removesuffix(f"-{self.ports[unit]}"): knob for knob in own}

    def files(self) -> str:
        return self.machine.run("cd /etc/systemd/system && find . | sort && cat *.service /srv/web/*.env")

    async def response(self, unit: str) -> str:
        """Return "" if the program answers, otherwise what is wrong."""
        try:
            text = (await response_from(f"http://127.0.0.1:{self.ports[unit]}/")).text
        except httpx.HTTPError as error:
            return f"no response: {error!r}"
        return "" if text == "hello" else "another text"

    async def up(self, unit: str) -> None:
        async def answers() -> bool:
            return not await self.response(unit)

        await until(answers, 300.0)

    def tuner(self, unit: str, effect: float = 120.0) -> Tuner:
        """Return a tuner that waits `effect` seconds: on a busy machine Python takes many seconds to start."""
        return Tuner(lambda: self.response(unit), Timeouts(effect=effect))

    async def levels(self, unit: str, knob: Knob) -> list[str]:
        """Return the doctor's findings about a knob for the port of a unit."""
        found = await diagnose_servers(self.shell, "web1", self.ports[unit], [knob])
        return [f"{one.level} {one.text}" for one in found]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def programs() -> AsyncIterator[Programs]:
    with booted() as machine:
        programs = Programs(machine)
        await programs.discover()
        yield programs
        await programs.shell.close()


OTHER = {"timeout_keep_alive": "7", "limit_concurrency": "90", "limit_max_requests": "9000", "loop": "asyncio"}


@pytest.mark.parametrize(
    ("unit", "name", "old", "values", "effect", "counted"),
    [
        ("given.service", "workers", "2", {"workers": "3"}, _PROCESSES, "4"),  # and the tracker of its resources
        ("plain.service", "backlog", "2048", {"backlog": "55", "http": "h11", **OTHER}, _QUEUE, "55"),
        ("forking.service", "workers", "2", {"workers": "4"}, _PROCESSES, "4"),
        ("scripts.service", "UV_THREADPOOL_SIZE", "4", {"UV_THREADPOOL_SIZE": "9"}, _ENVIRONMENT, "9"),
        ("filed-uvicorn.service", "backlog", "33", {"backlog": "44"}, _QUEUE, "44"),
        (
            "filed-node.service",
            "UV_THREADPOOL_SIZE",
            "6",
            {"UV_THREADPOOL_SIZE": "8", "max-old-space-size": "110"},
            _ENVIRONMENT,
            "8",
        ),
        ("filed-gunicorn.service", "workers", "1", {"workers": "3"}, _CHILDREN, "3"),
    ],
)
async def test_a_change_is_active_and_undone_byte_for_byte(
    programs: Programs, unit: str, name: str, old: str, values: dict[str, str], effect: str, counted: str
) -> None:
    serving = programs.found.serving
    assert serving and serving.master and serving.master.unit == "given.service"
    knobs, tuner, files, shell = programs.knobs(unit), programs.tuner(unit), programs.files(), programs.shell
    before = {each: await tuner.read(shell, knobs[each]) for each in values}
    assert (before[name], knobs[name].effective_cost) == (old, "restart")
    assert (knobs[name].file, knobs[name].kind) == (_FILE.format(unit), "keyvalue") or not unit.startswith("filed")
    applied = await tuner.apply(shell, "web1", [(knobs[each], value) for each, value in values.items()])
    assert {each: await tuner.read(shell, knobs[each]) for each in values} == values
    # A worker may start later than the first that answers.
    await until(lambda: programs.machine.run(effect.format(unit, programs.ports[unit])).strip() == counted)
    await tuner.undo(shell, applied)
    assert (programs.files(), {each: await tuner.read(shell, knobs[each]) for each in values}) == (files, before)
    assert programs.machine.run("find /etc/systemd/system -name '*.d'") == ""


async def test_a_value_that_does_not_become_active_is_rolled_back(programs: Programs) -> None:
    unit, knobs, files, run = "plain.service", programs.knobs("plain.service"), programs.files(), programs.machine.run
    # The program falls back to a variable.
    assert await programs.tuner(unit).read(programs.shell, knobs["workers"]) == "2"
    assert run(_PROCESSES.format(unit)).strip() == "3"
    drop_in = f"/run/systemd/system/{unit}.d"
    run(f"echo UVICORN_BACKLOG=33 >/srv/env && mkdir {drop_in}")
    run(f"printf '[Service]\\nEnvironmentFile=/srv/env\\n' >{drop_in}/10-env.conf")
    run(f"systemctl daemon-reload && systemctl restart {unit}")
    await programs.up(unit)
    try:
        with pytest.raises(ChangeRolledBack, match=r"it is still 33: the host ignored 44"):
            await programs.tuner(unit, 60.0).apply(programs.shell, "web1", [(knobs["backlog"], "44")])
        assert programs.files() == files
    finally:
        run(f"rm -r {drop_in} && systemctl daemon-reload && systemctl restart {unit}")
    await programs.up(unit)


async def test_doctor_examines_the_unit_and_who_can_write_its_environment_file(programs: Programs) -> None:
    workers = programs.knobs("given.service")["workers"]
    assert [one.partition(" ")[0] for one in await programs.levels("given.service", workers)] == ["ok"]
    (other,) = await programs.levels("plain.service", workers)
    assert other.startswith("error ")
    assert "given.service is not the unit of the server that answers on port" in other

    unit = "filed-uvicorn.service"
    knob, file, run = programs.knobs(unit)["backlog"], _FILE.format(unit), programs.machine.run
    (read,) = await programs.levels(unit, knob)
    assert read.startswith(f"ok {file} is read by uvicorn (PID ")
    assert read.endswith(f"which answers on port {programs.ports[unit]}")
    why, drop_in = (
        "writable by users other than root and root, the user of",
        f"/run/systemd/system/{unit}.d",
    )
    try:
        for change, facts in (("chown nobody", "owner nobody, mode 644"), ("chmod 666", "owner root, mode 666")):
            run(f"chown root {file} && {change} {file}")
            assert (await programs.levels(unit, knob))[1:] == [f"error {file} ({facts}) or its folder is {why} {unit}"]
            run(f"chmod 644 {file}")
        # The owner is the user of the unit, who could start the program with other variables anyway.
        run(f"chown nobody {file} && mkdir {drop_in} && printf '[Service]\\nUser=nobody\\n' >{drop_in}/user.conf")
        run("systemctl daemon-reload")
        assert len(await programs.levels(unit, knob)) == 1
        assert (await programs.levels("filed-node.service", knob))[0].startswith("ok ")
    finally:
        run(f"chown root {file} && chmod 644 {file} && rm -rf {drop_in} && systemctl daemon-reload")
