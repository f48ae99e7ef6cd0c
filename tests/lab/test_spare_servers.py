"""Study S1 on the real screen: load Apache, change three knobs, compare spawned processes, replay the recording."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace
from textual.pilot import Pilot
from textual.widgets import Static

from cockpit.analysis.outcome import Cause, Outcome
from cockpit.analysis.segment_verdicts import segment_verdict
from cockpit.analysis.words import method_lines, verdict_line
from cockpit.model.clock import Clock
from cockpit.model.load import ThinkTime
from cockpit.model.state import Segment, State
from cockpit.profiles.profile import Profile
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

PROFILE = Path(__file__).parents[2] / "profiles" / "spare-servers.toml"
TIMEOUT = 600.0


def profile_for(web1: Host) -> Profile:
    """Return the shipped profile with 5000 requests, its target by address, its load on the generator's CPU."""
    profile = read_profile(PROFILE)
    plan = replace(profile.plan, url=web1.url, requests=5000, duration=None, cpus=(generator_cpu(),))
    return replace(profile, plan=plan)


async def until(session: Session, condition: Callable[[State], bool]) -> State:
    return await asyncio.wait_for(session.until(condition), TIMEOUT)


async def run_once(pilot: Pilot[None], session: Session) -> Segment:
    """Start a run with its key, and wait for its end and one more sample of the host."""
    before = session.state.runs
    await pilot.press("space")
    state = await until(session, lambda state: state.runs > before and state.running is None)
    end = state.segments[-1].end or 0.0
    state = await until(session, lambda state: (state.hosts["web1"].seen or 0.0) >= end)
    return state.segments[-1]


async def raise_spare_servers(pilot: Pilot[None], session: Session) -> None:
    """Type the values in the panel, check the diff, and apply it."""
    await pilot.press("t")
    await pilot.pause()
    for value in ("30", "60", "10000"):
        await pilot.press(*value, "down")
    await apply(pilot, session)
    state = await until(session, lambda state: bool(state.changes and state.changes[-1].outcome))
    assert state.changes[-1].outcome == "applied", state.changes[-1].detail
    await pilot.press("escape")


async def apply(pilot: Pilot[None], session: Session) -> None:
    """Check the diff in the panel, then apply it."""
    await pilot.press("enter")
    panel = pilot.app.screen
    plan, text = panel.query_one("#plan"), ""
    async with asyncio.timeout(TIMEOUT):
        # The status and the diff are drawn one after the other.
        while "Enter again" not in str(panel.query_one("#status", Static).content) or "cost: graceful" not in text:
            await pilot.pause(0.05)
            text = "\n".join(plan.render_line(y).text.strip() for y in range(plan.size.height))
    assert all(f"{sign}MinSpareServers" in text.replace(" ", "") for sign in "-+")
    assert not session.state.changes
    await pilot.press("enter")


def spawned(segment: Segment) -> int:
    return segment.hosts["web1"].spawned


def spawned_per_request(segment: Segment) -> float:
    return spawned(segment) / segment.counts.completed


def shown(app: CockpitApp, widget: type[Runs] | type[Throughput] | type[VerdictStrip]) -> str:
    """Return the text of a widget."""
    found = app.screen.query_one(widget)
    return "\n".join(found.render_line(line).text for line in range(found.size.height))


async def test_spare_servers_are_changed_in_panel(fresh_web1: Host, tmp_path: Path) -> None:
    file = tmp_path / "s1.cockpit"
    source = LiveSource(profile_for(fresh_web1), Clock(), ssh_config=fresh_web1.ssh_config)
    session = Session(source, RecordingWriter(file))
    app = CockpitApp(session)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(session, lambda state: "web1" in state.hosts and state.hosts["web1"].point is not None)
        await until(session, lambda state: all(knob.known for knob in state.knobs.values()))
        assert {name: knob.value for name, knob in session.state.knobs.items()} == {
            "MinSpareServers": "5",
            "MaxSpareServers": "10",
            "MaxConnectionsPerChild": "100",
            "MaxRequestWorkers": "150",
            "StartServers": "5",
            "MPM": "prefork",
        }
        before = await run_once(pilot, session)
        assert (before.counts.completed, before.counts.failed) == (5000, 0)
        assert spawned(before) > 25

        await raise_spare_servers(pilot, session)

        after = await run_once(pilot, session)
        await until(session, lambda state: (state.hosts["web1"].seen or 0.0) >= (state.segments[-1].end or 0.0))
        await pilot.pause()
        assert after.label.startswith("A MinSpareServers 5 → 30")
        # Equal numbers of requests: independent of the machine's speed.
        assert spawned(after) < spawned(before)
        assert [marker.sign for marker in session.state.markers] == ["A"]
        app.screen.frame()
        assert "A" in shown(app, Throughput)
        live_table = shown(app, Runs)
        assert "A MinSpareServers" in live_table
    configuration = fresh_web1.run("grep -v '#' /etc/apache2/mods-available/mpm_prefork.conf").stdout.split()
    assert {"30", "60", "10000"} < set(configuration)
    await assert_replay_equals(file, session.state, live_table)


