"""What each pane says of a given state."""

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


def drawn(
    widget: TopLine | Throughput | Latency | Runs | HostPanes, context: DrawContext, width: int, height: int
) -> str:
    return "\n".join(plain(widget.draw(context, width, height)))


def test_the_chart_has_letters_at_changes_gaps_and_doubtful_seconds() -> None:
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


def test_a_second_with_errors_is_marked() -> None:
    lines = plain(Throughput().draw(context_of(Scenario().events(99)), 90, 14))
    assert "x failed" in lines[0]
    assert "x" in next(line for line in lines if "└" in line)


def test_a_run_without_a_reply_is_drawn_as_zero_not_as_a_gap() -> None:
    events: list[ev.AnyEvent] = [session_started(), ev.RunStarted(t=1.0, run=1, plan=plan())]
    events += [ev.Tick(t=1 + k / 10, start=0.9 + k / 10, run=1, worker=0) for k in range(1, 40)]
    assert "⣀" in drawn(Throughput(), context_of(events), 60, 12)


def test_every_row_says_what_is_doubtful_about_it() -> None:
    rows = plain(Runs().draw(context_of(Scenario().events(99)), 120, 12))
    assert [row.split()[-1] for row in rows[2:6]] == ["base", "gen-sat+", "stop", "short"]
    assert "≠ load" in rows[5], "40 connections are not 20"


def test_spawned_are_those_of_all_hosts_over_the_time_of_the_row() -> None:
    context = context_of(Scenario().events(79))
    before, after = (spawned_per_second(segment) for segment in context.state.segments[:2])
    assert before == pytest.approx(8.4, abs=0.5)
    assert after == pytest.approx(1.2, abs=0.3)
    assert (
        spawned_per_second(context_of([session_started(), ev.RunStarted(t=1.0, run=1, plan=plan())]).state.segments[0])
        is None
    )


def test_the_chosen_row_is_in_sight_and_told_in_full() -> None:
    ticks = [ev.RunStarted(t=float(run), run=run, plan=plan()) for run in range(1, 31)]
    context = context_of([session_started(), *ticks], segment=3)
    text = drawn(Runs(), context, 100, 10)
    assert "▸ 3" in text
    assert not any(line.startswith((" 30", "▸30")) for line in text.splitlines())
    newest = drawn(Runs(), context_of([session_started(), *ticks]), 100, 10)
    assert "▸30" in newest


def test_another_baseline_changes_what_is_compared() -> None:
    rows = plain(Runs().draw(context_of(Scenario().events(99), baseline=2), 120, 12))
    assert "base" in rows[3]
    assert rows[2].split()[-1] in ("short", "gen-sat")


def test_latency_says_service_and_counts_every_reply() -> None:
    context = context_of(Scenario().events(40), latency="histogram")
    lines = plain(Latency().draw(context, 80, 12))
    assert "latency service, segment 1" in lines[0]
    counts = [int(line.split("%")[0].split()[-2]) for line in lines[1:] if "%" in line]
    assert sum(counts) == context.state.segments[0].counts.service.count


def test_percentiles_show_as_many_as_fit_with_the_parts_of_the_time() -> None:
    context = context_of(Scenario().events(40), latency="percentiles")
    assert [line.split()[0] for line in plain(Latency().draw(context, 80, 12))[2:]] == [
        *("50", "66", "75", "80", "90", "95", "98", "99", "99.9", "100")
    ]
    assert [line.split()[0] for line in plain(Latency().draw(context, 80, 6))[2:]] == ["50", "90", "99", "100"]
    assert "connect" in drawn(Latency(), context, 80, 12)


def test_a_host_pane_names_its_figures_as_sar_free_and_ps_do() -> None:
    text = drawn(HostPanes(), context_of(Scenario().events(30.6), order="pid", folded=False), 60, 24)
    for words in ("us ", "sy ", "st ", "id ", "used ", "avail ", "tps ", "rtps ", "bread/s ", "bwrtn/s "):
        assert words in text
    assert "PID STAT  %CPU   VSZ   RSS START COMMAND" in text
    assert "s ago · probe 3 ms" in text
    assert any(line.startswith("+") for line in text.splitlines()), "a process that was not there a sample ago"
    assert "[apache2] <defunct>" in text


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (ev.HostChanged(t=9.0, host="web1", condition="connecting", detail="looking up web1"), "connecting"),
        (ev.HostChanged(t=9.0, host="web1", condition="refused", detail="its key has changed"), "REFUSED  its key"),
        (ev.HostChanged(t=9.0, host="web1", condition="lost", detail="timed out"), "LOST  0 s ago: timed out"),
    ],
)
def test_a_host_that_is_not_up_says_why_in_words(event: ev.HostChanged, words: str) -> None:
    context = context_of([session_started(), event])
    assert words in drawn(HostPanes(), context, 60, 20)
    assert words.split()[0] in "\n".join(plain([host_line(context.hosts[0], context, 60)]))


