"""Traffic of a real log as the load of a session: every line once, also across rotations."""

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from cockpit.analysis.time_ranges import between, of_seconds
from cockpit.analysis.warnings import WarningKind, run_warnings, segment_warnings
from cockpit.analysis.windows import GUARD, DiscardReason, segment_window
from cockpit.metrics.results import run_result
from cockpit.model.errors import HostError, UsageError
from cockpit.model.host.samples import HostConfig
from cockpit.model.load.plan import AccessLog, LoadPlan
from cockpit.model.state import State
from cockpit.profiles.profile import Profile
from cockpit.report.run import run_text
from cockpit.session.live_session import LiveSession
from cockpit.traffic import launcher
from cockpit.traffic.log_format import LogFormat, match_line, parse_format
from cockpit.traffic.program import program
from cockpit.tui.draw_context import DrawContext
from cockpit.tui.hosts.host_pane import traffic_lines
from tests.hosts.sshd import Sshd
from tests.waiting import programs


def lines(number: int, path: str = "/a", status: int = 200, us: int = 1500) -> str:
    return f'1.2.3.4 - - [x] "GET {path} HTTP/1.1" {status} 17 "-" "agent" {us}\n' * number


def profile_of(log: Path, format: str = "", **plan: float) -> Profile:
    traffic = (AccessLog(host="here", file=str(log), format=format),)
    return Profile(
        name="x",
        plan=replace(LoadPlan(url="http://127.0.0.1:9/", traffic=traffic), **plan),
        hosts=(HostConfig(name="here", ssh=None),),
    )


@asynccontextmanager
async def watching(profile: Profile, ssh_config: Path | None = None) -> AsyncIterator[LiveSession]:
    """Run a session whose traffic is being counted."""
    async with LiveSession(profile, ssh_config=ssh_config) as live:
        await live.hosts_read()
        await live.load.start()
        # The first interval is complete once the log has been opened.
        await live.session.until(lambda state: state.segment is not None and state.segment.seconds > 0)
        yield live


async def counted(live: LiveSession, number: int) -> State:
    """Wait until this number of requests has been counted."""
    return await live.session.until(lambda state: bool(state.segment and state.segment.counts.completed >= number))


def append(log: Path, text: str) -> None:
    with log.open("a") as file:
        file.write(text)


@pytest.mark.parametrize("awk", programs("awk", "mawk", "gawk", "busybox"))
async def test_lines_are_counted_once(awk: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = shutil.which(awk)
    assert program is not None
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "awk").symlink_to(program)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    log = tmp_path / "access log"
    log.write_text(lines(500, "/before"))
    async with watching(profile_of(log)) as live:
        append(log, lines(20) + lines(5, "/b/17?x", 500, us=2_000_000) + lines(1, "/late")[:30])
        await counted(live, 25)
        append(log, lines(1, "/late")[30:])
        await counted(live, 26)
        await live.load.stop()
        state = live.state
    result = run_result(state, 1)
    assert result is not None
    assert result.reason == "stopped"
    counts = result.counts
    assert {name: group.completed for name, group in counts.groups.items()} == {
        "GET /a": 20,
        "GET /b/*": 5,
        "GET /late": 1,
    }
    assert (counts.statuses, counts.failed) == ({200: 21, 500: 5}, 5)
    assert counts.latency.percentile(50) == pytest.approx(0.0015, rel=0.01)
    assert counts.latency.percentile(100) == pytest.approx(2.0, rel=0.01)


