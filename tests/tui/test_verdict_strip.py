"""The verdict strip: outcome, change, effects and remaining seconds, live and at any time of a recording."""

import dataclasses
import itertools
import math
from collections.abc import Sequence
from functools import cache

import msgspec
import pytest
from textual.pilot import Pilot

from cockpit.analysis.verdicts import segments as segment_verdicts
from cockpit.analysis.verdicts.outcome import Cause, Design, Effect, Objection, Outcome, Period, Verdict
from cockpit.analysis.verdicts.segments import SegmentVerdicts, segment_verdict
from cockpit.model import events as ev
from cockpit.model.fold.fold import fold, fold_all
from cockpit.model.load.plan import LoadPlan
from cockpit.model.state import Segment, State, StudyState
from cockpit.model.study import Study
from cockpit.recording.reader import Recording
from cockpit.session.loop import Session
from cockpit.tui.draw_context import DrawContext
from cockpit.tui.runs.strip import StripContents, VerdictProgress, strip
from cockpit.tui.runs.strip_lines import VerdictStrip, strip_lines, strip_words
from cockpit.tui.terminal.lines import Lines
from cockpit.tui.tiny_screen import TinyScreen
from tests.analysis.test_rounds import rounds_of
from tests.analysis.test_segment_verdicts import toggled
from tests.tui.driving import context_of, main, plain, press, reset_screen, text_of, until, wait_idle
from tests.tui.scenario import Scenario
from tests.tui.screens import RECORDINGS, replayed_app
from tests.tui.test_verdicts import changed_under_load

BETTER, WORSE, EQUIVALENT = Outcome.BETTER, Outcome.WORSE, Outcome.EQUIVALENT
INCONCLUSIVE, INVALID = Outcome.INCONCLUSIVE, Outcome.INVALID
WIDE, NARROW = (66, 8), (78, 4)
# Seconds of the recorded session: the segment of the change starts at 60 s and has enough blocks 25 s later.
EARLY, TENTATIVE, FINAL = 64.0, 75.0, 200.0


@cache
def under_load_events() -> tuple[ev.AnyEvent, ...]:
    with Recording(RECORDINGS / "under-load.cockpit") as recording:
        return tuple(recording.events())


def strip_at(t: float, events: Sequence[ev.AnyEvent] | None = None) -> StripContents:
    return strip(context_of([event for event in events or under_load_events() if event.t <= t]))


