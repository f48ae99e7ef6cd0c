"""Balanced, seeded order of steps; load of each variant; estimated duration."""

import itertools
from collections import Counter

import pytest
from msgspec.structs import replace

from cockpit.model.knobs import Knob, ServerAction
from cockpit.model.load.plan import LoadPlan, PathList, Request, at_target
from cockpit.model.study import Study, Variant, host_names, variant_plan, with_address
from cockpit.profiles.study import with_control
from cockpit.study.plan import (
    all_steps,
    order_of,
    planned_comparisons,
    reloads_left,
    round_of,
    steps_of,
    study_duration,
    total_duration,
    values_of,
)

PLAN = LoadPlan(url="http://web1/hello.html", concurrency=20, duration=10.0)
A = Variant(name="a", set=(("K", "1"),))
B = Variant(name="b", set=(("K", "2"),), url="http://web2:81/x", before=("restart",))
STUDY = Study(plan=PLAN, variants=(A, B), rounds=3)
FIVE = with_control(
    Study(
        plan=PLAN,
        variants=tuple(Variant(name=name) for name in "abcd"),
        rounds=12,
        compare=(("a", "b"), ("a", "c"), ("b", "d")),
    )
)
KNOB = Knob(name="K", host="web1", file="/f", directive="K", test="t", reload="apachectl graceful")


def order(study: Study, turn: int) -> list[str]:
    return [variant.name for variant in order_of(study, turn)]


def test_orders_of_consecutive_rounds_are_independent() -> None:
    """Either variant of a pair comes first in half of the rounds, whatever its place in the round before."""
    found = [[order(replace(FIVE, seed=seed), turn) for turn in (1, 2)] for seed in range(400)]
    first = [tuple(names.index("a") < names.index("b") for names in orders) for orders in found]
    assert all(70 < count < 130 for count in Counter(first).values()) and len(set(first)) == 4
    two_rounds = [order(replace(FIVE, rounds=2), turn) for turn in (1, 2)]
    assert two_rounds[0] == two_rounds[1][::-1], "each pair in both orders"


def test_order_is_drawn_from_seed() -> None:
    orders = [order(FIVE, turn) for turn in range(1, 13)]
    assert orders == [order(replace(FIVE), turn) for turn in range(1, 13)]
    assert orders != [order(replace(FIVE, seed=2), turn) for turn in range(1, 13)]
    firsts = Counter(order(replace(FIVE, seed=seed), 1)[0] for seed in range(200))
    assert len(firsts) == 5 and min(firsts.values()) > 20, "each variant is first about equally often"


def test_round_has_variants_of_open_comparisons_and_control() -> None:
    study = replace(FIVE, levels=(1.0, 8.0))
    turn = round_of(study, 5, [("b", "d", 8.0)])
    assert sorted(turn.steps) == [("A/A control", 8.0), ("a", 8.0), ("b", 8.0), ("d", 8.0)]
    assert [step.round for step in steps_of(study, turn)] == [5] * 4
    every = [(step.variant.name, step.level) for step in all_steps(study) if step.round == 5]
    assert [step for step in every if step in turn.steps] == list(turn.steps), "the order of the others is kept"
    assert len(planned_comparisons(study)) == 6 and ("b", "d", 8.0) in planned_comparisons(study)


def test_levels_share_a_set_up_and_steps_keep_their_numbers() -> None:
    study = replace(STUDY, levels=(1.0, 8.0), rounds=2)
    found = all_steps(study)
    assert sorted(step.number for step in found) == list(range(8))
    visits = [list(group) for _, group in itertools.groupby(found, key=lambda step: step.visit)]
    assert [[step.level for step in visit] for visit in visits] == [[1.0, 8.0]] * 4
    by_place = {(step.round, step.variant.name, step.level): step.number for step in found}
    other = {(step.round, step.variant.name, step.level): step.number for step in all_steps(replace(study, seed=5))}
    assert by_place == other, "numbers do not depend on the order"


def test_load_of_variant_at_level() -> None:
    closed = variant_plan(STUDY, B, 8.0)
    assert (closed.url, closed.concurrency, closed.rate) == ("http://web2:81/x", 8, None)
    opened = variant_plan(replace(STUDY, plan=replace(PLAN, rate=100.0)), A, 250.0)
    assert (opened.url, opened.rate) == (PLAN.url, 250.0)
    assert variant_plan(STUDY, A, None) == PLAN
    paths = PathList(pattern="/{1..9}")
    plan = variant_plan(STUDY, Variant(name="c", concurrency=3, keepalive=False, paths=paths), None)
    assert (plan.concurrency, plan.keepalive, plan.paths) == (3, False, paths)
    plan = variant_plan(STUDY, Variant(name="d", http="2", streams=10), None)
    assert (plan.http, plan.streams, STUDY.plan.http) == ("2", 10, "1.1")


