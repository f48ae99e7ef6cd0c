"""The load form: fields of the plan, errors at the field, changes that apply at once or in the next run."""

import pytest
from msgspec.structs import replace
from textual.pilot import Pilot
from textual.widgets import Input, Static

from cockpit.cli.typed_load import plan_with
from cockpit.model.errors import UsageError
from cockpit.model.load.plan import LoadPlan, LogReplay, Stage, ThinkTime
from cockpit.tui.dialogs.checklist import Checklist
from cockpit.tui.dialogs.load_form import LoadForm
from cockpit.tui.load_fields import plan_from, texts_of
from tests.data import data_of
from tests.tui.driving import press, running_app, text_of, until

DATA = data_of(__file__)

PLAN = LoadPlan(url="http://web1/hello.html", concurrency=20, duration=30.0)


def changed(plan: LoadPlan = PLAN, **texts: str) -> LoadPlan:
    return plan_from(plan, texts_of(plan) | {name.replace("_", " "): text for name, text in texts.items()}, plan_with)


def test_changed_field_changes_only_its_setting() -> None:
    for texts, expected in (
        ({}, {}),
        ({"URL": "web2:8080/x"}, {"url": "http://web2:8080/x"}),
        ({"load": "2k/s"}, {"rate": 2000.0}),
        ({"load": "40"}, {"concurrency": 40}),
        ({"load": "200:2k/s"}, {"rate": 200.0, "ramp_to": 2000.0}),
        ({"load": "10:200"}, {"concurrency": 10, "ramp_to": 200.0}),
        ({"duration": "5m20s"}, {"duration": 320.0}),
        ({"requests": "10k"}, {"requests": 10_000}),
        ({"requests": "10k", "duration": ""}, {"requests": 10_000, "duration": None}),
        ({"duration": ""}, {"duration": 10.0}),
        (
            {"load_steps": "1,2:30s", "duration": ""},
            {"stages": (Stage(duration=30.0, concurrency=1), Stage(duration=30.0, concurrency=2)), "duration": None},
        ),
        ({"body": "a=1"}, {"body": "a=1", "method": "POST"}),
        ({"body": "a=1", "method": "PUT"}, {"body": "a=1", "method": "PUT"}),
        ({"keep-alive": "no"}, {"keepalive": False}),
        ({"HTTP": "2"}, {"http": "2"}),
        ({"HTTP": "auto", "streams": "10"}, {"http": "auto", "streams": 10}),
        ({"think_time": "0.2s to 2s"}, {"think_time": ThinkTime(distribution="uniform", seconds=0.2, most=2.0)}),
        ({"headers": "Accept: a; q=0.9; X-Id: 7"}, {"headers": (("Accept", "a; q=0.9"), ("X-Id", "7"))}),
    ):
        assert changed(**texts) == replace(PLAN, **expected)


def test_cleared_fields_and_replayed_log_keep_rest_of_plan() -> None:
    plan = replace(PLAN, headers=(("Accept", "a"),), body="x", keepalive=False, timeout=5.0, workers=2)
    emptied = changed(plan, headers="", body="", **{"keep-alive": "yes"})
    assert emptied == replace(PLAN, timeout=5.0, workers=2)
    assert changed(replace(PLAN, http="2", streams=10), HTTP="", streams="") == PLAN
    thinking = replace(PLAN, think_time=ThinkTime(seconds=0.5))
    assert changed(thinking, duration="30 s") == thinking and changed(thinking, think_time="") == PLAN
    steps = replace(PLAN, duration=None, stages=(Stage(duration=3.0, rate=5.0), Stage(duration=3.0, rate=50.0)))
    assert texts_of(steps)["load steps"] == "5/s,50/s:3s"
    assert texts_of(changed(load_steps="1,1:50:9s", duration=""))["load steps"] == "1,1:50:9s"
    ramp = changed(load="200:2000/s")
    assert texts_of(ramp)["load"] == "200:2000/s" and changed(ramp, load="40") == replace(PLAN, concurrency=40)
    assert changed(steps, load_steps="").stages == () and changed(steps, load_steps="").duration == 10.0
    plan = replace(PLAN, duration=None, replay=LogReplay(file="logs/day.log", speed=2.0))
    assert texts_of(plan)["load"] == "day.log ×2"
    assert changed(plan, headers="Accept: a") == replace(plan, headers=(("Accept", "a"),))
    assert changed(plan, load="40") == replace(PLAN, concurrency=40, duration=10.0)
    plan = replace(PLAN, headers=(("Authorization", "Basic c2VzYW1l"), ("Accept", "a")))
    shown = texts_of(plan)["headers"]
    assert "c2VzYW1l" not in shown and shown.endswith("Accept: a")
    assert changed(plan, headers=shown.replace("Accept: a", "Accept: b")).headers == (
        ("Authorization", "Basic c2VzYW1l"),
        ("Accept", "b"),
    )


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("http://web1/other.html", "http://me:pw@web1/other.html"),
        ("web1:80/other.html", "http://me:pw@web1:80/other.html"),
        ("http://you@web1/", "http://you@web1/"),
        ("http://web2/hello.html", "http://web2/hello.html"),
        ("https://web1/hello.html", "https://web1/hello.html"),
        ("http://web1:8080/hello.html", "http://web1:8080/hello.html"),
    ],
)
def test_login_of_a_url_stays_only_for_the_same_server(typed: str, expected: str) -> None:
    plan = replace(PLAN, url="http://me:pw@web1/hello.html")
    assert "pw" not in texts_of(plan)["URL"]
    assert changed(plan, URL=typed).url == expected


