"""The verdict strip: word, change, effects, and the seconds left, live and at any instant of a recording."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path

import msgspec
import pytest
from textual.pilot import Pilot

from cockpit.analysis import segment_verdicts
from cockpit.analysis.outcome import Cause, Design, Effect, Objection, Outcome, Period, Verdict
from cockpit.analysis.segment_verdicts import SegmentVerdicts, segment_verdict
from cockpit.model import events as ev
from cockpit.model.fold import fold, fold_all
from cockpit.model.load import LoadPlan
from cockpit.model.state import Segment, State, StudyState
from cockpit.model.study import Study
from cockpit.recording.reader import Recording
from cockpit.session.loop import Session
from cockpit.session.replay import ReplaySource
from cockpit.tui.app import CockpitApp
from cockpit.tui.draw_context import DrawContext
from cockpit.tui.runs.strip import Strip, VerdictProgress, strip
from cockpit.tui.runs.strip_lines import VerdictStrip, compact_height, full_height, strip_lines, strip_words
from cockpit.tui.terminal.appearance import Appearance
from tests.analysis.test_rounds import rounds_of
from tests.analysis.test_segment_verdicts import flipped
from tests.tui.driving import at_rest, context_of, main, plain, text_of, until
from tests.tui.scenario import Scenario
from tests.tui.test_verdicts import changed_under_load

RECORDINGS = Path(__file__).parents[1] / "recordings"
BETTER, WORSE, EQUIVALENT = Outcome.BETTER, Outcome.WORSE, Outcome.EQUIVALENT
INCONCLUSIVE, INVALID = Outcome.INCONCLUSIVE, Outcome.INVALID
WIDE, NARROW = (66, 9), (78, 4)
# Session seconds of the recorded change: its row begins at 60 s, 25 s later there are enough blocks.
EARLY, TENTATIVE, OVER = 64.0, 75.0, 200.0


@cache
def under_load() -> tuple[ev.AnyEvent, ...]:
    with Recording(RECORDINGS / "under-load.cockpit") as recording:
        return tuple(recording.events())


def at(t: float, events: Sequence[ev.AnyEvent] | None = None) -> Strip:
    found = strip(context_of([event for event in events or under_load() if event.t <= t]))
    assert found is not None
    return found


class Fixed(SegmentVerdicts):
    """The same verdict on all rows."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__()
        self._verdict = verdict

    def verdict(self, state: State, row: Segment, base: Segment) -> Verdict:
        return self._verdict


def showing(verdict: Verdict) -> Strip:
    """The strip of a change under load on web1 on which that is the verdict."""
    context = context_of(changed_under_load())
    found = strip(dataclasses.replace(context, verdicts=Fixed(verdict)))
    assert found is not None
    return found


def effect(name: str, outcome: Outcome, change: float, half: float = 0.01, **more: object) -> Effect:
    values = {"headline": name == "rate", "low": change - half, "high": change + half, "margin": 0.03, **more}
    return Effect(name=name, outcome=outcome, change=change, **values)  # type: ignore[arg-type]


def judged(outcome: Outcome, *effects: Effect, **more: object) -> Verdict:
    return Verdict(outcome=outcome, design=Design.SWITCH, effects=effects, values=(6, 8), block=5, **more)  # type: ignore[arg-type]


def lines_of(of: Strip, size: tuple[int, int] = WIDE) -> list[str]:
    lines = plain(strip_lines(of, *size))
    assert all(len(line) <= size[0] for line in lines)
    assert len(lines) <= size[1]
    return [line.rstrip() for line in lines]


@asynccontextmanager
async def replayed(
    name: str, t: float, size: tuple[int, int] = (120, 40), appearance: Appearance | None = None
) -> AsyncIterator[tuple[Pilot[object], Session]]:
    """The app on a recording, halted at an instant."""
    with Recording(RECORDINGS / f"{name}.cockpit") as recording:
        session = Session(ReplaySource(recording, min(t, recording.end), playing=False))
        app = CockpitApp(session, appearance=appearance)
        async with app.run_test(size=size) as pilot:
            await until(pilot, lambda: bool(session.revision))
            await drawn(pilot)
            yield pilot, session


async def drawn(pilot: Pilot[object]) -> str:
    main(pilot.app).frame()
    await at_rest(pilot)
    return text_of(main(pilot.app).query_one(VerdictStrip))


async def sought(pilot: Pilot[object], session: Session, t: float) -> str:
    seen = session.revision
    session.source.seek(t)  # type: ignore[attr-defined]
    await until(pilot, lambda: session.revision > seen)
    return await drawn(pilot)


def test_without_a_comparison_there_is_no_strip() -> None:
    assert strip(context_of([])) is None
    assert strip(context_of([event for event in under_load() if event.t <= 30])) is None


