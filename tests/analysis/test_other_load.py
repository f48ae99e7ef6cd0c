"""Comparisons with other load on a host: valid and invalid ones."""

import json
import re

import msgspec
import pytest
from msgspec.structs import replace

from cockpit.analysis.verdicts.other_load import round_objections
from cockpit.analysis.verdicts.outcome import Cause, Outcome, Verdict
from cockpit.analysis.verdicts.verdict import judge_rounds, judge_runs, judge_switch
from cockpit.analysis.windows import Window, window_between
from cockpit.analysis.words.verdicts import brief, method_lines, verdict_words
from cockpit.model.fold.fold import fold_all
from cockpit.model.host.state import HostPoint
from cockpit.model.load.plan import LoadPlan
from cockpit.model.state import Change, Segment, State
from cockpit.report.verdicts import verdict_json
from tests.analysis.synthetic import PLAN, window
from tests.model.test_fold_other_load import start
from tests.statistics.neighbours import CASES, spoiled_shares


def is_weighed(verdict: Verdict) -> bool:
    """Return whether other load matters to a verdict."""
    return any(load.slowed is not None for load in verdict.other_loads)


def with_generator_load(of: Window, other: float, idle: float, address: str = "192.0.2.7") -> Window:
    """Return the window with other load on the generator's machine, which is not the server's."""
    seconds = tuple(replace(second, other=other, idle=idle) for second in of.seconds)
    segment = Segment(number=1, run=1, plan=of.plan, start=0, last=60, end=60, addresses=(address,))
    return replace(of, seconds=seconds, boots={"web1": "b1"}, generator_boot="b2", segments=(segment,))


def with_hog_after(of: Window, second: int, share: float) -> Window:
    """Return the window with a CPU hog on its host after `second`."""
    points = [replace(point, other=(point.other or 0) + share * (point.t > second)) for point in of.hosts["web1"]]
    return replace(of, hosts={"web1": tuple(points)})


def test_idle_machine_has_no_objection() -> None:
    for seed in range(10):
        verdict = judge_switch(window(seed, other=1.0), window(seed + 20, other=1.0))
        assert verdict.objection is None
        (load,) = verdict.other_loads
        assert load.host == "web1" and max(load.before, load.after) < 0.02
        assert any(line.startswith("other load on web1: ") for line in method_lines(verdict))


def test_effect_beyond_what_other_load_explains_stands_shortened() -> None:
    quiet = {"other": 1.0, "busy": 99.0}
    hogged = {"other": 29.0, "busy": 99.0}
    # Other programs took CPU afterwards: they can only have made the new setting look worse.
    better = judge_switch(window(1, **quiet), window(2, rate=1300, **hogged))
    assert better.outcome is Outcome.BETTER and better.at_least
    assert re.fullmatch(
        r"better, at least: rate ≥ \+2\d% \(measured \+(29|30|31)%\), web1 CPU/request ≤ −.*"
        r"others 1% → 29% of CPU explain nothing of it",
        verdict_words(better),
    )
    assert brief(better)[0].startswith("≥+2")
    # 29% of the CPU explain a fall to 1/1.40: a fall to 70% is explained, one to a third is not.
    for rate, outcome in ((700, Outcome.INVALID), (1000, Outcome.INCONCLUSIVE), (333, Outcome.WORSE)):
        found = judge_switch(window(1, **quiet), window(2, rate=rate, **hogged))
        assert found.outcome is outcome, rate
    assert "÷2." in verdict_words(found) and "explain at most ÷1.4" in verdict_words(found)
    explained = judge_switch(window(1, **quiet), window(2, rate=700, **hogged))
    assert verdict_words(explained).startswith("invalid: other load on web1: 1% of its CPU before, 29% after, which ")
    assert brief(explained) == ("others", "")
    assert {one.objection for one in explained.rows} == {None}, "the reason is above the table"
    assert not any("other load" in line for line in method_lines(explained)), "nor is it below"
    # Nothing bounds a tail, and the memory of the machine is that of all programs.
    assert [one.name for one in better.effects if one.objection] == ["web1.memory.used"]
    cost = better.effect("web1.cpu.per_request")
    assert cost is not None and cost.low is None and cost.high is not None and cost.outcome is Outcome.BETTER
    tail = better.effect("p99")
    assert tail is not None and (tail.low, tail.outcome) == (None, Outcome.INCONCLUSIVE)
    found = json.loads(msgspec.json.encode(verdict_json(better)))
    (load,) = found["other_loads"]
    assert (load["host"], [round(factor, 1) for factor in load["slowed"]]) == ("web1", [1.0, 1.4])


def test_hog_on_a_part_of_the_sides_makes_verdict_invalid() -> None:
    assert is_weighed(judge_switch(window(1, other=48.0, rate=700), window(2, other=1.0)))
    assert is_weighed(judge_switch(window(1, other=1.0), with_hog_after(window(2, other=1.0), 45, 48.0)))
    # A job of 10 s takes a third of the machine every 20 s; one side has one more of these jobs.

    def jobs(of: Window, first: int) -> Window:
        points = [replace(point, other=30.0 if (point.t - first) % 20 <= 10 else 1.0) for point in of.hosts["web1"]]
        return replace(of, hosts={"web1": tuple(points)}, unloaded={"web1": 1.0})

    assert not is_weighed(judge_switch(jobs(window(1, 50, other=1.0), 0), jobs(window(2, 50, other=1.0), 10)))


