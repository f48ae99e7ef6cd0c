"""Differences between load plans, in words."""

from msgspec.structs import replace

from cockpit.analysis.plans import differences
from cockpit.model.load.plan import LoadPlan, LogReplay, PathList, Request, Stage, ThinkTime, Tls

PLAN = LoadPlan(url="http://a/", concurrency=20, requests=10000)
OPEN = LoadPlan(url="http://a/", rate=2000.0, duration=60.0)
STEPPED = LoadPlan(url="http://a/", stages=(Stage(duration=5.0, concurrency=1), Stage(duration=5.0, concurrency=2)))


def test_differences_of_closed_load() -> None:
    for changed, words in (
        ({"concurrency": 40}, ("concurrency 20 → 40",)),
        ({"url": "http://b/", "keepalive": False}, ("URL http://a/ → http://b/", "keep-alive on → off")),
        ({"method": "POST", "body": "x"}, ("method GET → POST", "different body")),
        ({"tls": Tls(verify=False)}, ("different TLS",)),
        ({"paths": PathList(pattern="/{1..9}")}, ("different paths",)),
        ({"connect_to": "c:80"}, ("connect to none → c:80",)),
        ({"http": "2", "streams": 10}, ("HTTP version 1.1 → 2", "streams per connection 1 → 10")),
        ({"timeout": 5.0}, ("timeout 30 → 5",)),
        ({"requests_per_connection": 5}, ("requests per connection none → 5",)),
        ({"think_time": ThinkTime(seconds=1.0), "cookies": True}, ("different think time", "cookies off → on")),
        # Duration, workers and warm-up do not matter, nor options of open load.
        ({"requests": None, "duration": 60.0, "workers": 2, "cpus": (1,), "tick": 0.2, "warmup": 5.0}, ()),
        ({"arrivals": "poisson", "max_in_flight": 5}, ()),
    ):
        other = replace(PLAN, **changed)
        assert differences(PLAN, other) == words
        assert bool(differences(other, PLAN)) == bool(words)


def test_differences_of_open_load_replays_levels_and_mixes() -> None:
    assert differences(PLAN, OPEN) == ("c=20 → 2000/s",)
    assert differences(OPEN, replace(OPEN, concurrency=5)) == ()
    assert differences(OPEN, replace(OPEN, rate=1000.0)) == ("rate 2000 → 1000",)
    ramp, longer = replace(OPEN, ramp_to=9000.0), replace(OPEN, ramp_to=9000.0, duration=90.0)
    assert differences(ramp, ramp) == ()
    assert differences(PLAN, ramp) == ("c=20 → 2000→9000/s in 60 s",)
    assert differences(OPEN, ramp) == ("2000/s → 2000→9000/s in 60 s",)
    assert differences(ramp, longer) == ("2000→9000/s in 60 s → 2000→9000/s in 90 s",)
    assert differences(OPEN, replace(OPEN, arrivals="poisson")) == ("arrivals even → poisson",)
    log = LogReplay(file="a.log", speed=2.0)
    planned = LoadPlan(url="http://a/", replay=log)
    read = replace(planned, replay=replace(log, seconds=60.0), requests=9)
    assert differences(planned, read) == ()
    assert differences(planned, replace(planned, replay=LogReplay(file="a.log"))) == ("different log",)
    assert differences(PLAN, planned)[0] == "c=20 → a.log ×2"
    other = replace(STEPPED, stages=STEPPED.stages[:1])
    assert differences(STEPPED, other) == ("different load levels",)
    level = replace(STEPPED, concurrency=2, duration=5.0)
    assert differences(level, replace(PLAN, concurrency=2)) == ()
    assert differences(level, replace(level, concurrency=1)) == ("concurrency 2 → 1",)
    mixed = replace(PLAN, mix=(Request(name="one", url="http://a/1"),))
    assert differences(mixed, replace(mixed, url="http://elsewhere/")) == ()
    assert differences(PLAN, mixed) == ("different requests",)


def test_differences_contain_no_secrets() -> None:
    plan = LoadPlan(url="http://me:word@a/", headers=(("Authorization", "one"),), body="token=1", requests=1)
    other = LoadPlan(url="http://b/", headers=(("Cookie", "two"),), body="token=2", requests=1)
    text = " ".join(differences(plan, other))
    assert text == "URL http://a/ → http://b/ different headers different body"
