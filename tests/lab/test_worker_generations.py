"""A change is confirmed by new workers of its own server, not by those of a neighbour. On real servers."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest
from msgspec.structs import replace

from cockpit.hosts.local import LocalShell
from cockpit.model.errors import ChangeRolledBack
from cockpit.model.events import Stage
from cockpit.model.knobs import Knob
from cockpit.tuning.change_options import ChangeObserver, Timeouts
from cockpit.tuning.plan import Plan
from cockpit.tuning.tuner import Tuner
from tests.lab.test_two_masters import CHANGES, Master, running_server

RELOAD = {"nginx": signal.SIGHUP, "apache": signal.SIGUSR1, "haproxy": signal.SIGUSR2}
SECTIONS = {"nginx": "http {", "apache": None, "haproxy": "global"}


class Meanwhile(ChangeObserver):
    """Calls a function during the change, after the workers were recorded and before the reload."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call

    def begun(self, plan: Plan) -> None:
        pass

    def stage(self, stage: Stage, seconds: float | None = None) -> None:
        if stage == "written":
            self._call()


@pytest.fixture
def start(lab_allowed: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], Master]]:
    """Start a server by its kind and its name."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with ExitStack() as stack:
        yield lambda kind, name: stack.enter_context(running_server(kind, tmp_path / name))


@pytest.fixture
async def shell() -> AsyncIterator[LocalShell]:
    shell = LocalShell("here")
    yield shell
    await shell.close()


def knob(kind: str, master: Master, reload: str, **changed: str) -> Knob:
    name, _, _ = CHANGES[kind]
    processes = {"apache": "apache2"}.get(kind, kind)
    file, section = str(master.file), SECTIONS[kind]
    one = Knob(name=name, host="here", kind=kind, file=file, section=section, directive=name, workers=processes)
    return replace(one, reload=reload, **changed)


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def reload_now(kind: str, master: Master) -> None:
    # HAProxy removes its PID file for an instant.
    process, before = psutil.Process(master.pid), master.workers
    process.send_signal(RELOAD[kind])
    wait_until(lambda: bool({child.pid for child in process.children()} - before))


@pytest.mark.parametrize("kind", RELOAD)
async def test_reload_of_neighbour_does_not_confirm_change(
    kind: str, start: Callable[[str, str], Master], shell: LocalShell
) -> None:
    master, other = start(kind, "one"), start(kind, "other")
    before, workers = master.file.read_bytes(), master.workers
    # Its reload succeeds and has no effect.
    lost = knob(kind, master, "true")
    # Servers of other tests may reload meanwhile.
    others = rf"another server .PID (\d+, )*{other.pid}(, \d+)*. got new workers, not PID {master.pid}"
    with pytest.raises(ChangeRolledBack, match=others):
        await master.tuner(effect=2.0).apply(
            shell, "here", [(lost, CHANGES[kind][2])], Meanwhile(lambda: reload_now(kind, other))
        )
    assert (master.file.read_bytes(), master.workers) == (before, workers)


async def test_new_neighbour_is_not_successor_of_ended_server(
    start: Callable[[str, str], Master], shell: LocalShell
) -> None:
    master, _ = start("nginx", "one"), start("nginx", "other")
    before = master.file.read_bytes()

    def replaced_by_third() -> None:
        os.kill(master.pid, signal.SIGTERM)
        wait_until(lambda: not (master.root / "server.pid").exists())
        start("nginx", "third")

    # The target is on another host: no response shows that the server is gone.
    tuner = Tuner(None, Timeouts(effect=2.0), port_on=lambda host: None)
    with pytest.raises(
        ChangeRolledBack, match="the server exited, and no server with the same main configuration file"
    ):
        await tuner.apply(shell, "here", [(knob("nginx", master, "true"), "33")], Meanwhile(replaced_by_third))
    assert master.file.read_bytes() == before


@pytest.mark.parametrize("target", [True, False])
async def test_restart_is_confirmed_by_new_master(
    target: bool, start: Callable[[str, str], Master], shell: LocalShell
) -> None:
    master, other = start("nginx", "one"), start("nginx", "other")
    pid, workers = master.pid, master.workers
    root, file = shlex.quote(str(master.root)), shlex.quote(str(master.root / "server.pid"))
    stop = f'kill -QUIT "$(cat {file})"; while [ -e {file} ]; do sleep 0.02; done'
    restart = knob("nginx", master, f"{stop}; cd {root} && nginx -p . -c server.conf", cost="restart")
    tuner = master.tuner() if target else Tuner(None, port_on=lambda host: None)
    done = await tuner.apply(shell, "here", [(restart, "33")], Meanwhile(lambda: reload_now("nginx", other)))
    assert [note for note in done.notes if not note.startswith("the running server ")] == []
    assert master.pid != pid and master.workers.isdisjoint(workers)
    await tuner.undo(shell, done)
    assert "keepalive_timeout 65;" in master.file.read_text()


async def test_result_states_that_it_rests_on_name(
    lab_allowed: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: LocalShell
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    # A name of its own, beside servers of other tests.
    program = shutil.copy(shutil.which("nginx", path="/usr/sbin:/usr/bin") or "", tmp_path / "nginx-by-name")
    with ExitStack() as stack:
        master, other = (
            stack.enter_context(running_server("nginx", tmp_path / name, program=str(program)))
            for name in ("one", "other")
        )
        both = knob("nginx", master, f"kill -HUP {master.pid} {other.pid}", workers="nginx-by-name")
        # Without the target's port nothing is examined.
        done = await Tuner(master.probe).apply(shell, "here", [(both, "33")])
    words = "2 servers have processes named nginx-by-name; new workers were recognized by this name alone"
    assert done.notes == (f"{words}, so the changed server is not certain",)
