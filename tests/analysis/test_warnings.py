"""Warnings about a run and a segment, and the words of warnings, effects and intervals."""

import pytest
from msgspec.structs import replace

from cockpit.analysis.verdicts.outcome import Effect, Outcome
from cockpit.analysis.verdicts.verdict import judge_runs, judge_switch
from cockpit.analysis.warnings import CPU_WAIT, RunWarning, WarningKind, alters_reading, run_warnings, segment_warnings
from cockpit.analysis.words.verdicts import brief, change_words, effect_words, uses_factors, value_words
from cockpit.analysis.words.warnings import grouped, warning_words
from cockpit.metrics.results import RunResult, run_result
from cockpit.model.counts import Group
from cockpit.model.events import AnyEvent, RunStarted
from cockpit.model.fold.fold import fold_all
from cockpit.model.histogram import Histogram
from cockpit.model.load.plan import Expect, LoadPlan, Request
from cockpit.model.state import Segment, State
from cockpit.model.tick import Tick
from tests.analysis.synthetic import window
from tests.analysis.test_verdict import effect_on

LATENCIES = Histogram.of([1_000_000] * 100)
PLAN = LoadPlan(url="http://a/", rate=100.0, duration=10.0, max_in_flight=20, workers=2)


def state_of(**values: float) -> State:
    """Return ten seconds of two workers; `values` apply to each tick of the second worker."""
    events: list[AnyEvent] = [RunStarted(t=0.0, run=1, plan=PLAN)]
    plain = Tick(
        t=0.0, run=1, worker=0, start=0.0, sent=100, completed=100, statuses={200: 100}, cpu=0.5, service=LATENCIES
    )
    for second in range(10):
        tick = replace(plain, start=float(second), t=second + 1.0)
        events += [tick, replace(tick, worker=1, **values)]
    return fold_all(events)


def result_of(state: State) -> RunResult:
    return run_result(state, 1)


def texts(result: RunResult) -> tuple[str, ...]:
    return tuple(map(warning_words, run_warnings(result)))


def notes_of(segment: Segment) -> list[str]:
    return [warning_words(each) for each in segment_warnings(segment)]


def test_requests_without_response_and_good_runs() -> None:
    (text,) = texts(result_of(state_of(errors={"timeout": 5})))
    assert text.startswith("50 of 2000 requests got no complete response: ")
    assert text.endswith("rate and latency exclude them, but latency includes timeouts")
    state = state_of(cpu_wait=0.99 * CPU_WAIT)
    assert texts(result_of(state)) == ()
    assert notes_of(state.segment) == []
    state = state_of(queued=3, unsent=1)
    unsent, queued = texts(result_of(state))
    assert unsent == "10 due requests were never sent: the limit of 20 in flight was reached"
    assert queued.startswith("30 arrivals were queued: the limit of 20 in flight was reached; response time")
    assert notes_of(state.segment) == [unsent, queued]
    state = state_of(dropped=7)
    assert texts(result_of(state))[0].startswith("70 arrivals were dropped")


def test_generator_cpu_wait_is_a_warning() -> None:
    state = state_of(cpu_wait=0.12)
    result = result_of(state)
    assert result.cpu_wait == state.segment.cpu_wait == pytest.approx(0.12)
    assert [second.cpu_wait for second in state.seconds] == [pytest.approx(0.12)] * 10
    assert texts(result) == ("the generator waited 12% of the time for a CPU: latencies include that wait",)
    assert notes_of(state.segment) == [texts(result)[0]]
    assert result.saturated == 0
    result = result_of(state_of(cpu_wait=0.46))
    # Half of the worker-seconds.
    assert result.saturated == pytest.approx(5.0)
    saturated, starved = texts(result)
    assert saturated.startswith("generator saturated for 50% of the time")
    assert starved.startswith("the generator waited 46% of the time for a CPU")


