"""Differences of CPU profiles: what is significant, on simulated slices; causes of stacks; the line of a verdict."""

import numpy as np
import pytest
from msgspec.structs import replace

from cockpit.analysis.stacks.difference import (
    SliceSamples,
    discoveries,
    profile_differences,
    profiled_share,
    significant_changes,
)
from cockpit.analysis.stacks.merging import by_cause, cause
from cockpit.analysis.verdicts.objections import objection
from cockpit.analysis.verdicts.outcome import Cause, Outcome
from cockpit.analysis.verdicts.verdict import judge_single_runs
from cockpit.analysis.windows import Window
from cockpit.analysis.words.objections import objection_words
from cockpit.analysis.words.stacks import profile_lines, profiled_words
from cockpit.model.load.plan import LoadPlan
from cockpit.model.load.seconds import LoadSecond
from cockpit.model.stacks import StackSlice, StackSource
from tests.data import data_of

DATA = data_of(__file__)

PLAN = LoadPlan(url="http://web1/", concurrency=1, duration=60.0)
NAMES = [f"f{at}" for at in range(60)]
# Samples per slice of 60 functions, from 0.02 to 80.
MEANS = 80 * 0.87 ** np.arange(60)


def side(
    random: np.random.Generator, slices: int, drift: float = 0.0, factors: dict[int, float] | None = None
) -> SliceSamples:
    """Slices with Poisson counts. `drift`: spread of a factor of all functions that persists over slices, AR(1)."""
    noise = np.zeros(slices)
    for at in range(slices):
        noise[at] = 0.6 * (noise[at - 1] if at else 0.0) + 0.8 * random.normal(0, drift)
    means = MEANS * [(factors or {}).get(at, 1.0) for at in range(60)]
    counts = random.poisson(np.exp(noise)[:, None] * means).astype(float)
    return SliceSamples(NAMES, counts, np.full(slices, 1000.0), float(counts.sum()))


@pytest.mark.parametrize(("slices", "drift"), [(5, 0.0), (12, 0.0), (12, 0.02), (30, 0.02)])
def test_an_aa_pair_shows_nothing_significant(slices: int, drift: float) -> None:
    random = np.random.default_rng(7)
    wrong = sum(bool(significant_changes(side(random, slices, drift), side(random, slices, drift))) for _ in range(100))
    assert wrong <= 10


def test_a_changed_function_is_discovered_and_the_others_are_not() -> None:
    random = np.random.default_rng(7)
    named = [significant_changes(side(random, 10), side(random, 10, factors={3: 0.5, 5: 1.6})) for _ in range(50)]
    assert sum({"f3", "f5"} <= set(changes) for changes in named) >= 45
    assert sum(len(set(changes) - {"f3", "f5"}) for changes in named) <= 10
    assert np.mean([changes["f3"] for changes in named if "f3" in changes]) == pytest.approx(
        -50 * MEANS[3] / MEANS.sum(), rel=0.15
    )


def test_false_discovery_rate_is_that_of_benjamini_and_hochberg() -> None:
    chances = dict(enumerate([0.001, 0.008, 0.039, 0.041, 0.042, 0.06, 0.074, 0.205, 0.212, 0.216]))
    assert discoveries(chances) == {0, 1}
    assert discoveries({0: 0.2, 1: 0.9}) == set()
    assert discoveries({}) == set()


@pytest.mark.parametrize(("stack", "name"), DATA["the_cause_of_a_stack_is_its_system_call_or_innermost_function"])
def test_the_cause_of_a_stack_is_its_system_call_or_innermost_function(stack: str, name: str) -> None:
    assert cause(stack) == name
    assert by_cause({stack: 3, "[other]": 1}) == {name: 3, "[other]": 1}


