"""Each state of a session has a message that suggests the next step."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cockpit.model import events as ev
from cockpit.session.controls import Mode, PlaybackPhase, PlaybackStatus
from cockpit.tui.charts.throughput import Throughput, state_line
from cockpit.tui.hosts.host_pane import host_pane
from cockpit.tui.tiny_screen import TinyScreen
from tests.tui.driving import context_of, plain, running_app, screen_text
from tests.tui.scenario import Scenario, session_started


def state_text(second: float, width: int) -> str:
    return "".join(text for text, _ in state_line(context_of(Scenario().events(second)), width))


@pytest.mark.parametrize("width", [120, 80, 60, 45])
def test_saturated_generator_suggests_less_load(width: int) -> None:
    text = state_text(62.0, width)
    assert text.startswith("the generator")
    assert "load (-)" in text
    assert len(text) <= width


def test_healthy_run_has_no_message() -> None:
    assert state_text(55.0, 120) == ""


async def test_ended_run_shows_summary_and_next_keys() -> None:
    async with running_app(Scenario().events(99), size=(200, 50)) as (pilot, _):
        assert "segment 4 completed: 3.69k responses, 68 failed   space again   t tune   c compare" in screen_text(
            pilot
        )
    async with running_app(Scenario().events(82), size=(200, 50)) as (pilot, _):
        # Both segments of the run, before and after its change.
        assert "segments 2–3 stopped: 45.5k responses   space again   t tune   c compare" in screen_text(pilot)


def test_end_of_recording_lists_navigation_keys() -> None:
    context = replace(
        context_of(Scenario().events(99)),
        mode=Mode.REPLAY,
        status=PlaybackStatus(PlaybackPhase.END),
        extent=(0.0, 99.0),
        position=99.0,
    )
    text = "".join(text for text, _ in state_line(context, 100))
    assert text == "end of the recording   Home start   [ ] markers   ← → step   q quit"


def test_connecting_host_shows_hint_then_wait_time() -> None:
    begun = [session_started(), ev.HostChanged(t=0.1, host="web1", condition="connecting")]
    early, late = context_of(begun), context_of([*begun, ev.Note(t=25.1, text="still here")])
    for context, expected in ((early, "you can start the load already"), (late, "no answer for 25 s")):
        (host,) = context.hosts
        text = " ".join(line.strip() for line in plain(host_pane(host, context, 50, 20).lines))
        assert "connecting …" in text
        assert expected in text


def test_lost_host_shows_time_reason_and_retry() -> None:
    context = context_of(Scenario(2).events(62.0))
    text = " ".join(plain(host_pane(context.hosts[1], context, 60, 20).lines))
    assert " LOST  12 s ago: connection reset by peer" in text
    assert "retrying every few seconds; metrics of 00:00:49" in text


def test_empty_session_shows_placeholder() -> None:
    text = "\n".join(plain(Throughput().draw(context_of([session_started()]), 100, 14)))
    assert "No requests sent yet" in text


def test_tiny_screen_shows_generator_saturation_in_full() -> None:
    for width in (40, 60):
        text = "\n".join(plain(TinyScreen().draw(context_of(Scenario().events(62.5)), width, 11)))
        assert " GENERATOR SATURATED " in text
        assert "…" not in text.split("GENERATOR")[1].split("\n")[0]
    roomy = " ".join(plain(TinyScreen().draw(context_of(Scenario().events(62.5)), 60, 14)))
    assert "the server may be faster than measured" in " ".join(roomy.split())
