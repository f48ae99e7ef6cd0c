"""Each state of a session has a look of its own, and says what to do next."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cockpit.model import events as ev
from cockpit.session.controls import Mode, PlaybackPhase, PlaybackStatus
from cockpit.tui.charts.throughput import Throughput, state_line
from cockpit.tui.hosts.host_pane import host_pane
from cockpit.tui.tiny_screen import TinyScreen
from tests.tui.driving import context_of, driven, plain, shown
from tests.tui.scenario import Scenario, session_started


def said(second: float, width: int) -> str:
    return "".join(text for text, _ in state_line(context_of(Scenario().events(second)), width))


@pytest.mark.parametrize("width", [120, 80, 60, 45])
def test_a_saturated_generator_says_what_that_means_and_what_to_do(width: int) -> None:
    text = said(62.0, width)
    assert text.startswith("the generator")
    assert "load (-)" in text
    assert len(text) <= width


def test_a_run_that_goes_on_well_says_nothing() -> None:
    assert said(55.0, 120) == ""


async def test_between_runs_the_screen_tells_how_the_last_one_ended_and_what_comes_next() -> None:
    async with driven(Scenario().events(99), size=(200, 50)) as (pilot, _):
        assert "segment 4 completed: 3.69k responses, 68 failed   space again   t tune   c compare" in shown(pilot)
    async with driven(Scenario().events(82), size=(200, 50)) as (pilot, _):
        # Both rows of the run, before and after the change within it.
        assert "segments 2–3 stopped: 45.5k responses   space again   t tune   c compare" in shown(pilot)


def test_the_end_of_a_recording_says_where_to_go_from_there() -> None:
    context = replace(
        context_of(Scenario().events(99)),
        mode=Mode.REPLAY,
        status=PlaybackStatus(PlaybackPhase.END),
        extent=(0.0, 99.0),
        position=99.0,
    )
    text = "".join(text for text, _ in state_line(context, 100))
    assert text == "end of the recording   Home start   [ ] markers   ← → step   q quit"


def test_a_host_that_connects_says_what_to_expect_and_after_a_while_what_to_look_at() -> None:
    begun = [session_started(), ev.HostChanged(t=0.1, host="web1", condition="connecting")]
    early, late = context_of(begun), context_of([*begun, ev.Note(t=25.1, text="still here")])
    for context, words in ((early, "you can start the load already"), (late, "no answer for 25 s")):
        (host,) = context.hosts
        told = " ".join(line.strip() for line in plain(host_pane(host, context, 50, 20).lines))
        assert "connecting …" in told
        assert words in told


def test_a_lost_host_says_since_when_why_and_that_it_is_tried_again() -> None:
    context = context_of(Scenario(2).events(62.0))
    told = " ".join(plain(host_pane(context.hosts[1], context, 60, 20).lines))
    assert " LOST  12 s ago: connection reset by peer" in told
    assert "tried again every few seconds; metrics of 00:00:49" in told


def test_an_empty_session_says_so() -> None:
    text = "\n".join(plain(Throughput().draw(context_of([session_started()]), 100, 14)))
    assert "nothing has been sent yet" in text


def test_a_tiny_screen_says_that_the_generator_is_saturated_in_whole_words() -> None:
    for width in (40, 60):
        text = "\n".join(plain(TinyScreen().draw(context_of(Scenario().events(62.5)), width, 11)))
        assert " GENERATOR SATURATED " in text
        assert "…" not in text.split("GENERATOR")[1].split("\n")[0]
    roomy = " ".join(plain(TinyScreen().draw(context_of(Scenario().events(62.5)), 60, 14)))
    assert "the server may be faster than measured" in " ".join(roomy.split())