def test_other_load_that_follows_the_load_is_valid() -> None:
    faster = judge_switch(window(1, other=20.0), window(2, other=30.0, rate=1500))
    assert (faster.outcome, faster.objection) == (Outcome.BETTER, None)
    assert is_weighed(judge_switch(window(1, other=20.0), window(2, other=30.0, rate=1010)))
    # A database beside the server is not watched; it is idle until the load starts.
    before, after = (replace(window(seed, other=40.0, busy=95.0), unloaded={"web1": 2.0}) for seed in (1, 2))
    assert judge_switch(before, after).objection is None
    hogs = [replace(side, unloaded={"web1": 50.0}) for side in (before, after)]
    assert is_weighed(judge_switch(*hogs))
    # The other load that the cache removes exists only under load.
    slow = replace(window(1, other=20.0, rate=500), unloaded={"web1": 1.0})
    fast = replace(window(2, other=0.0, rate=5000), unloaded={"web1": 1.0})
    assert judge_switch(slow, fast).outcome is Outcome.BETTER
    assert judge_switch(fast, slow).outcome is Outcome.WORSE
    assert is_weighed(judge_switch(replace(slow, unloaded={"web1": 20.0}), fast)), "a hog that ended"
    assert is_weighed(judge_switch(fast, replace(slow, unloaded={}))), "no data without load"


def test_hog_on_both_sides_is_invalid_without_idle_cpus() -> None:
    before, after = (window(seed, other=50.0, busy=92.0) for seed in (1, 2))
    assert is_weighed(judge_switch(before, after))
    better = judge_switch(before, window(2, other=50.0, busy=92.0, rate=1300))
    assert better.outcome is Outcome.BETTER and better.effects[0].low == pytest.approx(0.27, abs=0.02), "sides alike"
    explained = judge_switch(window(1, other=60.0, busy=92.0), window(2, other=45.0, busy=92.0, rate=1400))
    assert explained.outcome is Outcome.INVALID, "15% more CPU explain more than that"
    before, after = (window(seed, other=12.0, busy=40.0) for seed in (1, 2))
    assert judge_switch(before, after).objection is None
    hogged = {"other": 50.0, "busy": 95.0}
    rounds = [([window(seed, 20, **hogged)], [window(seed + 9, 20, **hogged)]) for seed in range(4)]
    assert judge_rounds(rounds, budget=4).other_loads[0].slowed == pytest.approx((1, 1), abs=0.1), "both sides alike"
    before, after = with_generator_load(window(1), 2.0, 40.0), with_generator_load(window(2), 60.0, 2.0)
    assert is_weighed(judge_switch(before, after))


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "/run/web.sock"])
def test_unwatched_local_server_is_no_other_load(address: str) -> None:
    before, after = (with_generator_load(window(seed), other, 2.0, address) for seed, other in ((1, 2.0), (2, 60.0)))
    assert judge_switch(before, after).objection is None
    unwatched = [
        replace(with_generator_load(window(seed), other, 2.0), boots={}) for seed, other in ((1, 2.0), (2, 60.0))
    ]
    assert judge_switch(*unwatched).objection is None


def visits(seed: int, *others: float) -> list[list[Window]]:
    return [[window(seed + at, 20, other=other)] for at, other in enumerate(others)]


def test_difference_in_every_round_is_an_effect() -> None:
    # The order of the sides is random. A cache relieves an unwatched server; a hog would not follow the order.
    before, after = visits(1, 20, 21, 19, 20), visits(10, 1, 0, 2, 1)
    rounds = list(zip(before, after, strict=True))
    assert judge_rounds(rounds, budget=4).objection is None
    assert round_objections(rounds) == [None] * 4
    assert is_weighed(judge_rounds(rounds[:2])), "two rounds may be chance"
    hog = [*rounds[:3], (before[3], visits(30, 48)[0])]
    found = round_objections(hog)
    assert found[:3] == [None] * 3
    assert found[3] is not None and found[3].cause is Cause.OTHER_LOAD
    assert is_weighed(judge_runs(visits(1, 1, 1, 1), visits(10, 40, 40, 40)))
    assert judge_runs(visits(1, 1, 1, 1), visits(10, 1, 1, 1)).objection is None


def test_unloaded_share_is_from_time_next_to_run() -> None:
    """Samples under load, in the seconds after it and across a change are excluded."""
    state = fold_all(start("web1"))
    host = state.hosts["web1"]
    memory = window(1, 1).hosts["web1"][0].memory
    shares = [3.0] * 10 + [70.0] * 23 + [5.0] * 27
    points = tuple(HostPoint(t=float(t), memory=memory, load=(0, 0, 0), other=share) for t, share in enumerate(shares))
    plan = LoadPlan(url="http://a/", concurrency=1)
    first = Segment(number=1, run=1, plan=plan, start=10.0, last=30.0, end=30.0)
    second = Segment(number=2, run=2, plan=plan, start=40.0, last=59.0, end=None)
    change = Change(letter="A", host="web1", settings=(), begun=19.0, outcome="applied", stages={"active": 20.0})

    def unloaded(begin: float, segments: list[Segment], *changes: Change, known: int = 60) -> dict[str, float]:
        hosts = {"web1": replace(host, points=points[:known])}
        of = State(t=float(known), hosts=hosts, segments=tuple(segments), changes=changes)
        return dict(window_between(of, begin, begin + 10, PLAN).unloaded)

    assert unloaded(10.0, [first, second]) == {"web1": 5.0}
    assert unloaded(10.0, [first], known=31) == {"web1": 3.0}
    assert unloaded(40.0, [first, second]) == {"web1": 5.0}
    assert unloaded(10.0, [first, second], change) == {"web1": 3.0}, "before the change"
    assert unloaded(20.0, [first, second], change) == {"web1": 5.0}, "after the change"
    assert unloaded(20.0, [first], change, known=31) == {}


def test_hog_is_detected_and_idle_machine_is_not() -> None:
    for case in CASES:
        share = float(spoiled_shares(case, 100, seed=8).mean())
        assert share >= 0.99 if "hog" in case.name else share <= 0.01, case.name