def test_each_header_of_a_name_keeps_its_own_value() -> None:
    plan = replace(PLAN, headers=(("Cookie", "a=1"), ("X-Id", "7"), ("Cookie", "b=2")))
    shown = texts_of(plan)["headers"]
    assert changed(plan, headers=f"{shown}; Accept: a").headers == (*plan.headers, ("Accept", "a"))
    plan = replace(PLAN, headers=(("X-Key", "s1"), ("X-Key", "s2")))
    one, two, three = (("X-Key", value) for value in ("s1", "s2", "new"))
    for typed, headers in (
        ("x-key: new; X-Key: (not recorded)", (("x-key", "new"), two)),
        ("X-Key: new; X-Key: (not recorded); X-Key: (not recorded)", (three, one, two)),
        ("X-Key: (not recorded)", (one,)),
    ):
        assert changed(plan, headers=typed).headers == headers
    with pytest.raises(UsageError, match=r"x-key: no value to keep for \(not recorded\)") as raised:
        changed(plan, headers="; ".join(["X-Key: (not recorded)"] * 3))
    assert raised.value.subject == "-H"


UNEQUAL = replace(PLAN, duration=None, stages=(Stage(duration=3.0, rate=5.0), Stage(duration=9.0, rate=50.0)))


def test_load_steps_stay_until_they_are_replaced() -> None:
    assert changed(UNEQUAL) == UNEQUAL
    assert changed(UNEQUAL, headers="Accept: a") == replace(UNEQUAL, headers=(("Accept", "a"),))
    assert changed(UNEQUAL, load_steps="1,2:5s").stages == (
        Stage(duration=5.0, concurrency=1),
        Stage(duration=5.0, concurrency=2),
    )
    equal = changed(load_steps="1,2:5s", duration="")
    for plan in (UNEQUAL, equal):
        for texts, subject in (({"duration": "30s"}, "-z"), ({"requests": "500"}, "-n"), ({"load": "5"}, "-c")):
            with pytest.raises(UsageError, match=f"the load steps set the {next(iter(texts))}; ") as raised:
                changed(plan, **texts)
            assert raised.value.subject == subject


def test_invalid_field_is_named_by_flag() -> None:
    for texts, subject, problem in DATA["invalid_field_is_named_by_flag_cases"]:
        with pytest.raises(UsageError) as raised:
            changed(**texts)
        assert raised.value.subject == subject and problem in raised.value.problem


async def replace_text(pilot: Pilot[object], name: str, text: str) -> None:
    field = pilot.app.screen.query_one(f"#{name}", Input)
    field.focus()
    field.value = ""
    await press(pilot, *text)


def effect(pilot: Pilot[object]) -> str:
    return text_of(pilot.app.screen.query_one("#effect", Static)).strip()


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_form_shows_field_errors_and_effect_of_changes(size: tuple[int, int]) -> None:
    async with running_app(size=size) as (pilot, source):
        load = source.controls.load
        await press(pilot, "equals_sign", "4", "0", "escape")
        assert load.plan == PLAN, "Esc discards changes"
        load.active = load.plan
        await press(pilot, "equals_sign")
        await until(pilot, lambda: isinstance(pilot.app.screen, LoadForm))
        screen = pilot.app.screen
        assert all(field.region.bottom <= size[1] - 2 for field in screen.query(Input)), "every field is visible"
        assert effect(pilot) == "no changes yet"
        await replace_text(pilot, "load", "many")
        error = screen.query_one("#error-load", Static)
        assert error.display and "is not a whole number" in text_of(error)
        await press(pilot, "enter")
        assert pilot.app.screen is screen
        await replace_text(pilot, "load", "20:40")
        assert effect(pilot).splitlines()[0].endswith("load 20 → 20:40, a ramp to the end of the run")
        await replace_text(pilot, "load", "40")
        assert not error.display
        assert effect(pilot).splitlines()[0] == "now and in the next run: load 20 → 40"
        await replace_text(pilot, "duration", "60s")
        assert "next run only: duration" in effect(pilot)
        screen.query_one(Checklist).focus()
        await press(pilot, "space")
        assert "next run only: duration, keep-alive" in effect(pilot)
        await press(pilot, "enter")
        await until(pilot, lambda: load.plan == replace(PLAN, concurrency=40, duration=60.0, keepalive=False))
        await press(pilot, "equals_sign")
        source.controls.load = None
        await press(pilot, "enter")
        await until(pilot, lambda: any("load cannot be changed" in note.message for note in pilot.app.notices()))
        pilot.app.forget_notices(pilot.app.notices())
        await press(pilot, "equals_sign")
        await until(pilot, lambda: any("load cannot be changed" in note.message for note in pilot.app.notices()))