def test_before_the_first_block_it_shows_the_change_the_wait_and_the_rate_so_far() -> None:
    lines = lines_of(at(EARLY))
    assert lines[0].startswith("─ verdict A MinSpareServers 5 → 30, MaxSpareServer")
    assert lines[0].endswith("vs segment 1 ─")
    assert lines[1].startswith("?  inconclusive so far")
    assert lines[1].endswith("············ 35 s more to be sure")
    assert [line.split()[1] for line in lines[2:7]] == ["rate", "p50", "p99", "CPU/request", "memory"]
    assert "inconclusive so far: rate ×" in lines_of(at(EARLY + 4))[1]


def test_after_one_block_it_shows_what_is_likely_and_how_long_to_be_sure() -> None:
    lines = lines_of(at(TENTATIVE))
    assert lines[1].startswith("▲? likely better: rate ×3.8")
    assert "━━━" in lines[1] and lines[1].endswith(" s more to be sure")
    assert lines[2].startswith("▲? rate        ×3.8") and lines[2].count("○") == 1, "no interval yet"
    assert not any("(" in line for line in lines[2:])


def test_the_bar_grows_and_the_seconds_shrink_until_the_verdict_is_there() -> None:
    seen = [at(t) for t in range(64, 116, 3)]
    waits = [one.progress for one in seen if one.progress]
    assert len(waits) > 8
    assert all(later.passed >= earlier.passed for earlier, later in itertools.pairwise(waits))
    assert waits[0] == VerdictProgress(0, 35) and waits[-1].left < 10
    assert seen[0].verdict.outcome is Outcome.INCONCLUSIVE
    assert seen[-1].verdict.outcome is Outcome.BETTER and seen[-1].progress is None


def test_a_verdict_is_its_word_with_a_row_per_effect_and_a_named_scale() -> None:
    lines = lines_of(at(OVER))
    assert lines[1].startswith("▲  better, at least: rate ≥ ×3.2")
    assert [line[:3].strip() + " " + line.split()[1] for line in lines[2:7]] == [
        *("▲ rate", "? p50", "▲ p99", "? CPU/request", "? memory")
    ]
    zero = lines[2].index("│")
    assert all(line[zero] in "│┼├┤" for line in lines[2:7]), "each has the zero line"
    assert lines[7].startswith("55 s before, 55 s after")
    assert lines[7].endswith("5× better ▸")


def test_the_compact_form_has_the_word_in_its_title_and_the_headline_first() -> None:
    lines = lines_of(at(OVER), NARROW)
    assert lines[0].startswith("─ ▲  better, at least  A MinSpareServers 5 → 30")
    assert [line.split()[1] for line in lines[1:]] == ["rate", "p50", "p99"]
    assert lines_of(at(TENTATIVE), NARROW)[0].endswith(" s more ─")
    assert [line.split()[1] for line in lines_of(at(OVER), (78, 2))[1:]] == ["rate"]


def test_without_a_host_there_are_no_rows_for_it() -> None:
    lines = lines_of(at(200, changed_under_load()))
    assert len(lines) == 6
    assert [line.split()[1] for line in lines[2:5]] == ["rate", "p50", "p99"]
    assert full_height(at(200, changed_under_load())) == 6
    growing = at(64.0, changed_under_load())
    assert not growing.verdict.effects
    assert full_height(growing) == 6, "as high before there are values"


def test_several_hosts_are_named_the_changed_one_first() -> None:
    names = ("app1.cpu.per_request", "app1.memory.used", "web1.cpu.per_request")
    found = showing(judged(EQUIVALENT, *(effect(name, EQUIVALENT, 0.0) for name in ("rate", "p50", *names))))
    assert [" ".join(line.split()[1:3]) for line in lines_of(found)[4:7]] == [
        *("web1 CPU/request", "app1 CPU/request", "app1 memory")
    ]


def test_failed_requests_have_a_row_if_they_decide() -> None:
    errors = effect("errors", WORSE, 0.02, relative=False)
    found = showing(judged(WORSE, effect("rate", BETTER, 0.2), errors))
    assert [line.split()[1] for line in lines_of(found)[2:4]] == ["rate", "errors"]
    assert lines_of(found)[1].startswith("▼  worse: errors +2.0 points")
    same = effect("errors", EQUIVALENT, 0.0, relative=False)
    assert len(showing(judged(BETTER, effect("rate", BETTER, 0.2), same)).effects) == 1


def test_a_verdict_that_another_metric_decides_names_it_and_keeps_its_row() -> None:
    names = ("rate", "p50", "p99", "web1.memory.used")
    others = [effect(name, EQUIVALENT, 0.0) for name in names]
    found = showing(judged(BETTER, *others, effect("web1.cpu.per_request", BETTER, -0.2)))
    assert lines_of(found)[1].startswith("▲  better: web1 CPU/request −20%")
    assert [line.split()[1] for line in lines_of(found, NARROW)[1:]] == ["rate", "p50", "CPU/request"]


