"""Text of each pane for a given state."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.model import events as ev
from cockpit.model.hosts import ProcessCounters
from cockpit.session.controls import Mode, PlaybackPhase, PlaybackStatus
from cockpit.tui.charts.latency import Latency
from cockpit.tui.charts.throughput import Throughput
from cockpit.tui.draw_context import DrawContext
from cockpit.tui.hosts.panes import HostPanes, host_line, share_out
from cockpit.tui.hosts.processes import shown_command, start_as_ps
from cockpit.tui.runs.table import Runs, spawned_per_second
from cockpit.tui.status_lines import TopLine
from tests.tui.driving import context_of, plain
from tests.tui.scenario import WALL, Scenario, plan, session_started


def pane_text(
    widget: TopLine | Throughput | Latency | Runs | HostPanes, context: DrawContext, width: int, height: int
) -> str:
    return "\n".join(plain(widget.draw(context, width, height)))


def test_chart_marks_changes_gaps_and_saturated_seconds() -> None:
    lines = plain(Throughput().draw(context_of(Scenario().events(76)), 60, 14))
    place = next(at for at, line in enumerate(lines) if "└" in line)
    signs, axis = lines[1], lines[place]
    assert signs.index("A") == 7 + 40 // 2
    assert signs.index("B") == 7 + 70 // 2
    assert axis.index("▒") == 7 + 60 // 2
    assert axis[7 + 60 // 2 + 2] == "─"
    body = lines[2:place]
    assert {line[7 + 18] for line in body if len(line) > 7 + 18} <= {" ", "┊"}, "36 s: between two runs"
    assert any(line[7 + 10] == "⣿" for line in body)
    assert "saturated" in lines[0]


def test_seconds_with_errors_are_marked() -> None:
    lines = plain(Throughput().draw(context_of(Scenario().events(99)), 90, 14))
    assert "x failed" in lines[0]
    assert "x" in next(line for line in lines if "└" in line)


def test_run_without_responses_is_drawn_as_zero() -> None:
    events: list[ev.AnyEvent] = [session_started(), ev.RunStarted(t=1.0, run=1, plan=plan())]
    events += [ev.Tick(t=1 + k / 10, start=0.9 + k / 10, run=1, worker=0) for k in range(1, 40)]
    assert "⣀" in pane_text(Throughput(), context_of(events), 60, 12)


def test_runs_table_shows_segment_warnings() -> None:
    rows = plain(Runs().draw(context_of(Scenario().events(99)), 120, 12))
    assert [row.split()[-1] for row in rows[2:6]] == ["base", "gen-sat+", "stop", "short"]
    assert "≠ load" in rows[5], "40 connections vs 20"


def test_spawn_rate_is_per_second_of_segment() -> None:
    context = context_of(Scenario().events(79))
    before, after = (spawned_per_second(segment) for segment in context.state.segments[:2])
    assert before == pytest.approx(8.4, abs=0.5)
    assert after == pytest.approx(1.2, abs=0.3)
    assert (
        spawned_per_second(context_of([session_started(), ev.RunStarted(t=1.0, run=1, plan=plan())]).state.segments[0])
        is None
    )


def test_selected_segment_stays_visible() -> None:
    ticks = [ev.RunStarted(t=float(run), run=run, plan=plan()) for run in range(1, 31)]
    context = context_of([session_started(), *ticks], segment=3)
    text = pane_text(Runs(), context, 100, 10)
    assert "▸ 3" in text
    assert not any(line.startswith((" 30", "▸30")) for line in text.splitlines())
    newest = pane_text(Runs(), context_of([session_started(), *ticks]), 100, 10)
    assert "▸30" in newest


def test_other_baseline_changes_comparison() -> None:
    rows = plain(Runs().draw(context_of(Scenario().events(99), baseline=2), 120, 12))
    assert "base" in rows[3]
    assert rows[2].split()[-1] in ("short", "gen-sat")


def test_histogram_counts_every_response_by_service_time() -> None:
    context = context_of(Scenario().events(40), latency="histogram")
    lines = plain(Latency().draw(context, 80, 12))
    assert "latency service, segment 1" in lines[0]
    counts = [int(line.split("%")[0].split()[-2]) for line in lines[1:] if "%" in line]
    assert sum(counts) == context.state.segments[0].counts.service.count


def test_number_of_percentiles_depends_on_height() -> None:
    context = context_of(Scenario().events(40), latency="percentiles")
    assert [line.split()[0] for line in plain(Latency().draw(context, 80, 12))[2:]] == [
        *("50", "66", "75", "80", "90", "95", "98", "99", "99.9", "100")
    ]
    assert [line.split()[0] for line in plain(Latency().draw(context, 80, 6))[2:]] == ["50", "90", "99", "100"]
    assert "connect" in pane_text(Latency(), context, 80, 12)


def test_host_pane_uses_names_of_sar_free_and_ps() -> None:
    text = pane_text(HostPanes(), context_of(Scenario().events(30.6), order="pid", folded=False), 60, 24)
    for title in ("us ", "sy ", "st ", "id ", "used ", "avail ", "tps ", "rtps ", "bread/s ", "bwrtn/s "):
        assert title in text
    assert "PID STAT  %CPU   VSZ   RSS START COMMAND" in text
    assert "s ago · probe 3 ms" in text
    assert any(line.startswith("+") for line in text.splitlines()), "a process that was not in the previous sample"
    assert "[apache2] <defunct>" in text


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (ev.HostChanged(t=9.0, host="web1", condition="connecting", detail="looking up web1"), "connecting"),
        (ev.HostChanged(t=9.0, host="web1", condition="refused", detail="its key has changed"), "REFUSED  its key"),
        (ev.HostChanged(t=9.0, host="web1", condition="lost", detail="timed out"), "LOST  0 s ago: timed out"),
    ],
)
def test_host_not_up_shows_condition_and_reason(event: ev.HostChanged, expected: str) -> None:
    context = context_of([session_started(), event])
    assert expected in pane_text(HostPanes(), context, 60, 20)
    assert expected.split()[0] in "\n".join(plain([host_line(context.hosts[0], context, 60)]))


def test_lost_host_keeps_last_metrics_with_time() -> None:
    text = pane_text(HostPanes(), context_of(Scenario(2).events(62.5), host=1), 60, 40)
    assert "LOST  12 s ago: connection reset by peer" in text
    assert "metrics of 00:00:49" in text
    assert "s ago · probe" not in text.split("web2")[1]


def test_hosts_without_room_become_lines() -> None:
    text = pane_text(HostPanes(), context_of(Scenario(8).events(30), host=3), 60, 30)
    assert all(f"web{n}" in text for n in range(1, 9))
    assert "▸ web4" in text


@pytest.mark.parametrize("hosts", range(1, 12))
@pytest.mark.parametrize("height", [1, 5, 20, 38, 60])
def test_lines_per_host_fit_pane(hosts: int, height: int) -> None:
    shares = share_out(height, hosts, hosts - 1)
    assert len(shares) == hosts
    assert sum(shares) <= max(height, hosts)


def test_hostile_process_titles_are_sanitized() -> None:
    text = pane_text(HostPanes(), context_of(Scenario(hostile=True).events(30)), 110, 30)
    assert "[red]not markup[/red]" in text
    assert "日本語のタイトル" in text
    assert all(char.isprintable() or char == "\n" for char in text)
    assert "\u202e" not in text


def test_processes_sorted_by_cpu_start_with_busiest() -> None:
    lines = plain(HostPanes().draw(context_of(Scenario().events(30.6), order="cpu", folded=False), 60, 24))
    head = next(at for at, line in enumerate(lines) if "▾%CPU" in line)
    shares = [float(line[1:].split()[2]) for line in lines[head + 1 : head + 8]]
    assert shares == sorted(shares, reverse=True)


def test_start_time_format_depends_on_age() -> None:
    assert start_as_ps(WALL - 3600, WALL) == "09:00"
    assert start_as_ps(WALL + 40 * 86400, WALL + 50 * 86400) == "Feb10"
    assert start_as_ps(WALL - 400 * 86400, WALL) == "2024"


def test_process_without_command_line_is_in_brackets() -> None:
    dead = ProcessCounters(9, 1, 5, "Z", "apache2", 0, 0, 1, 0, 0, 0, "")
    assert shown_command(dead) == "[apache2] <defunct>"


def test_top_line_shows_mode_clock_recording_and_generator() -> None:
    context = context_of(Scenario().events(61.5))
    context = DrawContext(
        state=context.state, mode=Mode.REPLAY, status=PlaybackStatus(PlaybackPhase.PAUSED), recording="s.cockpit"
    )
    text = pane_text(TopLine(), context, 118, 1)
    assert "REPLAY PAUSED" in text
    assert "00:01:01" in text
    assert "● rec" in text
    assert "gen 99%" in text
    assert "GENERATOR SATURATED" in text


def test_recording_failure_is_shown_at_any_width() -> None:
    context = DrawContext(
        state=context_of(Scenario().events(61.5)).state,
        mode=Mode.LIVE,
        recording="s.cockpit",
        recording_error="disk full",
    )
    assert "NOT RECORDING: disk full" in pane_text(TopLine(), context, 118, 1)
    assert "NOT RECORDING: disk full" in pane_text(TopLine(), context, 40, 1)


def test_incomplete_and_failed_segment_is_labelled() -> None:
    context = context_of(Scenario().events(40))
    segment = replace(context.state.segments[0], partial="worker 1 lost: killed", reason="failed", detail="refused")
    text = pane_text(Runs(), DrawContext(state=replace(context.state, segments=(segment,))), 100, 10)
    assert "failed+" in text
    assert "incomplete: worker 1 lost: killed" in text
    assert "run failed: refused" in text


def test_multiline_question_is_shown_as_single_text() -> None:
    started = replace(session_started(), question="Is it dear?\nEach reply\n  reads the file.")
    assert "“Is it dear? Each reply reads the file.”" in pane_text(Throughput(), context_of([started]), 90, 14)
