"""Text of each pane for a given state, and the message that suggests the next step."""

import dataclasses
from itertools import product

import pytest
from msgspec.structs import replace

from cockpit.model import events as ev
from cockpit.model.generators import WorkerLost
from cockpit.model.histogram import Histogram
from cockpit.model.host.samples import ProcessCounters
from cockpit.recording.reader import Recording
from cockpit.session.controls import Action, Mode, PlaybackPhase, PlaybackStatus, immediate
from cockpit.tui import status_lines
from cockpit.tui.charts.latency import Latency
from cockpit.tui.charts.throughput import Throughput, state_line
from cockpit.tui.draw_context import DrawContext
from cockpit.tui.hosts.host_pane import host_pane
from cockpit.tui.hosts.panes import HostPanes, pane_heights
from cockpit.tui.hosts.processes import shown_command, start_as_ps
from cockpit.tui.runs.details import percentile_lines
from cockpit.tui.runs.strip_lines import VerdictStrip
from cockpit.tui.runs.table import Runs, spawned_per_second
from cockpit.tui.status_lines import TopLine
from cockpit.tui.terminal.lines import Lines
from cockpit.tui.terminal.styled_line import centred, clip
from cockpit.tui.tiny_screen import TinyScreen
from tests.tui.driving import context_of, plain
from tests.tui.scenario import WALL, Scenario, plan, session_started
from tests.tui.screens import RECORDINGS


def pane_text(widget: Lines, context: DrawContext, width: int, height: int) -> str:
    return "\n".join(plain(widget.draw(context, width, height)))