def test_each_word_has_a_mark_of_its_own_and_a_role() -> None:
    invalid = Objection(cause=Cause.HOST_LOST, side=Period.AFTER, host="web1", seconds=9)
    drawn = [
        strip_words(showing(judged(outcome, effect("rate", outcome, 0.2), objection=objection)))
        for outcome, objection in (
            *((BETTER, None), (WORSE, None), (EQUIVALENT, None), (INCONCLUSIVE, None), (INVALID, invalid)),
        )
    ]
    words = plain(drawn)
    assert [line[0] for line in words] == ["▲", "▼", "≈", "?", "!"]
    assert [line.split()[1].rstrip(":") for line in words] == [str(outcome) for outcome in Outcome]
    assert [line[0][1] for line in drawn] == ["better", "worse", "strong", "strong", "strong"]
    assert words[2].endswith("rate within 3%")
    assert words[4].endswith("invalid: web1 was lost for 9 s after")


@pytest.mark.parametrize("cause", list(Cause))
def test_an_invalid_comparison_has_its_reason_and_what_to_do_next(cause: Cause) -> None:
    objection = Objection(cause=cause, side=Period.AFTER, share=0.59, seconds=9, host="web1", detail="c 20 → 40")
    found = showing(judged(INVALID, effect("rate", INVALID, 0.2, objection=objection), objection=objection))
    lines = lines_of(found)
    assert lines[1].startswith("!  invalid: ")
    assert "; next: " in " ".join(lines[1:3]) and not lines[2].endswith("…")
    assert lines[3].startswith("!  rate +20%  ") and "○" in lines[3], "the bare change, without an interval"
    short = lines_of(found, NARROW)
    assert len(short) == compact_height(found, 3) == 3
    assert short[0].startswith("─ !  invalid  A MaxSpareServers 10 → 30")
    assert "; next: " in " ".join(short[1:]) and not short[2].endswith("…")


def test_other_load_is_invalid_and_names_the_way_out() -> None:
    lines = lines_of(at(99, Scenario().events(99)))
    assert " ".join(lines[1].split()) == "! invalid: the load differs: concurrency 20 → 40; next: choose a"
    assert lines[2] == "   segment of the same load and press b"


def test_an_inconclusive_row_that_is_over_names_its_detectable_effect_and_the_next_step() -> None:
    found = showing(judged(INCONCLUSIVE, effect("rate", INCONCLUSIVE, 0.04, 0.09, detectable=0.08)))
    assert lines_of(found)[1] == "?  inconclusive: rate +4.0%, detectable from 8%"
    assert lines_of(found)[2] == "   next: rounds (r)"
    assert "next: rounds (r)" in lines_of(found, NARROW)[0]


def test_while_load_runs_more_of_it_is_a_way_to_a_verdict_too() -> None:
    open_one = judged(INCONCLUSIVE, effect("rate", INCONCLUSIVE, 0.04, 0.09), growing=True, needs=math.inf)
    assert showing(open_one).next == "leave the load running, or rounds (r)"
    assert showing(msgspec.structs.replace(open_one, values=(4, 8))).next == "rounds (r)"
    assert showing(msgspec.structs.replace(open_one, needs=20.0)).next == ""


def test_a_study_that_runs_has_rounds_of_its_own() -> None:
    context = context_of([event for event in flipped((1000.0, 1300.0), 12) if event.t <= 22])
    study = StudyState(study=Study(plan=LoadPlan(url="http://a/")), fingerprint="", steps=2)
    found = strip(dataclasses.replace(context, state=msgspec.structs.replace(context.state, study=study)))
    assert found is not None and found.next == ""


def test_likely_is_not_shown_once_waiting_is_over() -> None:
    leaning = effect("rate", INCONCLUSIVE, 0.04, 0.09, likely=BETTER)
    assert "likely" not in lines_of(showing(judged(INCONCLUSIVE, leaning)))[1]
    assert "likely better" in lines_of(showing(judged(INCONCLUSIVE, leaning, growing=True, needs=20.0)))[1]


def test_an_interval_with_a_single_end_names_the_measured_change_first_while_it_is_inconclusive() -> None:
    waiting = effect("rate", INCONCLUSIVE, 2.7, low=0.0, high=None)
    assert lines_of(showing(judged(INCONCLUSIVE, waiting)))[3].startswith("?  rate ×3.7 (≥ +0.0%)  ")
    decided = effect("rate", BETTER, 2.7, low=2.0, high=None)
    assert lines_of(showing(judged(BETTER, decided)))[2].startswith("▲  rate ≥ ×3.0 (measured ×3.7)  ")


