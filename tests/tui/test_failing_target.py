"""The recorded session of a server that stops, responds with 503 and is killed; the screen shows each failure."""

from __future__ import annotations

import pytest
from textual.pilot import Pilot

from cockpit.analysis.warnings import WarningKind, segment_warnings
from cockpit.model import events as ev
from cockpit.recording.reader import Recording
from cockpit.tui.banner import Banner
from cockpit.tui.charts.throughput import Throughput
from cockpit.tui.status_lines import TopLine
from tests import failure_recording
from tests.tui.driving import main, running_app, screen_text, text_of, wait_for_events, wait_idle
from tests.tui.scripted import ScriptedSource

SIZES = ((80, 24), (200, 50), (120, 40))


def recorded_events() -> list[ev.AnyEvent]:
    with Recording(failure_recording.TARGET) as recording:
        return list(recording.events())


async def play(pilot: Pilot[object], source: ScriptedSource, until: float) -> None:
    """Continue the session up to second `until`."""
    events = recorded_events()
    begun, ends = len(source.recorder.events), sum(event.t <= until for event in events)
    source.push(*events[begun:ends])
    await wait_for_events(pilot, source, ends)


async def pane_texts(pilot: Pilot[object], kind: type[Banner | Throughput | TopLine]) -> list[str]:
    """Return the text of a pane at each size."""
    found = []
    for size in SIZES:
        await pilot.resize_terminal(*size)
        await wait_idle(pilot)
        found.append(text_of(main(pilot.app).query_one(kind)))
    return found


async def test_stalled_failing_and_killed_server_is_shown() -> None:
    async with running_app() as (pilot, source):
        await play(pilot, source, 11.0)
        assert all("/0:40" in text for text in await pane_texts(pilot, TopLine))
        assert not "".join(await pane_texts(pilot, Banner))

        await play(pilot, source, 16.5)
        assert {text.strip() for text in await pane_texts(pilot, Banner)} == {
            "NO RESPONSE for 4.2 s   10 in flight, oldest 4.3 s"
        }
        assert all("■" in text for text in await pane_texts(pilot, Throughput))
        assert source.session.state.seconds[-1].stalled and source.session.state.seconds[-1].completed == 0

        await play(pilot, source, 20.0)
        assert not "".join(await pane_texts(pilot, Banner))
        segment = source.session.state.segments[-1]
        assert (segment.stalled, segment.counts.latency.max) == (pytest.approx(4.9, abs=0.1), pytest.approx(5, abs=0.1))
        [warning] = [found for found in segment_warnings(segment) if found.kind is WarningKind.STALLED]
        assert warning.values["seconds"] == segment.stalled
        assert "coordinated omission" in " ".join(screen_text(pilot).split())

        await play(pilot, source, 28.0)
        for text in await pane_texts(pilot, Banner):
            assert text.strip() == "x FAILING since 0:24   4.29k/s failed (100%): 503 9810", "it is not down"
        assert all("x" in text for text in await pane_texts(pilot, Throughput))

        await play(pilot, source, 36.0)
        for text in await pane_texts(pilot, Banner):
            assert text.strip() == "TARGET DOWN since 0:32   477/s failed (100%): 503 34380, refused 1087"
        for text in await pane_texts(pilot, Throughput):
            assert text.count("x") > 5 and " failed" in text

        await play(pilot, source, 60.0)
        ended = "x 37.5k of 126k failed (29.9%): 503 34380, refused 3130   last at 0:39"
        assert {" ".join(text.split()) for text in await pane_texts(pilot, Banner)} == {" ".join(ended.split())}