def test_chart_marks_changes_gaps_saturation_and_errors() -> None:
    lines = plain(Throughput().draw(context_of(Scenario().events(76), span=2.0), 60, 14))
    place = next(at for at, line in enumerate(lines) if "└" in line)
    signs, axis = lines[1], lines[place]
    # The charts start at 4 s.
    assert signs.index("A") == 6 + 36 // 2
    assert signs.index("B") == 6 + 66 // 2
    assert axis.index("▒") == 6 + 56 // 2
    assert axis[6 + 56 // 2 + 2] == "─"
    body = lines[2:place]
    assert {line[6 + 16] for line in body if len(line) > 6 + 16} <= {" ", "┊"}, "36 s: between two runs"
    assert any(line[6 + 10] == "⣿" for line in body)
    assert "saturated" in lines[0]
    lines = plain(Throughput().draw(context_of(Scenario().events(99)), 90, 14))
    assert "x failed" in lines[0]
    assert "x" in next(line for line in lines if "└" in line)
    events: list[ev.AnyEvent] = [session_started(), ev.RunStarted(t=1.0, run=1, plan=plan())]
    events += [ev.Tick(t=1 + k / 10, start=0.9 + k / 10, run=1, worker=0) for k in range(1, 40)]
    assert "⣀" in pane_text(Throughput(), context_of(events), 60, 12)
    assert "no responses in this time range" in pane_text(Latency(), context_of(events), 60, 12)


def test_runs_table_shows_warnings_baseline_and_spawn_rate() -> None:
    rows = plain(Runs().draw(context_of(Scenario().events(99)), 120, 12))
    assert [row[-9:].split()[-2:] for row in rows[2:6]] == [["base"], ["2", "notes"], ["1", "note"], ["1", "note"]]
    assert "≠ load" in rows[5], "40 connections vs 20"
    with Recording(RECORDINGS / "spare-servers.cockpit") as recording:
        recorded = plain(Runs().draw(context_of(tuple(recording.events())), 118, 14))
    assert recorded[4].split()[-2:] == ["1", "note"]
    rows = plain(Runs().draw(context_of(Scenario().events(99), baseline=2), 120, 12))
    assert "base" in rows[3]
    assert rows[2].split()[-1] in ("short", "gen-sat")
    context = context_of(Scenario().events(79))
    before, after = (spawned_per_second(segment) for segment in context.state.segments[:2])
    assert before == pytest.approx(8.4, abs=0.5)
    assert after == pytest.approx(1.2, abs=0.3)
    started = context_of([session_started(), ev.RunStarted(t=1.0, run=1, plan=plan())])
    assert spawned_per_second(started.state.segments[0]) is None
    context = context_of(Scenario().events(40))
    segment = replace(
        context.state.segments[0],
        losses=(WorkerLost(t=0.0, run=1, worker=1, detail="killed"),),
        reason="failed",
        detail="refused",
    )
    failed = DrawContext(state=replace(context.state, segments=(segment,)))
    assert "2 notes" in pane_text(Runs(), failed, 100, 10)
    text = pane_text(Runs(), failed, 100, 10)
    assert "incomplete: worker 1 lost: killed" in text
    assert "run failed: refused" in text


def test_histogram_and_percentiles_of_latency() -> None:
    context = context_of(Scenario().events(40), latency="histogram")
    lines = plain(Latency().draw(context, 80, 12))
    assert "latency service, segment 1" in lines[0]
    counts = [int(line.split("%")[0].split()[-2]) for line in lines[1:] if "%" in line]
    assert sum(counts) == context.state.segments[0].counts.service.count
    (segment,) = context.state.segments
    assert [line.split()[0] for line in plain(percentile_lines(segment, 80, 12))[2:]] == [
        *("p50", "p66", "p75", "p80", "p90", "p95", "p98", "p99", "p99.9", "max")
    ]
    assert [line.split()[0] for line in plain(percentile_lines(segment, 80, 6))[2:]] == ["p50", "p90", "p99", "max"]
    assert "connect" in pane_text(VerdictStrip(), context, 80, 12)
    replayed = dataclasses.replace(context_of(Scenario().events(20)), extent=(0.0, 90.0))
    assert "connect" not in pane_text(VerdictStrip(), replayed, 80, 12), "a recording has the parts late"
    counts = replace(segment.counts, tls=Histogram.of([3_000_000]), tls_resumed=Histogram.of([1_000_000] * 2))
    secure = replace(segment, counts=counts)
    wide, narrow = (plain(percentile_lines(secure, width, 4))[1].split(" ms") for width in (100, 60))
    assert [name.strip() for name in wide[2:]] == ["connect", "TLS resumed", "TLS full", ""]
    assert [name.strip() for name in narrow[2:]] == ["connect", ""]


def test_gauges_of_percentiles_grow_to_the_maximum() -> None:
    (segment,) = context_of(Scenario().events(40)).state.segments
    lines = plain(percentile_lines(segment, 80, 8, parts=False))[2:]
    shares = [line.count("━") for line in lines]
    assert shares == sorted(shares) and shares[0] < shares[-1] and lines[-1].count("─") == 0
    assert len({len(line) for line in lines}) == 1


def test_cut_text_in_the_middle_ends_with_an_ellipsis() -> None:
    lines = plain(centred([("first", ""), ("a question of several lines of text", "")], 20, 2))
    assert [line.strip() for line in lines] == ["first", "a question of …"]


def test_lines_per_host_fit_pane() -> None:
    for hosts, height in product(range(1, 12), (1, 5, 20, 38, 60)):
        shares = pane_heights(height, hosts, hosts - 1)
        assert len(shares) == hosts
        assert sum(shares) <= max(height, hosts)


def test_processes_sorted_by_cpu_start_with_busiest() -> None:
    lines = plain(HostPanes().draw(context_of(Scenario().events(30.6), order="cpu", folded=False), 60, 24))
    head = next(at for at, line in enumerate(lines) if "▾%CPU" in line)
    shares = [float(line.lstrip("│+ ").split()[2]) for line in lines[head + 1 : head + 8]]
    assert shares == sorted(shares, reverse=True)


def test_start_time_and_command_as_ps_prints_them() -> None:
    assert start_as_ps(WALL - 3600, WALL) == "09:00"
    assert start_as_ps(WALL + 40 * 86400, WALL + 50 * 86400) == "Feb10"
    assert start_as_ps(WALL - 400 * 86400, WALL) == "2024"
    dead = ProcessCounters(9, 1, 5, "Z", "apache2", 0, 0, 1, 0, 0, 0, "")
    assert shown_command(dead) == "[apache2] <defunct>"


def test_top_line_shows_mode_clock_recording_and_generator() -> None:
    state = context_of(Scenario().events(61.5)).state
    paused = PlaybackStatus(PlaybackPhase.PAUSED)
    context = DrawContext(state=state, mode=Mode.REPLAY, status=paused, recording="s.cockpit")
    text = pane_text(TopLine(), context, 118, 1)
    for words in ("REPLAY PAUSED", "00:01:01", "● rec", "gen 99%", "GENERATOR SATURATED"):
        assert words in text
    context = DrawContext(state=state, mode=Mode.LIVE, recording="s.cockpit", recording_error="disk full")
    for width in (118, 40):
        assert "NOT RECORDING: disk full" in pane_text(TopLine(), context, width, 1)
    back = dataclasses.replace(context, mode=Mode.LOOKING_BACK, status=paused, recording_error="")
    for width in range(70, 90):
        assert "LOOKING BACK PAUSED · End: back to live" in pane_text(TopLine(), back, width, 1)


def test_saturation_of_many_workers_stays_in_the_top_line(monkeypatch: pytest.MonkeyPatch) -> None:
    context = dataclasses.replace(context_of(Scenario().events(61.5)), recording="s.cockpit")
    assert context.second is not None
    second = replace(context.second, workers=tuple(0.97 - at / 100 for at in range(8)), pause=0.3)
    monkeypatch.setattr(DrawContext, "second", second)
    assert "gen 90–97% · lag" in pane_text(TopLine(), context, 160, 1)
    for width in range(60, 160, 4):
        assert "GENERATOR SATURATED" in pane_text(TopLine(), context, width, 1)


def test_failures_are_in_the_top_line_of_a_saturated_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    context = dataclasses.replace(context_of(Scenario().events(61.5)), recording="s.cockpit")
    assert context.second is not None
    monkeypatch.setattr(DrawContext, "second", replace(context.second, saturated=True))
    words = " TARGET DOWN since 0:08 "
    monkeypatch.setattr(status_lines, "alert", lambda _, room: clip(((words, "alarm"),), room))
    for width in range(70, 160, 6):
        text = pane_text(TopLine(), context, width, 1)
        assert "GENERATOR SATURATED" in text and words.strip() in text


def test_multiline_question_is_shown_as_single_text() -> None:
    started = replace(session_started(), question="Is it dear?\nEach reply\n  reads the file.")
    assert "“Is it dear? Each reply reads the file.”" in pane_text(Throughput(), context_of([started]), 90, 14)


TOGGLE = Action("toggle", "start/stop", immediate(str))


def state_text(second: float, width: int) -> str:
    context = dataclasses.replace(context_of(Scenario().events(second)), actions=(TOGGLE,))
    return "".join(text for text, _ in state_line(context, width))


def test_state_line_suggests_next_step() -> None:
    for width in (120, 80, 60, 45):
        text = state_text(62.0, width)
        assert text.startswith("the generator")
        assert "load (-)" in text
        assert len(text) <= width
    assert state_text(55.0, 120).startswith("responses 13.7k  200 100%"), "nothing is wrong"
    next_keys = "   space again   t tune   c compare"
    assert state_text(99, 120) == f"segment 4 completed: 3.69k responses, 68 failed{next_keys}"
    # Both segments of the run, before and after its change.
    assert state_text(82, 120) == f"segments 2–3 stopped: 45.5k responses{next_keys}"
    context = dataclasses.replace(
        context_of(Scenario().events(99)),
        mode=Mode.REPLAY,
        status=PlaybackStatus(PlaybackPhase.END),
        extent=(0.0, 99.0),
        position=99.0,
    )
    text = "".join(text for text, _ in state_line(context, 100))
    assert text == "end of the recording   Home start   [ ] markers   ← → step   q quit"


def test_connecting_and_lost_hosts_show_time_and_reason() -> None:
    begun = [session_started(), ev.HostChanged(t=0.1, host="web1", condition="connecting")]
    early, late = context_of(begun), context_of([*begun, ev.Note(t=25.1, text="still here")])
    for context, expected in ((early, "you can start the load already"), (late, "no answer for 25 s")):
        (host,) = context.hosts
        text = " ".join(line.strip() for line in plain(host_pane(host, context, 50, 20).lines))
        assert "connecting …" in text
        assert expected in text
    context = context_of(Scenario(2).events(62.0))
    text = " ".join(plain(host_pane(context.hosts[1], context, 60, 20).lines))
    assert " LOST " in text and "12 s ago: connection reset by peer" in text
    assert "retrying every few seconds; metrics of 00:00:49" in text


def test_tiny_screen_shows_generator_saturation_in_full() -> None:
    for width in (40, 60):
        text = "\n".join(plain(TinyScreen().draw(context_of(Scenario().events(62.5)), width, 11)))
        assert " GENERATOR SATURATED " in text
        assert "…" not in text.split("GENERATOR")[1].split("\n")[0]
    roomy = " ".join(plain(TinyScreen().draw(context_of(Scenario().events(62.5)), 60, 14)))
    assert "the server may be faster than measured" in " ".join(roomy.split())