def test_a_baseline_too_short_for_any_verdict_asks_for_rounds() -> None:
    events = [event for event in flipped((1000.0, 1300.0), 12) if event.t <= 22]
    lines = lines_of(at(22, events))
    assert lines[1].startswith("?  inconclusive: too short: 5 s before")
    assert lines[2] == "   next: rounds (r)"


def test_an_extended_run_shows_how_long_the_wait_takes_at_most() -> None:
    events = [event for event in changed_under_load() if event.t <= 90]
    assert lines_of(at(90, events))[-1].startswith("55 s before, 20 s after")
    extended = ev.RunExtended(t=90.0, run=1, until=243.0, awaited="verdict", change="A")
    assert lines_of(at(90, [*events, extended]))[-1].startswith("55 s before, 20 of ≤ 180 s after")
    at_once = [event for event in events if event.t <= 64]
    early = msgspec.structs.replace(extended, t=64.0)
    assert lines_of(at(64, [*at_once, early]))[-1].startswith("55 s before, 0 of ≤ 180 s after")
    other = ev.RunExtended(t=90.0, run=1, until=243.0, awaited="verdict", change="B")
    assert "≤" not in lines_of(at(90, [*events, other]))[-1]


def test_rounds_show_where_they_are_before_the_first_verdict() -> None:
    lines = lines_of(at(1000, list(rounds_of(1.3, 2))))
    assert lines[0].startswith("─ verdict A MaxSpareServe") and "round 3 of 12: " in lines[0]
    assert lines[0].rstrip(" ─").endswith("values, setting up")
    begun = [event for event in rounds_of(1.3, 2) if event.t <= 45]
    assert "round 1 of 12: " in lines_of(at(45, begun))[0]
    assert lines_of(at(45, begun))[1].startswith("?  inconclusive so far")


def test_rounds_have_one_strip_with_their_effect_and_the_time_left_at_most() -> None:
    events = list(rounds_of(1.05, 4, drift=0.02))
    early = lines_of(at(1000, list(rounds_of(1.3, 2))))
    assert early[1].startswith("▲? likely better: rate +3") and early[1].endswith(" at most 8 min more")
    assert early[2].startswith("▲? rate +3") and "○" in early[2] and early[-1].startswith("2 rounds")
    lines = lines_of(at(1000, events))
    assert "round 5 of 12: " in lines[0] and "min more" in lines[1]
    assert lines[-1].startswith("4 rounds")
    t = events[-1].t
    ended = ev.RoundsEnded(t=t + 1, number=1, outcome="verdict", active="after")
    lines = lines_of(at(2000, [*rounds_of(1.3, 5), ended]))
    assert lines[0].endswith("5 of 12 rounds ─") and lines[1].startswith("▲  better: rate +")


def test_a_growing_verdict_is_computed_once_per_block(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[float] = []

    def counted(state: State, *more: object) -> Verdict:
        calls.append(state.t)
        return segment_verdict(state, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(segment_verdicts, "segment_verdict", counted)
    kept = SegmentVerdicts()
    state = fold_all(event for event in under_load() if event.t <= EARLY)
    blocks = set()
    for event in (event for event in under_load() if EARLY < event.t <= 84.0):
        state = fold(state, event)
        found = strip(DrawContext(state=state, verdicts=kept))
        assert found is not None
        blocks.add(found.verdict.values[1])
    assert blocks == {0, 1, 2, 3}
    assert len(calls) <= len(blocks) + 1


def test_what_it_shows_changes_once_per_second_at_most() -> None:
    kept = SegmentVerdicts()
    state = fold_all(event for event in under_load() if event.t <= EARLY)
    shown: dict[int, set[tuple[str, ...]]] = {}
    for event in (event for event in under_load() if EARLY < event.t <= 84.0):
        state = fold(state, event)
        found = strip(DrawContext(state=state, verdicts=kept))
        assert found is not None
        shown.setdefault(int(state.segments[-1].last + 0.25), set()).add(tuple(plain(strip_lines(found, *WIDE))))
    assert len(shown) > 15
    assert max(len(pictures) for pictures in shown.values()) == 1


def test_no_information_is_by_colour_alone() -> None:
    better = showing(judged(BETTER, effect("rate", BETTER, 0.2), effect("p99", WORSE, 0.2)))
    worse = showing(judged(WORSE, effect("rate", WORSE, -0.2), effect("p99", BETTER, -0.2)))
    assert lines_of(better) != lines_of(worse)
    assert [line[0] for line in lines_of(better)[1:4]] == ["▲", "▲", "▼"]
    bars = [plain([strip_lines(at(t), *WIDE)[1]])[0].count("━") for t in (75.0, 85.0)]
    assert bars[0] < bars[1], "the part that is done has a glyph of its own"