# Seconds of load before the request and after the activation of the change: a verdict needs 25 and 35 counted seconds.
BEFORE, AFTER = 30.0, 42.0
# Causes of an invalid verdict on a busy machine.
BUSY = (Cause.OTHER_LOAD, Cause.GENERATOR_SATURATED, Cause.PARTIAL)


async def test_verdict_on_spare_servers_raised_under_load(fresh_web1: Host, tmp_path: Path) -> None:
    file = tmp_path / "s1.cockpit"
    profile = profile_for(fresh_web1)
    # A think time leaves CPU to other processes: less than 400 requests/s.
    think = ThinkTime(distribution="exponential", seconds=0.05)
    profile = replace(profile, plan=replace(profile.plan, requests=None, duration=600.0, think_time=think))
    source = LiveSource(profile, Clock(), ssh_config=fresh_web1.ssh_config)
    session = Session(source, RecordingWriter(file))
    app = CockpitApp(session)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(session, lambda state: all(knob.known for knob in state.knobs.values()) and bool(state.knobs))
        await pilot.press("space")
        await until(session, lambda state: bool(state.segments) and state.segments[0].seconds >= BEFORE)
        await raise_spare_servers(pilot, session)
        await until(session, lambda state: state.segments[-1].number == 2 and state.segments[-1].seconds >= AFTER)
        await pilot.press("space")
        await until(session, lambda state: state.running is None)
        await until(session, lambda state: (state.hosts["web1"].seen or 0.0) >= (state.segments[-1].end or 0.0))
        await pilot.pause()
        app.screen.frame()  # type: ignore[attr-defined]
        assert "vs segment 1" in shown(app, VerdictStrip)
        # The band starts before the second of the letter; if both are in one cell, only the letter is shown.
        (band,), (change,) = bands_of(session.state), session.state.changes
        assert band.requested == change.begun < band.effect == change.active_since
        assert re.search("[ ░▓]A", shown(app, Throughput))
        verdict = segment_verdict(session.state, session.state.segments[1], session.state.segments[0])
    print(verdict_line(verdict))
    print(*method_lines(verdict), sep="\n")
    first, second = session.state.segments
    # Each child served 100 requests before, 10000 after. The tail is only printed: it includes other load.
    assert spawned_per_request(first) > 0.005 and spawned_per_request(second) < spawned_per_request(first) / 2
    effect = verdict.effect("web1.processes.spawned_per_s")
    if verdict.outcome is Outcome.INVALID:
        assert verdict.objection is not None and verdict.objection.cause in BUSY, verdict.objection
    else:
        assert effect is not None and Outcome.BETTER in (effect.outcome, effect.likely), effect
        assert effect.before is not None and effect.after is not None and effect.after < effect.before / 2
    for segment in session.state.segments:
        latency = segment.counts.latency
        print(f"segment {segment.number}: p99 {1000 * latency.percentile(99):.1f} ms, max {1000 * latency.max:.1f} ms")


async def assert_replay_equals(file: Path, live: State, live_table: str) -> None:
    with Recording(file) as recording:
        session = Session(ReplaySource(recording, recording.end, playing=False))
        app = CockpitApp(session)
        async with app.run_test(size=(120, 40)) as pilot:
            state = await until(session, lambda state: state.ended)
            await pilot.pause()
            assert state == live
            app.screen.frame()
            assert shown(app, Runs) == live_table
