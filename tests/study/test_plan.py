"""The order of steps, the load of each, when runs are enough, and how long it all takes."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.model.knobs import Knob, ServerAction
from cockpit.model.load import LoadPlan, Request
from cockpit.model.study import Arm, Pass, Settle, Study
from cockpit.study.plan import (
    agreed,
    at_target,
    counted,
    enough,
    load_of,
    located,
    names_of,
    steps,
    takes,
    values_of,
)

PLAN = LoadPlan(url="http://web1/hello.html", concurrency=20, duration=10.0)
A, B = Arm(name="a", set=(("K", "1"),)), Arm(name="b", set=(("K", "2"),), url="http://web2:81/x", before=("restart",))
STUDY = Study(plan=PLAN, arms=(A, B), repeats=3)
KNOB = Knob(name="K", host="web1", file="/f", directive="K", test="t", reload="apachectl graceful")


def order(study: Study) -> list[tuple[int, str]]:
    return [(step.round, step.arm.name) for step in steps(study)]


def test_arms_take_turns() -> None:
    assert order(STUDY) == [(1, "a"), (1, "b"), (2, "a"), (2, "b"), (3, "a"), (3, "b")]


def test_arms_in_blocks() -> None:
    assert order(replace(STUDY, order="blocks")) == [(1, "a"), (2, "a"), (3, "a"), (1, "b"), (2, "b"), (3, "b")]


def test_a_shuffle_is_by_its_seed_and_each_round_has_every_arm() -> None:
    many = replace(STUDY, arms=tuple(Arm(name=str(number)) for number in range(6)), order="shuffle")
    first = order(many)
    assert first == order(many)
    assert first != order(replace(many, seed=2))
    for turn in (1, 2, 3):
        assert sorted(name for round_, name in first if round_ == turn) == ["0", "1", "2", "3", "4", "5"]


def test_rungs_of_one_visit_are_set_up_once() -> None:
    found = steps(replace(STUDY, rungs=(1.0, 8.0), repeats=2))
    assert [(step.visit, step.arm.name, step.rung) for step in found[:4]] == [
        (0, "a", 1.0),
        (0, "a", 8.0),
        (1, "b", 1.0),
        (1, "b", 8.0),
    ]
    assert [step.number for step in found] == list(range(8))


def test_the_load_of_an_arm_on_a_rung() -> None:
    closed = load_of(STUDY, B, 8.0)
    assert (closed.url, closed.concurrency, closed.rate) == ("http://web2:81/x", 8, None)
    opened = load_of(replace(STUDY, plan=replace(PLAN, rate=100.0)), A, 250.0)
    assert (opened.url, opened.rate) == (PLAN.url, 250.0)
    assert load_of(STUDY, A, None) == PLAN


def test_another_target_moves_the_requests_of_a_mix() -> None:
    mixed = replace(PLAN, mix=(Request(name="q", url="http://web1/q?a=1"),))
    assert [one.url for one in at_target(mixed, "http://web2:81/x").mix] == ["http://web2:81/q?a=1"]


@pytest.mark.parametrize(
    ("url", "address", "there"),
    [
        ("http://web1/", "10.0.0.1", "10.0.0.1:80"),
        ("http://web1:8080/", "10.0.0.1", "10.0.0.1:8080"),
        ("https://web1/", "fd00::1", "[fd00::1]:443"),
        ("http://other/", "10.0.0.1", ""),
    ],
)
def test_a_name_is_reached_at_its_address(url: str, address: str, there: str) -> None:
    assert located(replace(PLAN, url=url), {"web1": address}).connect_to == there


def test_all_names_are_known() -> None:
    assert names_of(STUDY) == ("web1", "web2")


def test_a_knob_that_an_arm_does_not_set_is_as_it_was() -> None:
    study = replace(STUDY, arms=(A, Arm(name="c", set=(("L", "9"),))))
    assert values_of(study, study.arms[0], {"K": None, "L": "7"}) == {"K": "1", "L": "7"}
    assert values_of(study, study.arms[1], {"K": None, "L": "7"}) == {"K": None, "L": "9"}


def test_a_number_of_runs_after_those_left_out() -> None:
    study = replace(STUDY, runs=2, leave_out=1)
    assert [enough(study, [[1.0] * done]) for done in range(4)] == [False, False, False, True]
    assert list(counted(study, 3)) == [1, 2]
    assert agreed(study, [[1.0, 5.0, 9.0]])


def test_again_until_the_last_ones_agree() -> None:
    study = replace(STUDY, settle=Settle(runs=3, within=0.05, at_most=6))
    rates = [100.0, 300.0, 410.0, 400.0, 405.0]
    assert [enough(study, [rates[:done]]) for done in range(6)] == [False] * 5 + [True]
    assert list(counted(study, 5)) == [2, 3, 4]
    never = [100.0, 200.0, 100.0, 200.0, 100.0, 200.0]
    assert [enough(study, [never[:done]]) for done in (5, 6)] == [False, True]
    assert not agreed(study, [never])
    assert list(counted(study, 6)) == [3, 4, 5]


def test_two_that_agree_else_again() -> None:
    study = replace(STUDY, settle=Settle(runs=2, within=0.05, at_most=5))
    assert enough(study, [[35.0, 36.0]]) and not enough(study, [[35.0, 42.0]]) and enough(study, [[35.0, 42.0, 41.5]])


def test_every_pass_has_to_settle() -> None:
    study = replace(STUDY, passes=(Pass(name="cold"), Pass(name="warm")), settle=Settle(runs=2, within=0.05, at_most=4))
    assert not enough(study, [[10.0, 10.0], [20.0, 30.0]])
    assert enough(study, [[10.0, 10.0, 10.0], [20.0, 30.0, 30.5]])


def test_how_long_it_takes() -> None:
    actions = (ServerAction(name="restart", host="web1", command="x", times=3),)
    # Six runs of 10 s with 2 s around each, six changes and one back of 4 s, three times three restarts of 2 s.
    assert takes(STUDY, steps(STUDY), (KNOB,), actions) == (
        6 * 12 + 6 * 4 + 4 + 3 * 6,
        6 * 12 + 6 * 4 + 4 + 3 * 6,
        True,
    )
    settling = replace(STUDY, settle=Settle(runs=2, at_most=5))
    least, most, _ = takes(settling, steps(settling), (KNOB,), actions)
    assert (least, most) == (12 * 12 + 46, 30 * 12 + 46)
    unknown = replace(STUDY, plan=replace(PLAN, duration=None, requests=100))
    assert not takes(unknown, steps(unknown), (KNOB,), actions).known
    assert takes(unknown, steps(unknown), (KNOB,), actions, run=5.0) == (6 * 5 + 46, 6 * 5 + 46, True)
    assert takes(replace(unknown, takes=3.0), steps(unknown), (KNOB,), actions).known


def test_the_fingerprint_is_of_the_plan_and_not_of_addresses() -> None:
    assert STUDY.fingerprint == replace(STUDY, addresses=(("web1", "10.0.0.1"),)).fingerprint
    assert STUDY.fingerprint != replace(STUDY, repeats=4).fingerprint