async def test_renamed_and_truncated_logs_are_read_to_their_ends(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    log.write_text(lines(1))
    async with watching(profile_of(log)) as live:
        append(log, lines(3))
        await counted(live, 3)
        old = log.rename(tmp_path / "access.log.1")
        append(log, lines(4, "/new"))
        append(old, lines(2, "/old"))
        state = await counted(live, 9)
        log.write_text("")
        append(log, lines(1, "/short"))
        append(log, "garbage\n")
        state = await counted(live, 10)
        state = await live.session.until(lambda state: bool(state.segments[0].logs["here"].invalid_lines))
        assert state.segment is not None
        kinds = {warning.kind: warning.values for warning in segment_warnings(state.segment)}
        assert kinds[WarningKind.LOG_ROTATED] == {"count": 2}
        assert kinds[WarningKind.INVALID_LINES] == {"count": 1, "total": 11}
        groups = {name: group.completed for name, group in state.segment.counts.groups.items()}
        assert groups == {"GET /a": 3, "GET /new": 4, "GET /old": 2, "GET /short": 1}


async def test_log_that_was_unreadable_is_read_from_its_end_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may read every file, so another condition stands for the permission."""

    def programmed(log: str, fields: LogFormat) -> str:
        return program(log, fields).replace('[ -r "$log" ]', '[ ! -e "$log.secret" ]')

    monkeypatch.setattr(launcher, "program", programmed)
    log, secret = tmp_path / "access.log", tmp_path / "access.log.secret"
    log.write_text(lines(1))
    async with watching(profile_of(log)) as live:
        secret.touch()
        log.rename(tmp_path / "access.log.1")
        append(log, lines(5, "/unread"))
        await live.session.until(lambda state: bool(state.segment and state.segment.counts.unread))
        secret.unlink()
        await live.session.until(lambda state: bool(state.segment and state.segment.logs["here"].rotations))
        append(log, lines(2, "/read"))
        state = await counted(live, 2)
    assert state.segment is not None
    assert {name: group.completed for name, group in state.segment.counts.groups.items()} == {"GET /read": 2}


async def test_run_ends_as_planned_and_notes_are_shown(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    log.write_text(lines(2).replace(" 1500\n", "\n"))
    async with LiveSession(profile_of(log, duration=0.5)) as live:
        state = await live.run_once()
    result = run_result(state, 1)
    assert result is not None
    assert result.reason == "completed"
    for warnings in (run_warnings(result), segment_warnings(state.segments[0])):
        assert any("no durations" in str(warning) for warning in warnings)


@pytest.mark.parametrize(
    ("format", "durations", "words"),
    [
        ("%>s %T", ("0", "2"), "has no durations finer than a second, so there is no latency; log them: LogFormat"),
        ("$status $request_time", ("0.000", "0.000"), "the durations are all 0"),
        ("$status $request_time", ("0.000", "0.012"), "has durations in milliseconds"),
        ("$status $request_time", (), "requests are counted"),
        ("%>s %D", ("5000",), "requests are counted"),
    ],
)
def test_notes_on_durations(format: str, durations: tuple[str, ...], words: str) -> None:
    fields = parse_format(format)
    requests = [request for text in durations if (request := match_line(fields, f"200 {text}"))]
    log = AccessLog(host="here", file="/log", format=format)
    first, *_ = launcher.Recognized(log, fields, requests, len(requests)).warnings
    assert words in first


@pytest.mark.parametrize(
    ("content", "format", "problem"),
    [
        (None, "", "No such file"),
        ("nothing known\n", "", "unknown log format .nothing known"),
        ("", "", "the log is empty"),
    ],
)
async def test_log_that_cannot_be_read(tmp_path: Path, content: str | None, format: str, problem: str) -> None:
    log = tmp_path / "access.log"
    if content is not None:
        log.write_text(content)
    async with LiveSession(profile_of(log, format)) as live:
        await live.hosts_read()
        with pytest.raises(HostError, match=problem):
            await live.load.start()


async def test_load_cannot_be_changed(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    log.write_text(lines(1))
    async with watching(profile_of(log)) as live:
        with pytest.raises(UsageError, match="users decide"):
            live.load.change(more=True)


def read_seconds(state: State) -> float:
    """Return the time (s) in which the log was read."""
    [segment] = state.segments
    return segment.seconds - segment.logs["here"].unread


async def test_lost_connection_is_a_gap(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    log.write_text(lines(1))
    sshd = await Sshd(tmp_path).start()
    profile = profile_of(log)
    profile = replace(profile, hosts=(HostConfig(name="here", ssh="web", interval=0.2),))
    try:
        async with watching(profile, sshd.ssh_config) as live:
            append(log, lines(20))
            await counted(live, 20)
            await sshd.stop()
            await live.session.until(
                lambda state: bool(state.segment and state.segment.logs["here"].unread > GUARD + 1)
            )
            append(log, lines(7, "/unseen"))
            counted_seconds = read_seconds(live.state)
            await sshd.start()
            await live.session.until(lambda state: read_seconds(state) > counted_seconds + 0.5)
            append(log, lines(5, "/after"))
            state = await counted(live, 25)
            await live.load.stop()
    finally:
        await sshd.stop()
    result = run_result(state, 1)
    assert result is not None
    assert {name: group.completed for name, group in result.counts.groups.items()} == {"GET /a": 20, "GET /after": 5}
    [warning] = [each for each in run_warnings(result) if each.kind is WarningKind.LOG_UNREAD]
    assert (warning.subject, warning.values) == ("here", {"seconds": result.logs["here"].unread})
    assert 1 <= result.logs["here"].unread < result.seconds
    assert not result.losses
    assert result.rate == pytest.approx(25 / (result.seconds - result.logs["here"].unread))
    unread = [second.second for second in state.seconds if second.unread >= 1]
    assert unread and of_seconds(between(state.seconds, unread[0], unread[-1] + 1)) is None
    [segment] = state.segments
    window = segment_window(state, segment)
    assert window.flawed[DiscardReason.UNREAD] >= 1
    assert not {second.second for second in window.seconds} & set(unread)


async def test_logs_of_several_hosts_are_summed_and_shown_beside_each_other(tmp_path: Path) -> None:
    logs = {name: tmp_path / name for name in ("a", "b")}
    for log in logs.values():
        log.write_text(lines(1))
    traffic = tuple(AccessLog(host=name, file=str(log)) for name, log in logs.items())
    profile = Profile(
        name="x",
        plan=LoadPlan(url="http://127.0.0.1:9/", traffic=traffic),
        hosts=tuple(HostConfig(name=name, ssh=None) for name in logs),
    )
    async with watching(profile) as live:
        await live.session.until(lambda state: len(state.segments[0].logs) == len(logs))
        append(logs["a"], lines(30, us=2_000))
        append(logs["b"], lines(10, us=50_000))
        await counted(live, 40)
        await live.load.stop()
        state = live.state
    result = run_result(state, 1)
    assert result is not None
    assert {host: log.completed for host, log in result.logs.items()} == {"a": 30, "b": 10}
    rows = [line.split() for line in run_text(result).splitlines()]
    assert [[*row[:2], *row[3:]] for row in rows if row[:2] in (["a", "30"], ["b", "10"])] == [
        ["a", "30", "2.0", "2.0", "2.0"],
        ["b", "10", "50", "50", "50"],
    ]
    drawn = [traffic_lines(host, DrawContext(state)) for host in state.hosts.values()]
    assert ["".join(text for text, _ in line).split()[2:] for [line] in drawn] == [
        ["p50", "2.0", "p99", "2.0", "ms"],
        ["p50", "50", "p99", "50", "ms"],
    ]
