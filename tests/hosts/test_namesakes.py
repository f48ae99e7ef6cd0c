"""Of two servers of one name, only the processes of the one on the target's port are watched."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from cockpit.hosts.namesakes import Namesakes
from cockpit.hosts.probe import Probe
from cockpit.hosts.script import QUEUE_ROUND
from cockpit.model.hosts import HostReading, ProcessCounters
from tests.hosts.conftest import TAG, put_first, running
from tests.model.test_fold_hosts import process

NAME = f"{TAG}-same"
# Listens on a port, forks a worker that shares the socket, prints both pids, and ends with its input.
SERVER = """
import json, os, signal, socket, sys
open("/proc/self/comm", "w").write(sys.argv[1])
listening = socket.create_server(("127.0.0.1", int(sys.argv[2])))
worker = os.fork()
if not worker:
    signal.pause()
print(json.dumps([os.getpid(), worker]), flush=True)
sys.stdin.read()
os.kill(worker, signal.SIGKILL)
os.waitpid(worker, 0)
"""


@contextmanager
def serving(port: int) -> Iterator[set[int]]:
    command = [sys.executable, "-c", SERVER, NAME, str(port)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin and server.stdout
        yield set(json.loads(server.stdout.readline()))
        server.stdin.close()


def free_ports() -> tuple[int, int]:
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        return one.getsockname()[1], other.getsockname()[1]


async def read(probe: Probe, times: int) -> tuple[set[int], HostReading]:
    readings = [await probe.read() for _ in range(times)]
    return {one.pid for one in readings[-1].processes}, readings[-1]


async def test_only_the_server_on_the_port_is_watched_also_after_its_restart(host_shell: str) -> None:
    port, elsewhere = free_ports()
    with serving(elsewhere) as others:
        async with running(NAME, port=port) as probe:
            with serving(port) as own:
                watched, reading = await read(probe, 1)
                if host_shell == "no awk":
                    assert (watched, reading.left_out) == (own | others, None), "who listens is not read without awk"
                    return
                assert (watched, reading.left_out) == (own, 2)
            assert (await read(probe, 1))[0] == set()
            with serving(port) as again:
                watched, reading = await read(probe, QUEUE_ROUND)
                assert (watched, reading.left_out) == (again, 2)
                with serving(free_ports()[0]) as third:
                    watched, reading = await read(probe, 1)
                    assert (watched, reading.left_out) == (again, len(others | third))


async def test_a_port_on_which_no_watched_process_listens_says_so() -> None:
    port, elsewhere = free_ports()
    with serving(elsewhere) as one:
        async with running(NAME, port=port) as probe:
            watched, reading = await read(probe, 1)
            assert (watched, reading.left_out) == (one, 0), "it is the only one of that name"
        with serving(free_ports()[0]) as other:
            async with running(NAME, port=port) as probe:
                watched, reading = await read(probe, 1)
            assert (watched, reading.left_out) == (one | other, None)
            async with running(NAME) as probe:
                assert (await read(probe, 1))[1].left_out == 0, "the target is on another host"


async def test_a_user_who_may_not_read_who_listens_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("needs root and setpriv, to be another user")
    nobody = "#!/bin/sh\nexec setpriv --reuid 65534 --regid 65534 --clear-groups /bin/sh -s\n"
    put_first(tmp_path / "bin", monkeypatch, sh=nobody)
    port, elsewhere = free_ports()
    with serving(port) as one, serving(elsewhere) as other:
        async with running(NAME, port=port) as probe:
            watched, reading = await read(probe, 1)
            assert (watched, reading.left_out) == (one | other, None)


def tree(root: int, *workers: int, comm: str = "nginx") -> list[ProcessCounters]:
    return [replace(process(root), ppid=1, comm=comm), *(replace(process(w), ppid=root, comm=comm) for w in workers)]


def numbers(known: list[ProcessCounters]) -> list[int]:
    return [one.pid for one in known]


def test_while_the_server_restarts_the_others_stay_out() -> None:
    namesakes = Namesakes()
    other = tree(20, 21)
    assert numbers(namesakes.take(tree(10, 11) + other, [11])) == [10, 11]
    assert (numbers(namesakes.take(other, [11])), namesakes.left_out) == ([], 2)
    assert numbers(namesakes.take(other + tree(30), [11])) == [30], "its new process, before its port is found"
    assert (numbers(namesakes.take(other + tree(30, 31), [31])), namesakes.left_out) == ([30, 31], 2)


def test_servers_of_other_names_are_watched_too() -> None:
    known = tree(10) + tree(20) + tree(40, 41, comm="php-fpm8.2")
    namesakes = Namesakes()
    assert numbers(namesakes.take(known, [10])) == [10, 40, 41]
    assert namesakes.left_out == 1


def test_of_several_servers_behind_a_proxy_all_count_and_that_is_said() -> None:
    namesakes = Namesakes()
    front, behind, stranger = tree(10, 11), tree(20, comm="java"), tree(30, comm="java")
    assert numbers(namesakes.take(front + behind, [10])) == [10, 11, 20]
    assert namesakes.left_out == 0, "it is the only one of that name"
    assert numbers(namesakes.take(front + behind + stranger, [10])) == [10, 11, 20, 30]
    assert namesakes.left_out is None
    assert numbers(namesakes.take(front + behind + stranger, [10, 20])) == [10, 11, 20]
    assert namesakes.left_out == 1


def test_a_server_that_hands_its_port_to_its_successor_counts_until_it_ends() -> None:
    namesakes = Namesakes()
    namesakes.take(tree(10), [10])
    assert numbers(namesakes.take(tree(10) + tree(30), [30])) == [10, 30]


def test_a_cycle_of_parents_ends() -> None:
    cycle = [replace(process(1), ppid=2), replace(process(2), ppid=1)]
    assert len(Namesakes().take(cycle, [1])) == 2
