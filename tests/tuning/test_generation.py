"""Workers of one server before and after a reload, beside others of its name; processes that a reload signals."""

import pytest
from msgspec.structs import replace

from cockpit.model.knobs import Knob
from cockpit.tuning.generation import Generation, ServerProcess, generations_of
from cockpit.tuning.signals import Signalled, signalled

MASTER, OTHER = ServerProcess("10", "1", "1"), ServerProcess("20", "2", "1")
OLD, NEW = ServerProcess("11", "3", "10"), ServerProcess("12", "9", "10")
THEIRS, THEIR_NEW = ServerProcess("21", "4", "20"), ServerProcess("22", "9", "20")


def begun(master: str = "10", *more: ServerProcess) -> Generation:
    generation = Generation("nginx", "keepalive_timeout", master)
    generation.begin([MASTER, OLD, OTHER, THEIRS, *more])
    return generation


def compared(generation: Generation, *processes: ServerProcess) -> tuple[bool, int]:
    generation.update(processes)
    return generation.is_fresh, generation.old_workers


def test_only_new_workers_of_the_master_are_fresh() -> None:
    generation = begun()
    assert compared(generation, MASTER, OLD, OTHER, THEIR_NEW) == (False, 1)
    assert generation.others_with_new_workers([MASTER, OLD, OTHER, THEIR_NEW]) == ["20"]
    assert compared(generation, MASTER, OLD, NEW, OTHER, THEIRS) == (True, 1)
    # Old workers of the other server do not delay it.
    assert compared(generation, MASTER, NEW, OTHER, THEIRS, THEIR_NEW) == (True, 0)
    assert generation.same_named == 0


def test_descendants_of_workers_belong_to_their_master() -> None:
    below = ServerProcess("13", "3", "11")
    generation = begun("10", below)
    assert compared(generation, MASTER, NEW, below, OTHER, THEIRS) == (True, 1)


def test_a_worker_without_its_master_is_still_an_old_one() -> None:
    generation = begun()
    assert compared(generation, MASTER, NEW, OLD._replace(parent="1"), OTHER, THEIRS) == (True, 1)


def test_a_restart_is_followed_to_the_master_that_discovery_finds() -> None:
    generation = begun()
    successor, worker = ServerProcess("30", "8", "1"), ServerProcess("31", "8", "30")
    every = (successor, worker, OTHER, THEIRS)
    assert compared(generation, *every) == (False, 0) and generation.is_lost and generation.master == ""
    generation.adopt("")
    assert compared(generation, *every) == (False, 0) and generation.is_lost
    generation.adopt("20")
    assert compared(generation, *every) == (False, 0) and generation.is_lost, "it ran before"
    generation.adopt("30")
    assert compared(generation, *every) == (True, 0) and not generation.is_lost
    assert compared(generation, OTHER, THEIRS) == (False, 0) and generation.is_lost, "it has ended, too"


def test_a_new_server_of_the_name_is_not_the_successor() -> None:
    generation = begun()
    third = ServerProcess("40", "8", "1"), ServerProcess("41", "8", "40")
    assert compared(generation, MASTER, OLD, OTHER, THEIRS, *third) == (False, 1)
    assert compared(generation, OTHER, THEIR_NEW, *third) == (False, 0) and generation.is_lost


def test_a_pid_that_another_process_got_is_not_the_master() -> None:
    generation = begun()
    again = MASTER._replace(start="7")
    assert compared(generation, again, NEW, OTHER, THEIRS) == (False, 0) and generation.is_lost


def test_without_a_master_the_only_server_of_the_name_is_taken() -> None:
    generation = Generation("nginx", "keepalive_timeout", "")
    generation.begin([MASTER, OLD])
    assert compared(generation, MASTER, OLD, OTHER, THEIRS) == (False, 1)
    assert compared(generation, MASTER, NEW, OTHER, THEIRS) == (True, 0)
    assert generation.same_named == 0
    assert compared(generation, ServerProcess("30", "8", "1"), ServerProcess("31", "8", "30")) == (True, 0)


def test_without_a_master_the_workers_of_all_servers_count_and_that_is_recorded() -> None:
    for generation in (begun(""), begun("99")):
        assert generation.same_named == 2
        assert compared(generation, MASTER, NEW, OTHER, THEIRS) == (True, 1)
        assert compared(generation, MASTER, NEW, OTHER, THEIR_NEW) == (True, 0)


def test_a_server_without_workers_needs_a_successor_after_a_restart() -> None:
    generation = Generation("squid", "cache_mem", "10")
    generation.begin([MASTER, OTHER, THEIRS])
    assert compared(generation, MASTER, OTHER, THEIRS) == (True, 0)
    assert compared(generation, OTHER, THEIR_NEW) == (False, 0)
    generation.adopt("30")
    assert compared(generation, ServerProcess("30", "8", "1"), OTHER, THEIR_NEW) == (True, 0)


def test_each_server_of_a_change_is_watched() -> None:
    one = Knob(name="one", host="web1", kind="nginx", workers="nginx", reload="true")
    knobs = [one, replace(one, name="same"), replace(one, name="unit"), replace(one, name="php", workers="php-fpm*")]
    knobs.append(replace(one, name="none", workers=""))
    found = generations_of(knobs, {"one": 10, "same": 10, "php": 20})
    rows = [(each.pattern, each.knob, each.master) for each in found]
    assert rows == [("nginx", "one", "10"), ("php-fpm*", "php", "20")]
    assert [each.master for each in generations_of(knobs, {})] == ["", ""]


@pytest.mark.parametrize(
    ("command", "receivers"),
    [
        ("kill -HUP 12", Signalled((12,))),
        ("sudo -n /bin/kill -s HUP 12 13", Signalled((12, 13))),
        ("nginx -t && kill -1 12; sleep 1", Signalled((12,))),
        ('kill -USR2 "$(cat /run/a.pid)"', Signalled(files=("/run/a.pid",))),
        ("kill -HUP $(</run/a.pid)", Signalled(files=("/run/a.pid",))),
        ("kill -HUP `cat /run/a.pid`", Signalled(files=("/run/a.pid",))),
        ("pkill -HUP -F /run/a.pid", Signalled(files=("/run/a.pid",))),
        ("pkill -HUP nginx", Signalled(names=("nginx",))),
        ("pkill -x -USR1 apache2", Signalled(names=("apache2",), exact=True)),
        ("killall -s HUP nginx", Signalled(names=("nginx",), exact=True)),
        ("service demo reload", Signalled(files=("/run/demo.pid", "/run/demo/demo.pid", "/run/php/demo.pid"))),
        ("pid=3; kill -HUP $pid", Signalled()),
        *((command, None) for command in ("nginx -s reload", "pkill -o -USR1 -x demo", "pkill -f a", "kill '")),
        *((command, None) for command in ("pkill -P 4 nginx", "sh -c 'kill -1 2'", "echo kill -1 2")),
    ],
)
def test_receivers_of_signal_are_parsed(command: str, receivers: Signalled | None) -> None:
    assert list(signalled(command)) == ([receivers] if receivers else [])
