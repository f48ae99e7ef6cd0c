"""Servers with the same process name: only the one on the target's port is watched."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from cockpit.hosts.probe.probe import Probe
from cockpit.hosts.probe.script import QUEUE_ROUND
from cockpit.hosts.probe.server_filter import ServerFilter
from cockpit.model.host.samples import HostReading, ProcessCounters
from tests.data import data_of
from tests.hosts.conftest import prepend_to_path, running, tag
from tests.model.hosts import process
from tests.waiting import free_port

DATA = data_of(__file__)
TAG = tag("s")

NAME = f"{TAG}-same"
# Listens on a port or a Unix socket, forks a worker that shares it, prints both PIDs, exits at the end of its input.
SERVER = DATA["server"]


@contextmanager
def serving(port: int | Path = 0) -> Iterator[set[int]]:
    command = [sys.executable, "-c", SERVER, NAME, str(port)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin and server.stdout
        yield set(json.loads(server.stdout.readline()))
        server.stdin.close()


async def read(probe: Probe, times: int) -> tuple[set[int], HostReading]:
    readings = [await probe.read() for _ in range(times)]
    return {row.pid for row in readings[-1].processes}, readings[-1]


async def test_only_server_on_target_port_is_watched(host_shell: str) -> None:
    """Also after its restart; other servers stay excluded."""
    port = free_port()
    with serving() as other_pids:
        async with running(NAME, port=port) as probe:
            with serving(port) as target_pids:
                watched, reading = await read(probe, 1)
                if host_shell == "no awk":
                    assert (watched, reading.excluded) == (target_pids | other_pids, None), "listeners are not read"
                    return
                assert (watched, reading.excluded) == (target_pids, 2)
            assert (await read(probe, 1))[0] == set()
            with serving(port) as restarted:
                watched, reading = await read(probe, QUEUE_ROUND)
                assert (watched, reading.excluded) == (restarted, 2)
                with serving() as third:
                    watched, reading = await read(probe, 1)
                    assert (watched, reading.excluded) == (restarted, len(other_pids | third))


@pytest.mark.parametrize("is_socket", [False, True])
async def test_servers_behind_the_target_are_watched(is_socket: bool, tmp_path: Path) -> None:
    port, second = free_port(), free_port()
    at = tmp_path / "own.sock" if is_socket else second
    address = str(at) if is_socket else f"127.0.0.1:{at}"
    with serving(port) as proxy, serving(at) as own, serving() as other:
        async with running(NAME, port=port, upstreams=(address,)) as probe:
            watched, reading = await read(probe, 1)
        assert (watched, reading.excluded) == (proxy | own, len(other))
        # The target is on another host.
        async with running(NAME, upstreams=(address,)) as probe:
            watched, reading = await read(probe, 1)
        assert (watched, reading.excluded) == (own, len(proxy | other))


async def test_port_without_watched_listener_is_reported() -> None:
    with serving() as first:
        async with running(NAME, port=free_port()) as probe:
            watched, reading = await read(probe, 1)
            assert (watched, reading.excluded) == (first, 0), "no other server has that name"
            with serving() as other:
                watched, reading = await read(probe, 1)
                assert (watched, reading.excluded) == (first | other, None)
        async with running(NAME) as probe:
            assert (await read(probe, 1))[1].excluded == 0, "the target is on another host"


@pytest.mark.lab
async def test_unreadable_listeners_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = "#!/bin/sh\nexec setpriv --reuid 65534 --regid 65534 --clear-groups /bin/sh -s\n"
    prepend_to_path(tmp_path / "bin", monkeypatch, sh=nobody)
    port = free_port()
    with serving(port) as first, serving() as other:
        async with running(NAME, port=port) as probe:
            watched, reading = await read(probe, 1)
            assert (watched, reading.excluded) == (first | other, None)


def tree(root: int, *workers: int, comm: str = "nginx") -> list[ProcessCounters]:
    return [replace(process(root), ppid=1, comm=comm), *(replace(process(w), ppid=root, comm=comm) for w in workers)]


def pids(known: list[ProcessCounters]) -> list[int]:
    return [row.pid for row in known]


def test_other_servers_stay_excluded_during_restart() -> None:
    same_named = ServerFilter()
    other = tree(20, 21)
    assert pids(same_named.select(tree(10, 11) + other, [11])) == [10, 11]
    assert (pids(same_named.select(other, [11])), same_named.excluded) == ([], 2)
    assert pids(same_named.select(other + tree(30), [11])) == [30], "the new process counts before its port is known"
    assert (pids(same_named.select(other + tree(30, 31), [31])), same_named.excluded) == ([30, 31], 2)


def test_servers_with_other_names_are_watched() -> None:
    same_named = ServerFilter()
    assert pids(same_named.select(tree(10) + tree(20) + tree(40, 41, comm="php-fpm8.2"), [10])) == [10, 40, 41]
    assert same_named.excluded == 1


def test_all_backends_count_until_their_port_is_known() -> None:
    same_named = ServerFilter()
    proxy, backend, stranger = tree(10, 11), tree(20, comm="java"), tree(30, comm="java")
    assert pids(same_named.select(proxy + backend, [10])) == [10, 11, 20]
    assert same_named.excluded == 0, "no other server has that name"
    assert pids(same_named.select(proxy + backend + stranger, [10])) == [10, 11, 20, 30]
    assert same_named.excluded is None
    assert pids(same_named.select(proxy + backend + stranger, [10, 20])) == [10, 11, 20]
    assert same_named.excluded == 1


def test_port_handover_and_cyclic_parents() -> None:
    same_named = ServerFilter()
    same_named.select(tree(10), [10])
    assert pids(same_named.select(tree(10) + tree(30), [30])) == [10, 30], "the old server counts until it exits"
    cycle = [replace(process(1), ppid=2), replace(process(2), ppid=1)]
    assert len(ServerFilter().select(cycle, [1])) == 2