def test_all_error_responses_are_first_warning() -> None:
    for statuses, expect, text in (
        ({404: 100}, None, "all 2000 responses were 404: is the path right?"),
        ({404: 60, 503: 40}, None, "all 2000 responses were 404, 503: is this the right request?"),
        ({200: 1, 404: 99}, None, ""),
        ({404: 100}, Expect(statuses=(404,)), ""),
    ):
        events: list[AnyEvent] = [RunStarted(t=0.0, run=1, plan=replace(PLAN, expect=expect))]
        tick = Tick(t=0.0, run=1, worker=0, start=0.0, sent=100, completed=100, service=LATENCIES)
        events += [replace(tick, start=float(at), t=at + 1.0, statuses=statuses) for at in range(20)]
        state = fold_all(events)
        assert "".join(texts(result_of(state))[:1]) == text
        assert notes_of(state.segment)[:1] == ([text] if text else [])


def _responses(plan: LoadPlan, **values: object) -> State:
    """Return a run of 100 responses."""
    tick = Tick(t=9.0, run=1, worker=0, start=0.0, sent=100, completed=100, service=LATENCIES)
    return fold_all([RunStarted(t=0.0, run=1, plan=plan), replace(tick, **values)])


def test_redirects_are_a_warning_with_target_url() -> None:
    plan = LoadPlan(url="http://me:secret@a/x", concurrency=1, duration=10.0)
    state = _responses(plan, statuses={302: 50, 200: 50}, redirect="../new?a=b")
    text = "50 of 100 responses redirect and are not followed: load http://a/new?a=b instead"
    assert texts(result_of(state))[0] == text
    assert notes_of(state.segment)[0] == text
    few = _responses(plan, statuses={302: 49, 200: 51}, redirect="/new")
    assert not any("redirect" in each for each in texts(result_of(few)))
    mix = (Request(name="a", url="http://a/1"), Request(name="b", url="http://a/2", expect=Expect(statuses=(301,))))
    groups = {"a": Group(completed=10, statuses={302: 10}), "b": Group(completed=90, statuses={301: 30, 200: 60})}
    plan = LoadPlan(url="", mix=mix, concurrency=1, duration=10.0)
    state = _responses(plan, statuses={200: 60, 301: 30, 302: 10}, groups=groups, redirect="/new")
    assert "10 of 10 responses redirect" in texts(result_of(state))[0]
    plan = LoadPlan(url="http://a/", concurrency=1, duration=10.0)
    state = _responses(plan, statuses={200: 100}, unclosed=98)
    assert "announced Connection: close 98 times and kept" in texts(result_of(state))[0]
    assert not any(map(alters_reading, segment_warnings(state.segment)))
    assert not notes_of(_responses(plan, statuses={200: 100}, unclosed=1).segment)


def waited(share: float) -> RunWarning:
    return RunWarning(kind=WarningKind.CPU_WAIT, values={"share": share})


def test_same_warning_is_one_line_and_each_kind_has_text() -> None:
    found = [(f"c={level}", waited(share)) for level, share in ((1, 0.11), (2, 0.09), (4, 0.25), (8, 0.04))]
    expected = "the generator waited 4–25% of the time for a CPU: latencies include that wait"
    assert grouped(found, 4) == [f"all 4: {expected}"]
    assert grouped(found, 7) == [f"4 of 7: {expected}"]
    few = RunWarning(kind=WarningKind.FEW_SAMPLES, values={"count": 10})
    found = grouped([("a", few), ("a", waited(0.07)), ("b", waited(0.07))], 9)
    assert found == [f"a: {warning_words(few)}", f"a, b: {warning_words(waited(0.07))}"]
    assert grouped([], 9) == []
    names = ("count", "total", "status", "share", "limit", "seconds")
    for kind in WarningKind:
        warning = RunWarning(kind=kind, subject="web1\x1b[2J", values=dict.fromkeys(names, 404))
        assert "\x1b" not in warning_words(warning)
        assert warning_words(warning) and "{" not in warning_words(warning)


BEFORE = window(1, phi=0.3)
BETTER = Outcome.BETTER


def test_single_run_has_no_interval() -> None:
    single = effect_on(judge_runs([[window(1, 20)]], [[window(2, 20)]]), "rate")
    assert (single.low, single.high, single.outcome) == (None, None, Outcome.INCONCLUSIVE)
    assert change_words(single).endswith("(no interval)")