class FixedVerdicts(SegmentVerdicts):
    """The same verdict for all segments."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__()
        self._verdict = verdict

    def verdict(self, state: State, row: Segment, base: Segment) -> Verdict:
        return self._verdict


def strip_of(verdict: Verdict) -> StripContents:
    """Return the strip of a change under load on web1, with this verdict."""
    context = context_of(changed_under_load())
    return strip(dataclasses.replace(context, verdicts=FixedVerdicts(verdict)))


def effect(name: str, outcome: Outcome, change: float, half: float = 0.01, **more: object) -> Effect:
    values = {"headline": name == "rate", "low": change - half, "high": change + half, "margin": 0.03, **more}
    return Effect(name=name, outcome=outcome, change=change, **values)  # type: ignore[arg-type]


def make_verdict(outcome: Outcome, *effects: Effect, **more: object) -> Verdict:
    return Verdict(outcome=outcome, design=Design.SWITCH, effects=effects, values=(6, 8), block=5, **more)  # type: ignore[arg-type]


def lines_of(shown: StripContents, size: tuple[int, int] = WIDE) -> list[str]:
    lines = plain(strip_lines(shown, *size))
    assert all(len(line) <= size[0] for line in lines)
    assert len(lines) <= size[1]
    return [line.rstrip() for line in lines]


def metrics(lines: Sequence[str]) -> list[str]:
    """Return the name of the metric in each row."""
    return [line.split()[1] for line in lines]


def test_strip_grows_until_verdict() -> None:
    assert strip(context_of([])) is None
    assert strip(context_of([event for event in under_load_events() if event.t <= 30])) is None, "no comparison"
    lines = lines_of(strip_at(EARLY))
    assert lines[0].startswith("─ verdict A MinSpareServers 5 → 30, MaxSpareServer")
    assert lines[0].endswith("vs segment 1 ─")
    assert lines[1].startswith("?  inconclusive so far")
    assert lines[1].endswith("············ 35 s more to be sure")
    assert metrics(lines[2:7]) == ["rate", "p50", "p99", "CPU/request", "memory"]
    assert "inconclusive so far: rate ×" in lines_of(strip_at(EARLY + 4))[1]
    lines = lines_of(strip_at(TENTATIVE))
    assert lines[1].startswith("▲? likely better: rate ×3.8")
    assert "━━━" in lines[1] and lines[1].endswith(" s more to be sure")
    assert lines[2].startswith("▲? rate        ×3.8") and lines[2].count("○") == 1, "no interval yet"
    assert not any("(" in line for line in lines[2:])
    later = lines_of(strip_at(TENTATIVE + 10))[1]
    assert lines[1].count("━") < later.count("━"), "the completed part has its own glyph"
    strips = [strip_at(t) for t in range(64, 116, 3)]
    progress = [shown.progress for shown in strips if shown.progress]
    assert len(progress) > 8
    assert all(later.counted >= earlier.counted for earlier, later in itertools.pairwise(progress))
    assert progress[0] == VerdictProgress(0, 35) and progress[-1].left < 10
    assert strips[0].verdict.outcome is INCONCLUSIVE
    assert strips[-1].verdict.outcome is BETTER and strips[-1].progress is None


def test_verdict_has_outcome_effect_rows_and_scale() -> None:
    lines = lines_of(strip_at(FINAL))
    assert lines[1].startswith("▲  better, at least  rate ≥ ×3.2")
    assert [line[:3].strip() for line in lines[2:7]] == ["▲", "?", "▲", "?", "?"]
    assert metrics(lines[2:7]) == ["rate", "p50", "p99", "CPU/request", "memory"]
    zero = lines[2].index("│")
    assert all(line[zero] in "│┼├┤" for line in lines[2:7]), "each row has the zero line"
    assert lines[7].startswith("55 s before, 40 s after")
    assert lines[7].endswith("5× better ▸")
    compact = lines_of(strip_at(FINAL), NARROW)
    assert compact[0].startswith("─ ▲  better, at least  A MinSpareServers 5 → 30")
    assert metrics(compact[1:]) == ["rate", "p50", "p99"]
    assert lines_of(strip_at(TENTATIVE), NARROW)[0].endswith(" s more ─")
    assert metrics(lines_of(strip_at(FINAL), (78, 2))[1:]) == ["rate"]


def test_rows_are_those_of_host_and_of_decisive_metrics() -> None:
    shown = strip_at(200, changed_under_load())
    assert len(lines_of(shown)) == 7
    assert metrics(lines_of(shown)[2:5]) == ["rate", "p50", "p99"], "no host, no rows of the host"
    growing = strip_at(64.0, changed_under_load())
    assert not growing.verdict.effects
    assert len(lines_of(growing)) == 7, "same height before the first values"
    names = ("app1.cpu.per_request", "app1.memory.used", "web1.cpu.per_request")
    found = strip_of(make_verdict(EQUIVALENT, *(effect(name, EQUIVALENT, 0.0) for name in ("rate", "p50", *names))))
    assert [" ".join(line.split()[1:3]) for line in lines_of(found, (66, 9))[4:7]] == [
        *("web1 CPU/request", "app1 CPU/request", "app1 memory")
    ], "the changed host is first"
    errors = effect("errors", WORSE, 0.02, relative=False)
    found = strip_of(make_verdict(WORSE, effect("rate", BETTER, 0.2), errors))
    assert metrics(lines_of(found)[2:4]) == ["rate", "errors"]
    assert lines_of(found)[1].startswith("▼  worse  errors +2.0 points")
    same = effect("errors", EQUIVALENT, 0.0, relative=False)
    assert len(strip_of(make_verdict(BETTER, effect("rate", BETTER, 0.2), same)).effects) == 1
    others = [effect(name, EQUIVALENT, 0.0) for name in ("rate", "p50", "p99", "web1.memory.used")]
    found = strip_of(make_verdict(BETTER, *others, effect("web1.cpu.per_request", BETTER, -0.2)))
    assert lines_of(found)[1].startswith("▲  better  web1 CPU/request −20%")
    assert metrics(lines_of(found, NARROW)[1:]) == ["rate", "p50", "CPU/request"]


def test_each_outcome_has_own_sign_and_role() -> None:
    lost = Objection(cause=Cause.HOST_LOST, side=Period.AFTER, host="web1", seconds=9)
    outcomes = ((BETTER, None), (WORSE, None), (EQUIVALENT, None), (INCONCLUSIVE, None), (INVALID, lost))
    verdicts = [make_verdict(outcome, effect("rate", outcome, 0.2), objection=cause) for outcome, cause in outcomes]
    lines = [strip_words(strip_of(verdict)) for verdict in verdicts]
    texts = plain(lines)
    assert [text[0] for text in texts] == ["▲", "▼", "≈", "?", "!"]
    assert [text.split()[1].rstrip(":") for text in texts] == [str(outcome) for outcome in Outcome]
    assert [line[0][1] for line in lines] == ["better", "worse", "strong", "strong", "strong"]
    assert texts[2].endswith("rate within 3%")
    assert texts[4].endswith("invalid: web1 was lost for 9 s after")
    mixed = lines_of(strip_of(make_verdict(BETTER, effect("rate", BETTER, 0.2), effect("p99", WORSE, 0.2))))
    assert [line[0] for line in mixed[1:4]] == ["▲", "▲", "▼"], "not by colour alone"


@pytest.mark.parametrize("cause", list(Cause))
def test_invalid_comparison_shows_reason_and_next_step(cause: Cause) -> None:
    objection = Objection(cause=cause, side=Period.AFTER, share=0.59, seconds=9, host="web1", detail="c 20 → 40")
    found = strip_of(make_verdict(INVALID, effect("rate", INVALID, 0.2, objection=objection), objection=objection))
    lines = lines_of(found)
    assert lines[1].startswith("!  invalid: ")
    assert "; next: " in " ".join(" ".join(lines[1:3]).split()) and not lines[2].endswith("…")
    assert lines[3].startswith("!  rate +20%  ") and "○" in lines[3], "the change without an interval"
    short = lines_of(found, NARROW)
    assert len(short) <= 4
    assert short[0].startswith("─ !  invalid  A MaxSpareServers 10 → 30")
    assert "; next: " in " ".join(" ".join(short[1:]).split()) and not short[2].endswith("…")


def test_next_step_depends_on_verdict() -> None:
    lines = lines_of(strip_at(99, Scenario().events(99)))
    assert " ".join(lines[1].split()) == "! invalid: the load differs: concurrency 20 → 40; next: choose a"
    assert lines[2] == "   segment of the same load and press b"
    found = strip_of(make_verdict(INCONCLUSIVE, effect("rate", INCONCLUSIVE, 0.04, 0.09, detectable=0.08)))
    assert lines_of(found)[1] == "?  inconclusive: rate +4.0%, detectable from 8%"
    assert lines_of(found)[2] == "   next: rounds (r)"
    assert "next: rounds (r)" in lines_of(found, NARROW)[0]
    growing = make_verdict(INCONCLUSIVE, effect("rate", INCONCLUSIVE, 0.04, 0.09), growing=True, needs=math.inf)
    assert strip_of(growing).next == "leave the load running, or rounds (r)"
    assert strip_of(msgspec.structs.replace(growing, values=(4, 8))).next == "rounds (r)"
    assert strip_of(msgspec.structs.replace(growing, needs=20.0)).next == ""
    events = [event for event in toggled((1000.0, 1300.0), 12) if event.t <= 22]
    lines = lines_of(strip_at(22, events))
    assert lines[1].startswith("?  inconclusive: too short: 5 s before")
    assert lines[2] == "   next: rounds (r)"
    context = context_of(events)
    study = StudyState(study=Study(plan=LoadPlan(url="http://a/")), fingerprint="", steps=2)
    shown = strip(dataclasses.replace(context, state=msgspec.structs.replace(context.state, study=study)))
    assert shown is not None and shown.next == "", "a study runs its own rounds"


def test_likely_outcome_and_one_sided_interval() -> None:
    leaning = effect("rate", INCONCLUSIVE, 0.04, 0.09, likely=BETTER)
    assert "likely" not in lines_of(strip_of(make_verdict(INCONCLUSIVE, leaning)))[1]
    assert "likely better" in lines_of(strip_of(make_verdict(INCONCLUSIVE, leaning, growing=True, needs=20.0)))[1]
    rate, p50 = effect("rate", INCONCLUSIVE, 0.3, 0.9, likely=BETTER), effect("p50", BETTER, -0.6, 0.2)
    lines = lines_of(strip_of(make_verdict(BETTER, rate, p50, growing=True)))
    assert lines[1].startswith("▲  better  p50")
    assert any(line.startswith("▲? rate") for line in lines)
    waiting = effect("rate", INCONCLUSIVE, 2.7, low=0.0, high=None)
    assert lines_of(strip_of(make_verdict(INCONCLUSIVE, waiting)))[3].startswith("?  rate ×3.7 (≥ ×1.00)  ")
    decided = effect("rate", BETTER, 2.7, low=2.0, high=None)
    assert lines_of(strip_of(make_verdict(BETTER, decided)))[2].startswith("▲  rate ≥ ×3.0 (measured ×3.7)  ")


def test_extended_run_shows_maximum_wait() -> None:
    events = [event for event in changed_under_load() if event.t <= 90]
    assert lines_of(strip_at(90, events))[-2].startswith("55 s before, 20 s after")
    extended = ev.RunExtended(t=90.0, run=1, until=243.0, awaited="verdict", change="A")
    assert lines_of(strip_at(90, [*events, extended]))[-2].startswith("55 s before, 20 of ≤ 180 s after")
    at_once = [event for event in events if event.t <= 64]
    early = msgspec.structs.replace(extended, t=64.0)
    assert lines_of(strip_at(64, [*at_once, early]))[-2].startswith("55 s before, 0 of ≤ 180 s after")
    other = ev.RunExtended(t=90.0, run=1, until=243.0, awaited="verdict", change="B")
    assert "≤" not in lines_of(strip_at(90, [*events, other]))[-2]


def test_rounds_show_progress_effect_and_maximum_time_left() -> None:
    begun = [event for event in rounds_of(1.3, 2) if event.t <= 45]
    assert "round 1 of 12: " in lines_of(strip_at(45, begun))[0]
    assert lines_of(strip_at(45, begun))[1].startswith("?  inconclusive so far")
    early = lines_of(strip_at(1000, list(rounds_of(1.3, 2))))
    assert early[0].startswith("─ verdict A MaxSpareServe") and "round 3 of 12: " in early[0]
    assert early[0].rstrip(" ─").endswith("values, setting up")
    assert early[1].startswith("▲? likely better: rate +3") and early[1].endswith(" at most 8 min more")
    assert early[2].startswith("▲? rate +3") and "○" in early[2] and early[-1].startswith("2 rounds")
    events = list(rounds_of(1.05, 4, drift=0.02))
    lines = lines_of(strip_at(1000, events))
    assert "round 5 of 12: " in lines[0] and "min more" in lines[1]
    assert lines[-1].startswith("4 rounds")
    ended = ev.RoundsEnded(t=events[-1].t + 1, number=1, outcome="verdict", active="after")
    lines = lines_of(strip_at(2000, [*rounds_of(1.3, 5), ended]))
    assert lines[0].endswith("5 of 12 rounds ─") and lines[1].startswith("▲  better  rate +")


def test_growing_verdict_is_computed_per_block_and_drawn_per_second(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[float] = []

    def counting_verdict(state: State, *more: object) -> Verdict:
        calls.append(state.t)
        return segment_verdict(state, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(segment_verdicts, "segment_verdict", counting_verdict)
    verdicts = SegmentVerdicts()
    state = fold_all(event for event in under_load_events() if event.t <= EARLY)
    blocks: set[int] = set()
    shown: dict[int, set[tuple[str, ...]]] = {}
    for event in (event for event in under_load_events() if EARLY < event.t <= 84.0):
        state = fold(state, event)
        found = strip(DrawContext(state=state, verdicts=verdicts))
        blocks.add(found.verdict.values[1])
        shown.setdefault(int(state.segments[-1].last + 0.25), set()).add(tuple(plain(strip_lines(found, *WIDE))))
    assert blocks == {0, 1, 2, 3}
    assert len(calls) <= len(blocks) + 1
    assert len(shown) > 15
    assert max(len(pictures) for pictures in shown.values()) == 1


UNDER_LOAD, SPARE_SERVERS = RECORDINGS / "under-load.cockpit", RECORDINGS / "spare-servers.cockpit"


async def strip_text(pilot: Pilot[object]) -> str:
    main(pilot.app).frame()
    await wait_idle(pilot)
    return text_of(main(pilot.app).query_one(VerdictStrip))


async def seek(pilot: Pilot[object], session: Session, t: float) -> str:
    revision = session.revision
    session.source.seek(t)  # type: ignore[attr-defined]
    await until(pilot, lambda: session.revision > revision)
    return await strip_text(pilot)


async def test_replay_shows_strip_at_position() -> None:
    async with replayed_app(UNDER_LOAD, FINAL) as (pilot, session):
        for size, height in (((120, 40), 8), ((80, 24), 4)):
            await pilot.resize_terminal(*size)
            over = await strip_text(pilot)
            assert "▲  better, at least" in over
            assert pilot.app.screen.query_one(VerdictStrip).size.height == height
            assert "▲? likely better" in await seek(pilot, session, TENTATIVE)
            assert "?  inconclusive so far" in await seek(pilot, session, EARLY)
            places = [widget.region for widget in pilot.app.screen.query(Lines)]
            assert "─ segment 1 baseline" in await seek(pilot, session, 30.0), "it has no comparison"
            assert await seek(pilot, session, 1.0) and "─ segment 1" in await strip_text(pilot)
            assert places == [widget.region for widget in pilot.app.screen.query(Lines)], "no pane moves by itself"
            assert await seek(pilot, session, FINAL) == over
        assert "discarded" not in over
        await press(pilot, "c")
        await press(pilot, "m")
        await until(pilot, lambda: "discarded after" in text_of(pilot.app.screen.query_one("#text")))
        await reset_screen(pilot)
        await pilot.resize_terminal(60, 15)
        await wait_idle(pilot)
        assert "verdict  ▲  better, at least  rate ≥ ×3.2" in text_of(main(pilot.app).query_one(TinyScreen))


async def test_recorded_runs_are_compared() -> None:
    async with replayed_app(SPARE_SERVERS) as (pilot, _):
        text = await strip_text(pilot)
        assert "▲  better  rate ×" in text
        assert text.startswith("╭─ verdict MinSpareServers 5 → "), "settings that differ from segment 1, not 'again'"
        await press(pilot, "up", "up", "up")
        assert (await strip_text(pilot)).startswith("╭─ verdict again ─"), "no setting differs"
