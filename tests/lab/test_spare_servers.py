"""Study S1 on the real screen: load Apache, change three knobs under load, compare spawned processes, replay."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace
from textual.pilot import Pilot
from textual.widgets import Static

from cockpit.analysis.words.timeline import segment_label
from cockpit.model.clock import Clock
from cockpit.model.load.plan import ThinkTime
from cockpit.model.state import Segment, State
from cockpit.profiles.reader import read_profile
from cockpit.recording.reader import Recording
from cockpit.recording.writer import RecordingWriter
from cockpit.session.live import LiveSource
from cockpit.session.loop import Session
from cockpit.session.replay import ReplaySource
from cockpit.tui.app import CockpitApp
from cockpit.tui.charts.markers import bands_of
from cockpit.tui.charts.throughput import Throughput
from cockpit.tui.runs.strip_lines import VerdictStrip
from cockpit.tui.runs.table import Runs
from tests.lab.cpus import generator_cpu
from tests.lab.lab import Host
from tests.lab.profile_runs import PROFILES

UNTUNED = {
    "MinSpareServers": "5",
    "MaxSpareServers": "10",
    "MaxConnectionsPerChild": "100",
    "MaxRequestWorkers": "150",
    "StartServers": "5",
    "MPM": "prefork",
}
# A think time leaves CPU to other processes: less than 400 requests/s.
THINK_TIME = ThinkTime(distribution="exponential", seconds=0.05)
# Requests before and after the change: children that end after 100 requests must outnumber those of a reload.
BEFORE, AFTER = 2000, 6000


async def until(session: Session, condition: Callable[[State], bool]) -> State:
    return await asyncio.wait_for(session.until(condition), 280.0)


async def raise_spare_servers(pilot: Pilot[None], session: Session) -> None:
    """Type the values in the panel, check the diff, and apply it."""
    await pilot.press("t")
    await pilot.pause()
    for value in ("30", "60", "10000"):
        await pilot.press(*value, "down")
    await apply(pilot, session)
    state = await until(session, lambda state: bool(state.changes and state.changes[-1].outcome))
    assert state.changes[-1].outcome == "applied", state.changes[-1].detail


async def apply(pilot: Pilot[None], session: Session) -> None:
    """Check the diff in the panel, then apply it."""
    await pilot.press("enter")
    panel = pilot.app.screen
    plan, text = panel.query_one("#plan"), ""
    async with asyncio.timeout(120):
        # The status and the diff are drawn one after the other.
        while "Enter again" not in str(panel.query_one("#status", Static).content) or "cost: graceful" not in text:
            await pilot.pause(0.05)
            text = "\n".join(plan.render_line(y).text.strip() for y in range(plan.size.height))
    assert all(f"{sign}MinSpareServers" in text.replace(" ", "") for sign in "-+")
    assert not session.state.changes
    await pilot.press("enter")


def spawned_per_request(segment: Segment) -> float:
    return segment.hosts["web1"].spawned / segment.counts.completed


def shown(app: CockpitApp, widget: type[Runs] | type[Throughput] | type[VerdictStrip]) -> str:
    """Return the text of a widget."""
    found = app.screen.query_one(widget)
    return "\n".join(found.render_line(line).text for line in range(found.size.height))


def segment_rows(table: str) -> list[list[str]]:
    return [line.split() for line in table.splitlines() if re.match(r"│[ ▸] *\d+ ", line)]


async def test_spare_servers_are_raised_in_the_panel_under_load(fresh_web1: Host, tmp_path: Path) -> None:
    file, profile = tmp_path / "s1.cockpit", read_profile(PROFILES / "spare-servers.toml")
    load = {"url": fresh_web1.url, "requests": None, "duration": 600.0, "cpus": (generator_cpu(),)}
    profile = replace(profile, plan=replace(profile.plan, think_time=THINK_TIME, **load))  # type: ignore[arg-type]
    source = LiveSource(profile, Clock(), ssh_config=fresh_web1.ssh_config)
    session = Session(source, RecordingWriter(file))
    app = CockpitApp(session)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(session, lambda state: all(knob.known for knob in state.knobs.values()) and bool(state.knobs))
        assert {name: knob.value for name, knob in session.state.knobs.items()} == UNTUNED
        await pilot.press("space")
        await until(session, lambda state: bool(state.segments) and state.segments[0].counts.completed >= BEFORE)
        await raise_spare_servers(pilot, session)
        await until(
            session, lambda state: state.segments[-1].number == 2 and state.segments[-1].counts.completed >= AFTER
        )
        await pilot.press("space")
        await until(session, lambda state: state.running is None)
        await until(session, lambda state: (state.hosts["web1"].seen or 0.0) >= (state.segments[-1].end or 0.0))
        await pilot.pause()
        app.screen.frame()  # type: ignore[attr-defined]
        table = shown(app, Runs)
        assert "A MinSp" in table and "A MinSpareServers" in shown(app, VerdictStrip)
        # The band starts before the second of the letter; if both are in one cell, only the letter is shown.
        (band,), (change,) = bands_of(session.state), session.state.changes
        assert band.requested == change.begun < band.effect == change.active_since
        assert re.search("[ ╌━]A", shown(app, Throughput))
    configuration = fresh_web1.run("grep -v '#' /etc/apache2/mods-available/mpm_prefork.conf").stdout.split()
    assert {"30", "60", "10000"} < set(configuration)
    live = session.state
    first, second = live.segments
    assert (
        segment_label(second).startswith("A MinSpareServers 5 → 30") and not first.counts.failed + second.counts.failed
    )
    # Each child served 100 requests before, 10000 after.
    assert spawned_per_request(first) > 0.005 and spawned_per_request(second) < spawned_per_request(first)

    with Recording(file) as recording:
        session = Session(ReplaySource(recording, recording.end, playing=False))
        app = CockpitApp(session)
        async with app.run_test(size=(120, 40)) as pilot:
            state = await until(session, lambda state: state.ended)
            await pilot.pause()
            assert state == live
            app.screen.frame()  # type: ignore[attr-defined]
            # The notes below the segments have a line less: it is that of the position.
            assert segment_rows(shown(app, Runs)) == segment_rows(table)