def test_words_of_changes() -> None:
    for change, low, high, words in (
        (0.151, 0.12, 0.18, "+15% (+12 to +18%)"),
        (-0.021, -0.041, 0.001, "−2.1% (−4.1 to +0.1%)"),
        (8.72, 4.3, 16.8, "×9.7 (5.3–17.8)"),
        (-0.99, -0.995, -0.98, "÷100 (50–200)"),
        (0.15, 0.12, None, "≥ +12% (measured +15%)"),
        (8.7, 4.3, None, "≥ ×5.3 (measured ×9.7)"),
        (1.2, 0.8, None, "≥ +80% (measured ×2.2)"),
        (-0.4, None, -0.3, "≤ −30% (measured −40%)"),
        (-0.9, None, -0.5, "≥ ÷2.0 (measured ÷10)"),
        (0.08, -0.02, None, "≥ −2.0% (measured +8.0%)"),
        (0.1, -0.6, None, "≤ ÷2.5 (measured +10%)"),
        (0.2, -0.9999999, 1e300, "+20% (interval wider than ×1000)"),
        (-0.9, -1.0, 4e4, "÷10 (interval wider than ×1000)"),
    ):
        effect = Effect(name="rate", outcome=BETTER, change=change, low=low, high=high)
        assert change_words(effect) == words
        assert effect_words(effect) == f"rate better {words}"
    slow, fast = (Effect(name="p99", outcome=BETTER, change=change, low=change, high=change) for change in (-0.15, 2.0))
    assert uses_factors([slow, fast]) and not uses_factors([slow])
    assert [change_words(each, True) for each in (slow, fast)] == ["÷1.18 (1.18–1.18)", "×3.0 (3.0–3.0)"]
    assert change_words(fast, False) == "+200% (+200 to +200%)"
    ends = {"change": -14.06, "low": -24.9, "high": -3.2, "before": 14.7}
    spawned = Effect(name="web1.processes.spawned_per_s", outcome=BETTER, relative=False, **ends)
    assert effect_words(spawned) == "web1 spawned/s better −14.1/s (−24.9 to −3.2/s)"
    assert value_words(spawned) == "14.7/s → –"
    errors = Effect(name="errors", outcome=Outcome.WORSE, relative=False, change=0.029, low=0.028, high=0.031)
    assert change_words(errors) == "+2.9 points (+2.8 to +3.1 points)"


def test_values_have_the_unit_of_their_metric_whatever_the_host_is_called() -> None:
    for name, before, after, words in (
        ("p99.9", 0.0121, 0.5, "12 ms → 500 ms"),
        ("mean", 0.0121, 0.5, "12 ms → 500 ms"),
        ("service.p99", 0.0121, 0.5, "12 ms → 500 ms"),
        ("proxy.cpu.per_request", 0.0002, 0.0003, "0.20 ms → 0.30 ms"),
        ("proxy.memory.used", 512 * 2**20, 2**30, "512 MiB → 1.0 GiB"),
        ("php.cpu.busy", 40.0, 61.5, "40.0% → 61.5%"),
        ("web1.cpu.idle", 40.0, 61.5, "40.0% → 61.5%"),
        ("prod1.processes.spawned_per_s", 3.0, 14.7, "3/s → 14.7/s"),
        ("web1.processes.mean", 3.0, 14.7, "3 → 14.7"),
        ("rate", 12345.0, 900.0, "12.3k/s → 900/s"),
        ("errors", 0.01, 0.0, "1.00% → 0.00%"),
        ("completed", 12345.0, 900.0, "12.3k → 900"),
    ):
        assert value_words(Effect(name=name, outcome=BETTER, before=before, after=after)) == words


def test_brief_verdict_has_at_most_nine_characters() -> None:
    for rate in (100.0, 500.0, 990.0, 1000.0, 1150.0, 2500.0, 90000.0):
        for slower in (0.1, 1.0, 30.0):
            assert len(brief(judge_switch(BEFORE, window(2, rate=rate, slower=slower)))[0]) <= 9
