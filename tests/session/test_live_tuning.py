"""Changes and actions of a live session as events: preview, confirmation, undo, timeline."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import pytest

from cockpit.analysis.rounds import RoundsPlan
from cockpit.analysis.verdicts.objections import objection
from cockpit.analysis.verdicts.outcome import Cause
from cockpit.analysis.windows import segment_window
from cockpit.analysis.words.objections import objection_words
from cockpit.hosts.shell import Completed
from cockpit.model.clock import Clock
from cockpit.model.errors import ChangeRefused, ChangeRolledBack
from cockpit.model.events import AnyEvent, KnobRead
from cockpit.model.host.samples import HostConfig
from cockpit.model.knobs import Knob, Setting
from cockpit.model.load.plan import REDACTED, LoadPlan
from cockpit.profiles.profile import Profile
from cockpit.session import guard, live_tuning
from cockpit.session.change_report import ChangeReport
from cockpit.session.confirmation import Confirmation
from cockpit.session.guard import SessionGuard
from cockpit.session.knob_reader import KnobReader
from cockpit.session.live import LiveSource
from cockpit.session.live_events import LiveEvents
from cockpit.tuning.applied import AppliedChange
from cockpit.tuning.plan import NewValues
from cockpit.tuning.remote import Remote
from cockpit.tuning.tuner import Tuner
from tests.session.sessions import BEFORE, Live, do, live_session, until


@pytest.fixture
async def live(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Live]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    async with live_session(url, tmp_path, files=True) as live:
        yield live


async def test_value_that_needs_an_action_is_inactive_until_action_ran(live: Live) -> None:
    session, source = live
    await source.tuning.apply({"Limit": "2"})
    state = await until(session, lambda state: bool(state.changes) and bool(state.changes[-1].outcome))
    (change,) = state.changes
    assert list(change.stages) == ["armed", "written", "not yet active", "confirmed"]
    assert (change.outcome, change.inactive) == ("written", ("Limit",))
    assert (change.active_since, change.cost) == (None, "written")
    assert (state.knobs["Limit"].value, state.knobs["Limit"].active) == ("2", False)
    with pytest.raises(ChangeRefused, match="Limit: only written, never active"):
        await source.tuning.compare_in_rounds({"Limit": "3"}, RoundsPlan())
    await source.tuning.commands.act("again")
    state = await until(session, lambda state: state.knobs["Limit"].active)
    assert (state.changes[0].outcome, state.changes[0].inactive) == ("applied", ())
    await source.tuning.undo()
    state = await until(session, lambda state: len(state.changes) == 2 and bool(state.changes[1].outcome))
    assert state.changes[1].outcome == "written" and state.knobs["Limit"].value == "1"


async def test_change_is_previewed_applied_and_undone(live: Live, tmp_path: Path) -> None:
    session, source = live
    (preview,) = await source.tuning.preview({"Level": "7"})
    assert (preview.host, preview.cost) == ("web1", "graceful") and preview.diff.endswith("-Level=5\n+Level=7\n")
    assert (tmp_path / "conf").read_text() == BEFORE
    await source.tuning.apply({"Level": "7"})
    state = await until(session, lambda state: state.changes[-1].outcome == "applied")
    change = state.changes[0]
    assert list(change.stages) == ["armed", "written", "reloaded", "active", "confirmed"]
    assert change.diff == preview.diff and "@" in change.who
    await source.tuning.undo()
    state = await until(session, lambda state: len(state.changes) == 2 and bool(state.changes[1].outcome))
    assert state.changes[1].undoes == "A" and state.knobs["Level"].value == "5"
    assert (tmp_path / "conf").read_text() == BEFORE
    with pytest.raises(ChangeRefused, match="nothing to undo"):
        await source.tuning.undo()


@pytest.mark.parametrize("answer", ["kept", "undone", "closed"])
async def test_change_awaiting_confirmation_is_kept_or_undone(live: Live, tmp_path: Path, answer: str) -> None:
    session, source = live
    with pytest.raises(ChangeRefused, match="no change waits"):
        source.tuning.confirm()
    applying = asyncio.ensure_future(source.tuning.apply({"Level": "7"}, confirm_within=600))
    await until(session, lambda state: bool(state.changes) and state.changes[0].confirm_by is not None)
    if answer == "kept":
        await do(session, "keep")
        await applying
    else:
        await (source.tuning.undo() if answer == "undone" else source.close())
        reason = "it was not confirmed; rolled back and reloaded" if answer == "undone" else None
        with pytest.raises(ChangeRolledBack, match=reason):
            await applying
    if answer != "closed":
        await until(session, lambda state: bool(state.changes[0].outcome))
        assert session.state.knobs["Level"].value == ("7" if answer == "kept" else "5")
    assert (tmp_path / "conf").read_text() == (BEFORE.replace("5", "7") if answer == "kept" else BEFORE)


async def test_waiting_change_is_settled_before_an_earlier_one_is_undone(live: Live, tmp_path: Path) -> None:
    session, source = live
    await source.tuning.apply({"Other": "2"})
    applying = asyncio.ensure_future(source.tuning.apply({"Level": "7"}, confirm_within=600))
    await until(session, lambda state: state.changes[-1].confirm_by is not None)
    for undo in (source.tuning.preview_undo, source.tuning.undo):
        with pytest.raises(ChangeRefused, match="change B waits for confirmation; keep or undo it first"):
            await undo("A")
    await source.tuning.undo("B")
    with pytest.raises(ChangeRolledBack):
        await applying
    assert (tmp_path / "conf").read_text() == "Level=5\nOther=2\n"


async def test_nothing_waits_for_confirmation_once_it_is_closed() -> None:
    confirmation = Confirmation()
    waiting = asyncio.ensure_future(confirmation.wait())
    await asyncio.sleep(0)
    assert confirmation.awaited
    confirmation.close()
    assert not await waiting and not await confirmation.wait()


async def test_end_of_generated_load_exceeds_no_limit(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    session, source = live
    source.tuning._changes._guard = SessionGuard(("errors < 50%",), False, source._live_events)
    await source.load.start()
    await until(session, lambda state: bool(state.segment and state.segment.counts.completed))
    applying = asyncio.ensure_future(source.tuning.apply({"Level": "7"}, confirm_within=600))
    await until(session, lambda state: bool(state.changes and state.changes[-1].confirm_by is not None))
    await source.load.stop()
    await until(session, lambda state: state.running is None)
    monkeypatch.setattr(guard, "BLIND", 0.5)
    ends = session.state.t + 1.5
    await until(session, lambda state: state.t > ends)
    source.tuning.confirm()
    await applying


async def test_interrupted_change_names_the_hosts_with_new_values(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    _, source = live
    level, other = (source.tuning._knobs[name] for name in ("Level", "Other"))
    by_host = {"web1": [(level, "7")], "web2": [(other, "2")]}
    monkeypatch.setattr(source.tuning._changes, "by_host", lambda _: by_host)
    apply = source.tuning._changes.apply

    async def interrupted(values: NewValues, report: ChangeReport, *rest: None, **options: bool) -> AppliedChange:
        if report.host == "web2":
            raise asyncio.CancelledError
        return await apply(values, report, *rest, **options)

    monkeypatch.setattr(source.tuning._changes, "apply", interrupted)
    with pytest.raises(asyncio.CancelledError, match="interrupted; the new values stay on web1"):
        await source.tuning.apply({"Level": "7", "Other": "2"})


async def test_refused_change_is_in_the_events(live: Live) -> None:
    session, source = live
    with pytest.raises(ChangeRefused):
        await source.tuning.apply({"Level": "7\n8"})
    state = await until(session, lambda state: bool(state.changes and state.changes[0].outcome))
    assert state.changes[0].outcome == "rolled back" and "one line of text" in state.changes[0].detail
    with pytest.raises(ChangeRefused, match="unknown knob 'x'; the profile has: Level, Other"):
        await source.tuning.apply({"x": "1"})


async def test_action_runs_and_has_marker(live: Live, tmp_path: Path) -> None:
    session, source = live
    await source.tuning.commands.act("again")
    state = await until(session, lambda state: bool(state.actions and state.actions[0].ended))
    assert (state.actions[0].done, state.actions[0].detail) == (3, "")
    assert (tmp_path / "conf.log").read_text() == "x\nx\nx\n"
    assert [marker.kind for marker in state.markers] == ["action"]
    with pytest.raises(ChangeRefused, match="unknown action 'x'; the profile has: again"):
        await source.tuning.commands.act("x")


async def test_undo_of_chosen_change_requires_no_later_change_of_knob(live: Live, tmp_path: Path) -> None:
    session, source = live
    for values in ({"Level": "7"}, {"Other": "2"}, {"Level": "8"}):
        await source.tuning.apply(values)
    with pytest.raises(ChangeRefused, match="change C has set Level since; undo C first"):
        await source.tuning.undo("A")
    with pytest.raises(ChangeRefused, match="X is not active; changes that can be undone: A, B, C"):
        await source.tuning.undo("X")
    await source.tuning.undo("B")
    assert (tmp_path / "conf").read_text() == "Level=8\nOther=1\n"
    await source.tuning.undo("C")
    await source.tuning.undo("A")
    assert (tmp_path / "conf").read_text() == BEFORE
    state = await until(session, lambda state: len(state.changes) == 6 and bool(state.changes[-1].outcome))
    assert [change.undoes for change in state.changes] == ["", "", "", "B", "C", "A"]


async def test_values_of_host_are_read_with_one_read_per_file_and_again_after_a_change() -> None:
    files = {"/file-a": b"Level=1\nLimit=2\n", "/file-b": b"Mode=3\n"}
    knobs = [
        Knob(name=key, host="web1", kind="keyvalue", file=file, key=key)
        for key, file in (("Level", "/file-a"), ("Mode", "/file-b"), ("Limit", "/file-a"))
    ]
    events: list[AnyEvent] = []
    reads: list[str] = []

    class Host:
        async def run(self, program: str, **_: object) -> Completed:
            file = next(file for file in files if file in program)
            reads.append(file)
            data = files[file]
            if reads == [*files]:
                # A change ends while /file-b is read.
                files["/file-a"] = b"Level=7\nLimit=8\n"
                values.update([Setting(knob="Level", old="1", new="7"), Setting(knob="Limit", old="2", new="8")])
            return Completed(0, file.encode() + b"\0" + data, b"")

    values = KnobReader(knobs, {"web1": Host()}, Tuner(), LiveEvents(Clock(), events.append))
    assert await values.read_host("web1") and not await values.read_host("web2")
    assert reads == ["/file-a", "/file-b", "/file-b", "/file-a"]
    read = [(event.knob, event.value) for event in events if isinstance(event, KnobRead)]
    assert read == [("Level", "1"), ("Level", "7"), ("Limit", "8"), ("Mode", "3"), ("Limit", "8")]


async def test_value_in_a_section_that_does_not_count_is_refused_after_its_first_display() -> None:
    """The server is asked once for all knobs of the file, and again after a change."""
    text = b"<IfModule event.c>\nMaxRequestWorkers 4\nServerLimit 5\n</IfModule>\n"
    knobs = [
        Knob(name=name, host="web1", kind="apache", file="/mpm.conf", directive=name, section="IfModule event.c")
        for name in ("MaxRequestWorkers", "ServerLimit")
    ]
    events: list[AnyEvent] = []
    asked: list[list[str]] = []

    class Host:
        async def run(self, program: str, **_: object) -> Completed:
            return Completed(0, b"/mpm.conf\0" + text, b"")

    class Server(Tuner):
        async def inactive(self, shell: Remote, host: str, knobs: Iterable[Knob]) -> dict[str, str]:
            asked.append([knob.name for knob in knobs])
            return {"ServerLimit": "line 3: <IfModule event.c> is false"} if len(asked) == 1 else {}

    values = KnobReader(knobs, {"web1": Host()}, Server(), LiveEvents(Clock(), events.append))
    await values.read_host("web1")
    read = [(event.knob, event.value, event.detail) for event in events if isinstance(event, KnobRead)]
    first = [("MaxRequestWorkers", "4", ""), ("ServerLimit", "5", "")]
    assert read == [*first, ("ServerLimit", None, "line 3: <IfModule event.c> is false")]
    assert asked == [["MaxRequestWorkers", "ServerLimit"]]
    text += b"LoadModule event\n"
    await values.read_changed("web1")
    assert len(asked) == 2 and [event.value for event in events[3:] if isinstance(event, KnobRead)] == ["5"]
    values.update([])
    assert await values.read(knobs[1]) == "5"
    assert len(asked) == 3
    # Never read before.
    events.clear()
    await KnobReader(knobs, {"web1": Host()}, Server(), LiveEvents(Clock(), events.append)).read_changed("web1")
    assert [event.value for event in events if isinstance(event, KnobRead)] == ["4", "5"]


async def test_value_that_can_be_read_again_is_reported(live: Live, tmp_path: Path) -> None:
    session, source = live
    conf = tmp_path / "conf"
    conf.rename(tmp_path / "gone")
    await source.tuning.read_host("web1")
    await until(session, lambda state: bool(state.knobs["Level"].detail))
    (tmp_path / "gone").rename(conf)
    # Also after a change of another knob.
    source.tuning._reader.update([])
    await source.tuning._reader.read_changed("web1")
    state = await until(session, lambda state: not state.knobs["Level"].detail)
    assert state.knobs["Level"].value == "5"


async def test_hanging_host_delays_no_values_of_other_hosts(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setattr(live_tuning, "READ_EVERY", 0)
    knobs = tuple(Knob(name=name, host=name, kind="keyvalue", file="/x", directive=name) for name in ("web1", "web2"))
    hosts = tuple(HostConfig(name=knob.host) for knob in knobs)
    profile = Profile(name="x", plan=LoadPlan(url=url), hosts=hosts, knobs=knobs)
    tuning, read = LiveSource(profile, Clock()).tuning, asyncio.Event()

    async def read_changed(_: KnobReader, host: str) -> None:
        if host == "web2":
            read.set()
        await asyncio.Future()

    monkeypatch.setattr(KnobReader, "read_changed", read_changed)
    watching = asyncio.ensure_future(tuning.watch_values())
    async with asyncio.timeout(20):
        await read.wait()
    watching.cancel()


@pytest.mark.parametrize(("knob", "old"), [("Other", "1"), ("Level", "7")], ids=["other knob", "changed knob"])
async def test_value_that_others_change_makes_verdicts_invalid(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, knob: str, old: str
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(live_tuning, "READ_EVERY", 0.05)
    async with live_session(url, tmp_path, files=True) as (session, source):
        await source.load.start()
        await source.tuning.apply({"Level": "7"})
        conf = tmp_path / "conf"
        conf.write_text(conf.read_text().replace(f"{knob}={old}", f"{knob}=91"))
        state = await until(session, lambda state: any(marker.kind == "setting" for marker in state.markers))
        assert state.knobs[knob].value == "91"
        await source.load.stop()
        await source.load.start()
        state = await until(session, lambda state: state.runs == 2 and state.segments[-1].counts.completed > 0)
        await source.load.stop()
        state = await until(session, lambda state: state.running is None)
        before, after = (segment_window(state, segment) for segment in (state.segments[0], state.segments[-1]))
        objected = objection([before], [after])
        assert objected is not None and objected.cause is Cause.SETTING_ALTERED
        assert objection_words(objected).startswith(f"a setting was changed elsewhere on web1: {knob} {old} → 91 at ")
        same = objection([after], [after])
        assert same is None or same.cause is not Cause.SETTING_ALTERED


async def test_value_that_others_change_after_a_trial_has_a_marker(live: Live, tmp_path: Path) -> None:
    session, source = live
    await source.tuning.apply_temporarily({"Level": "7"}, 60, lambda: asyncio.sleep(0))
    (tmp_path / "conf").write_text(BEFORE.replace("5", "9"))
    await source.tuning._reader.read_changed("web1")
    state = await until(session, lambda state: any(marker.kind == "setting" for marker in state.markers))
    assert state.knobs["Level"].value == "9"


async def test_change_is_refused_if_values_differ_from_the_diff(live: Live, tmp_path: Path) -> None:
    _, source = live
    with pytest.raises(ChangeRefused, match=r"Level: modified elsewhere .* \(repeat the change\); nothing was changed"):
        await source.tuning.apply({"Level": "7"}, expected={"Level": "4"})
    with pytest.raises(ChangeRefused, match="it has the new values already: modified elsewhere"):
        await source.tuning.apply_temporarily({"Level": "5"}, 60, lambda: asyncio.sleep(0))
    assert (tmp_path / "conf").read_text() == BEFORE
    await source.tuning.apply({"Level": "7"}, expected={"Level": "5"})


async def test_secret_of_an_earlier_profile_is_not_in_the_events(live: Live, tmp_path: Path) -> None:
    session, source = live
    secret = Knob(
        name="Password",
        host="web1",
        kind="keyvalue",
        file=str(tmp_path / "conf"),
        key="Level",
        reload="true",
        secret=True,
    )
    await Tuner().apply(source.tuning._remotes["web1"], "web1", [(secret, "hunter2")])
    (past,) = await source.tuning.history("web1")
    await source.tuning.undo_past("web1", past)
    state = await until(session, lambda state: bool(state.changes and state.changes[-1].outcome))
    assert state.changes[-1].settings == (Setting(knob="Password", old=REDACTED, new=REDACTED),)
    assert "hunter2" not in state.changes[-1].diff and (tmp_path / "conf").read_text() == BEFORE