def test_a_lost_host_keeps_its_last_figures_labelled_with_their_time() -> None:
    text = drawn(HostPanes(), context_of(Scenario(2).events(62.5), host=1), 60, 40)
    assert "LOST  12 s ago: connection reset by peer" in text
    assert "metrics of 00:00:49" in text
    assert "s ago · probe" not in text.split("web2")[1]


def test_more_hosts_than_fit_become_lines_and_none_is_missing() -> None:
    text = drawn(HostPanes(), context_of(Scenario(8).events(30), host=3), 60, 30)
    assert all(f"web{n}" in text for n in range(1, 9))
    assert "▸ web4" in text


@pytest.mark.parametrize("hosts", range(1, 12))
@pytest.mark.parametrize("height", [1, 5, 20, 38, 60])
def test_lines_shared_out_among_hosts_never_exceed_the_pane_where_it_can_hold_them(hosts: int, height: int) -> None:
    shares = share_out(height, hosts, hosts - 1)
    assert len(shares) == hosts
    assert sum(shares) <= max(height, hosts)


def test_hostile_titles_reach_the_screen_as_harmless_text() -> None:
    text = drawn(HostPanes(), context_of(Scenario(hostile=True).events(30)), 110, 30)
    assert "[red]not markup[/red]" in text
    assert "日本語のタイトル" in text
    assert all(char.isprintable() or char == "\n" for char in text)
    assert "\u202e" not in text


def test_processes_sorted_by_cpu_begin_with_the_busiest() -> None:
    lines = plain(HostPanes().draw(context_of(Scenario().events(30.6), order="cpu", folded=False), 60, 24))
    head = next(at for at, line in enumerate(lines) if "▾%CPU" in line)
    shares = [float(line[1:].split()[2]) for line in lines[head + 1 : head + 8]]
    assert shares == sorted(shares, reverse=True)


def test_start_is_a_time_today_a_day_this_year_and_a_year_before() -> None:
    assert start_as_ps(WALL - 3600, WALL) == "09:00"
    assert start_as_ps(WALL + 40 * 86400, WALL + 50 * 86400) == "Feb10"
    assert start_as_ps(WALL - 400 * 86400, WALL) == "2024"


def test_a_process_without_a_command_line_stands_in_brackets() -> None:
    dead = ProcessCounters(9, 1, 5, "Z", "apache2", 0, 0, 1, 0, 0, 0, "")
    assert shown_command(dead) == "[apache2] <defunct>"


def test_the_top_line_says_mode_clock_recording_and_generator() -> None:
    context = context_of(Scenario().events(61.5))
    context = DrawContext(
        state=context.state, mode=Mode.REPLAY, status=PlaybackStatus(PlaybackPhase.PAUSED), recording="s.cockpit"
    )
    text = drawn(TopLine(), context, 118, 1)
    assert "REPLAY PAUSED" in text
    assert "00:01:01" in text
    assert "● rec" in text
    assert "gen 99 %" in text
    assert "GENERATOR SATURATED" in text


def test_a_recording_in_trouble_is_loud_even_where_little_else_fits() -> None:
    context = DrawContext(
        state=context_of(Scenario().events(61.5)).state, mode=Mode.LIVE, recording="s.cockpit", trouble="disk full"
    )
    assert "NOT RECORDING: disk full" in drawn(TopLine(), context, 118, 1)
    assert "NOT RECORDING: disk full" in drawn(TopLine(), context, 40, 1)


def test_a_partial_and_a_failed_row_say_so() -> None:
    context = context_of(Scenario().events(40))
    segment = replace(context.state.segments[0], partial="worker 1 lost: killed", reason="failed", detail="refused")
    text = drawn(Runs(), DrawContext(state=replace(context.state, segments=(segment,))), 100, 10)
    assert "failed+" in text
    assert "incomplete: worker 1 lost: killed" in text
    assert "run failed: refused" in text


def test_a_question_of_several_lines_is_shown_as_one_text() -> None:
    asked = replace(session_started(), question="Is it dear?\nEach reply\n  reads the file.")
    assert "“Is it dear? Each reply reads the file.”" in drawn(Throughput(), context_of([asked]), 90, 14)
