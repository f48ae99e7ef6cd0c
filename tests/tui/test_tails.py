"""Tail panes: the newest lines of a command, as a terminal would show them."""

from __future__ import annotations

import pytest

from cockpit.model.events import AccessCounts
from cockpit.model.histogram import Histogram
from cockpit.model.host_state import TailLine, TailPane
from cockpit.tui.hosts.host_pane import host_pane
from cockpit.tui.hosts.tails import as_printed, draw_tail
from tests.tui.driving import context_of, plain
from tests.tui.host_details import detail, detail_context
from tests.tui.topology import topology


def test_tail_shows_newest_lines_as_terminal_would() -> None:
    lines = detail(detail_context("tail"), width=110, height=8)
    assert "tail -F /var/log/apache2/error.log" in lines[0]
    assert "skipped 120 lines" in lines[0]
    assert lines[-1] == "[mpm_prefork:notice]    [pid 2011] AH00171: Graceful restart requested·, second 59"
    assert "設定ファイル" in lines[-2]
    assert "AH00959: disabling" in lines[-3], "without colours"


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("a\tb", "a       b"),
        ("\x1b[1;31mred\x1b[0m plain", "red plain"),
        ("\x1b]0;title\x07\x1b[2J", "·]0;title··[2J"),
        ("line\r", "line"),
        ("\u202eevil", "·evil"),
        ("[bold]no markup[/bold]", "[bold]no markup[/bold]"),
    ],
)
def test_server_lines_are_sanitized(raw: str, shown: str) -> None:
    assert as_printed(raw) == shown


def test_long_line_is_cut_with_ellipsis() -> None:
    lines = plain(draw_tail(tail_of("x" * 1_000_000), 0, None, 40, 3).lines)
    assert lines[1] == "x" * 39 + "…"


def tail_of(*texts: str, **values: object) -> TailPane:
    lines = tuple(TailLine(float(at), text) for at, text in enumerate(texts))
    return TailPane(command="vmstat 1", lines=lines, condition="running", **values)  # type: ignore[arg-type]


def test_scrolled_tail_is_paused_and_counts_newer_lines() -> None:
    paused = tail_of(*(f"line {n}" for n in range(20)))
    current = tail_of(*(f"line {n}" for n in range(32)))
    lines = plain(draw_tail(current, 5, paused, 60, 6).lines)
    assert "paused at 00:00:19, 12 newer" in lines[0]
    assert lines[1:] == [f"line {n}" for n in range(10, 15)]
    assert draw_tail(current, 5, paused, 60, 6).most == 15
    assert plain(draw_tail(current, 99, paused, 60, 6).lines)[1] == "line 0"


def test_newer_lines_beyond_buffer_are_lower_bound() -> None:
    current = TailPane(command="vmstat 1", lines=tuple(TailLine(100.0 + n, "new") for n in range(30)))
    assert "30+ newer" in plain(draw_tail(current, 1, tail_of("old"), 60, 6).lines)[0]


@pytest.mark.parametrize(
    ("tail", "expected"),
    [
        (TailPane(command="x"), "not running yet"),
        (TailPane(command="x", condition="running"), "no lines yet"),
        (TailPane(command="x", condition="ended", detail="exit 127: not found"), "ended: exit 127: not found"),
    ],
)
def test_empty_tail_shows_reason(tail: TailPane, expected: str) -> None:
    assert expected in "\n".join(plain(draw_tail(tail, 0, None, 60, 6).lines))


def test_tails_are_below_host_without_duplicates() -> None:
    context = context_of(topology())
    text = "\n".join(plain(host_pane(context.hosts[0], context, 100, 40).lines))
    assert "─ tail -F" in text
    assert "─ sar -b 1" in text
    chosen = detail_context("tail", 1)
    text = "\n".join(plain(host_pane(chosen.hosts[0], chosen, 100, 40).lines))
    assert text.count("─ sar -b 1") == 1


def counts(t: float, statuses: dict[int, int], **values: object) -> AccessCounts:
    lines = sum(statuses.values())
    return AccessCounts(t=t, host="web1", tail=0, seconds=1.0, **{"lines": lines, "statuses": statuses, **values})  # type: ignore[arg-type]


def test_access_log_rates_are_above_lines() -> None:
    seconds = (
        counts(1, {200: 2990, 404: 6}, lookups=3000, hits=2900),
        counts(2, {200: 3010, 502: 2}, lookups=3000, hits=3000, latency=Histogram.of([3_000_000] * 99 + [90_000_000])),
    )
    log = tail_of("one", "two", counts=seconds, skipped=6000)
    lines = plain(draw_tail(log, 0, None, 100, 5).lines)
    assert "skipped" not in lines[0]
    assert lines[1] == "3k req/s  hits 98.3%  502 1/s  p50 3.0 ms  p99 3.0 ms  200 3k/s  404 3/s"
    assert lines[2:4] == ["one", "two"]
    narrow = plain(draw_tail(log, 0, None, 30, 5).lines)
    assert narrow[1] == "3k req/s  hits 98.3%  502 1/s"


def test_other_busy_log_shows_lines_per_second() -> None:
    log = tail_of("one", counts=(counts(1, {}, lines=1200),))
    assert plain(draw_tail(log, 0, None, 60, 4).lines)[1] == "1.2k lines/s"


def test_duration_below_log_resolution_is_not_zero() -> None:
    log = tail_of("one", counts=(counts(1, {200: 5}, latency=Histogram.of([0] * 5)),))
    assert "p50 < 1 ms  p99 < 1 ms" in plain(draw_tail(log, 0, None, 80, 4).lines)[1]