def test_target_applies_to_requests_of_mix() -> None:
    mixed = replace(PLAN, mix=(Request(name="q", url="http://web1/q?a=1"), Request(name="r", url="http://web1/r")))
    plan = variant_plan(replace(STUDY, plan=mixed), Variant(name="c", url="http://web3/", mix=("r",)), None)
    assert [request.url for request in plan.mix] == ["http://web3/r"]
    moved = at_target(mixed, "http://web2:81/x")
    assert [request.url for request in moved.mix] == ["http://web2:81/q?a=1", "http://web2:81/r"]


@pytest.mark.parametrize(
    ("url", "address", "connect_to"),
    [
        ("http://web1/", "10.0.0.1", "10.0.0.1:80"),
        ("http://web1:8080/", "10.0.0.1", "10.0.0.1:8080"),
        ("https://web1/", "fd00::1", "[fd00::1]:443"),
        ("http://other/", "10.0.0.1", ""),
    ],
)
def test_host_name_connects_to_configured_address(url: str, address: str, connect_to: str) -> None:
    assert with_address(replace(PLAN, url=url), {"web1": address}).connect_to == connect_to
    assert host_names(STUDY) == ("web1", "web2"), "of all variants"


def test_knob_not_set_by_variant_has_original_value() -> None:
    study = replace(STUDY, variants=(A, Variant(name="c", set=(("L", "9"),))))
    assert values_of(study, study.variants[0], {"K": None, "L": "7"}) == {"K": "1", "L": "7"}
    assert values_of(study, study.variants[1], {"K": None, "L": "7"}) == {"K": None, "L": "9"}


def test_visit_reloads_servers_that_it_did_not_change() -> None:
    other = Knob(name="L", host="web1", file="/g", directive="L", test="t", reload="apachectl graceful")
    squid = Knob(name="S", host="proxy1", file="/s", directive="S", test="t", reload="squid -k reconfigure")
    live = Knob(name="live", host="web1", kind="sysctl", key="net.x")
    given = tuple((name, "1") for name in ("K", "L", "S", "live"))
    study = replace(STUDY, variants=(Variant(name="a", set=given), Variant(name="b")))
    knobs = (KNOB, other, squid, live)
    assert reloads_left(study, knobs, ()) == ("L", "S"), "each command only once"
    assert reloads_left(study, knobs, ("K",)) == ("S",)
    assert reloads_left(STUDY, knobs, ("K",)) == ()
    assert reloads_left(STUDY, knobs, ()) == ("K",), "only knobs of the study"


def test_duration_is_estimated() -> None:
    actions = (ServerAction(name="restart", host="web1", command="x", times=3),)
    # Six runs of 10 s with 2 s around each, six set-ups of 4 s and a rollback, three times three restarts of 2 s.
    whole = 6 * 12 + 6 * 4 + 4 + 3 * 6
    assert total_duration(STUDY, all_steps(STUDY), (KNOB,), actions) == (whole, whole, True)
    unknown = replace(STUDY, plan=replace(PLAN, duration=None, requests=100))
    assert not total_duration(unknown, all_steps(unknown), (KNOB,), actions).known
    assert total_duration(unknown, all_steps(unknown), (KNOB,), actions, run=5.0).most == whole - 6 * 12 + 6 * 5
    assert total_duration(replace(unknown, run_time=3.0), all_steps(unknown), (KNOB,), actions).known


def test_minimum_duration_covers_rounds_before_first_test() -> None:
    assert study_duration(FIVE, (), ()) == (4 * 5 * 12, 12 * 5 * 12, True)
    assert study_duration(replace(FIVE, rounds=2), (), ())[:2] == (2 * 5 * 12, 2 * 5 * 12)


def test_fingerprint_ignores_addresses_and_seed() -> None:
    assert STUDY.fingerprint == replace(STUDY, addresses=(("web1", "10.0.0.1"),), seed=5).fingerprint
    assert STUDY.fingerprint != replace(STUDY, rounds=4).fingerprint