def window(
    start: int, forks: int, requests: int = 100, profiled: bool = True, source: StackSource = "cpu-clock"
) -> Window:
    """60 s with 12 slices, each with samples of three functions."""
    fork = "web;main;fork;do_syscall_64_[k];__x64_sys_clone_[k]"
    parts = [
        StackSlice(
            t=start + 5.0 * at + 5,
            start=start + 5.0 * at,
            host="web1",
            source=source,
            hz=49,
            samples=160 + forks + at % 3,
            stacks={"web;main;serve": 100 + at % 3, "web;main;deflate": 60} | ({fork: forks} if forks else {}),
            cost=0.02,
        )
        for at in range(12)
    ]
    seconds = [
        LoadSecond(second=start + at, start=float(start + at), end=start + at + 1.0, completed=requests)
        for at in range(60)
    ]
    slices = {"web1": tuple(parts)} if profiled else {}
    return Window(start=float(start), end=start + 60.0, plan=PLAN, seconds=tuple(seconds), slices=slices)


def sampled_more(known: Window, times: int) -> Window:
    """Return a window whose slices have a multiple of the sampling rate."""
    parts = [
        replace(
            part,
            hz=times * part.hz,
            samples=times * part.samples,
            stacks={stack: times * count for stack, count in part.stacks.items()},
        )
        for part in known.slices["web1"]
    ]
    return replace(known, slices={"web1": tuple(parts)})


def test_the_line_of_a_verdict_names_the_largest_changes() -> None:
    (known,) = profile_differences([window(0, 40)], [window(100, 0)])
    assert known.slices == (12, 12)
    assert known.cost == pytest.approx(0.004)
    assert profile_lines([known]) == ["web1 CPU profile: −20% CPU/request: clone −20 points"]
    totals = {row.function: row.total for row in known.functions}
    assert totals["fork"] == totals["__x64_sys_clone_[k]"] == pytest.approx(-100 * 40 / 201)
    (same,) = profile_differences([window(0, 40)], [sampled_more(window(100, 40), 4)])
    assert same.hz == 49
    assert profile_lines([same]) == ["web1 CPU profile: +0% CPU/request: no significant change of a function"]
    (more,) = profile_differences([window(0, 40)], [window(100, 40, requests=50)])
    assert profile_lines([more])[0].startswith("web1 CPU profile: ×2 CPU/request: serve +50 points, deflate +30")


def test_only_slices_of_one_profiler_are_compared() -> None:
    spied = window(100, 0, source="py-spy")
    assert profile_differences([window(0, 40)], [spied]) == ()
    (known,) = profile_differences([window(0, 40), window(60, 40, source="py-spy")], [spied])
    assert known.slices == (12, 12)
    (line,) = profile_lines([known])
    assert line == "web1 CPU profile: −20% CPU and run-queue wait/request: clone −20 points"
    assert profiled_words(known).startswith("CPU and run-queue wait of web1 was profiled at 49 Hz by py-spy: 12 slices")


def test_a_profiled_side_is_not_compared_with_one_that_was_not() -> None:
    verdict = judge_single_runs(window(0, 40), window(100, 40, profiled=False))
    assert verdict.outcome is Outcome.INVALID
    assert verdict.objection is not None
    assert verdict.objection.cause is Cause.PROFILED
    assert (
        objection_words(verdict.objection) == "the server's CPU was profiled only before; profile both sides, or none"
    )
    assert judge_single_runs(window(0, 40), window(100, 40)).objection is None
    assert profiled_share([window(0, 40)]) == 1.0
    assert profile_differences([window(0, 40)], [window(100, 40, profiled=False)]) == ()


@pytest.mark.parametrize(("seconds", "growing", "refused"), [(9, True, False), (10, True, True), (9, False, True)])
def test_a_side_is_not_said_to_lack_a_profile_before_its_first_slice_can_arrive(
    seconds: int, growing: bool, refused: bool
) -> None:
    after = replace(window(100, 40, profiled=False), end=100.0 + seconds, growing=growing)
    assert (objection([window(0, 40)], [after]) is not None) is refused


def test_the_line_of_a_growing_verdict_says_when_slices_suffice() -> None:
    after = window(100, 40)
    after = replace(after, slices={"web1": after.slices["web1"][:1]})
    known = profile_differences([window(0, 40)], [after])
    assert profile_lines(known, growing=True) == ["web1 CPU profile: in about 15 s"]
    assert profile_lines(known) == ["web1 CPU profile: too few slices for a test: 12 before, 1 after"]
