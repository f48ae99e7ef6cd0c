import msgspec
import pytest

from cockpit.analysis.plans import differences
from cockpit.model.load import LoadPlan, LogReplay, PathList, Request, Stage, ThinkTime, Tls

PLAN = LoadPlan(url="http://a/", concurrency=20, requests=10000)
OPEN = LoadPlan(url="http://a/", rate=2000.0, duration=60.0)
LADDER = LoadPlan(url="http://a/", stages=(Stage(duration=5.0, concurrency=1), Stage(duration=5.0, concurrency=2)))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"concurrency": 40}, ("concurrency 20 → 40",)),
        ({"url": "http://b/", "keepalive": False}, ("URL http://a/ → http://b/", "keep-alive on → off")),
        ({"method": "POST", "body": "x"}, ("method GET → POST", "other body")),
        ({"tls": Tls(verify=False)}, ("other TLS",)),
        ({"paths": PathList(pattern="/{1..9}")}, ("other paths",)),
        ({"connect_to": "c:80"}, ("connect to none → c:80",)),
        ({"timeout": 5.0}, ("timeout 30 → 5",)),
        ({"requests_per_connection": 5}, ("requests per connection none → 5",)),
        ({"think_time": ThinkTime(seconds=1.0), "cookies": True}, ("other think time", "cookies off → on")),
        # How long it lasts and who counts does not matter, nor what only open load has.
        ({"requests": None, "duration": 60.0, "workers": 2, "cpus": (1,), "tick": 0.2, "warmup": 5.0}, ()),
        ({"arrivals": "poisson", "max_in_flight": 5}, ()),
    ],
)
def test_words(changed: dict[str, object], words: tuple[str, ...]) -> None:
    other = msgspec.structs.replace(PLAN, **changed)
    assert differences(PLAN, other) == words
    assert bool(differences(other, PLAN)) == bool(words)


def test_open_load() -> None:
    assert differences(PLAN, OPEN) == ("c=20 → 2000/s",)
    assert differences(OPEN, msgspec.structs.replace(OPEN, concurrency=5)) == ()
    assert differences(OPEN, msgspec.structs.replace(OPEN, rate=1000.0)) == ("rate 2000 → 1000",)
    assert differences(OPEN, msgspec.structs.replace(OPEN, arrivals="poisson")) == ("arrivals even → poisson",)


def test_a_log_is_compared_by_its_name_and_speed() -> None:
    log = LogReplay(file="a.log", speed=2.0)
    planned = LoadPlan(url="http://a/", replay=log)
    read = msgspec.structs.replace(planned, replay=msgspec.structs.replace(log, seconds=60.0), requests=9)
    assert differences(planned, read) == ()
    assert differences(planned, msgspec.structs.replace(planned, replay=LogReplay(file="a.log"))) == ("other log",)
    assert differences(PLAN, planned)[0] == "c=20 → a.log ×2"


def test_a_ladder_as_a_whole_and_by_its_rungs() -> None:
    other = msgspec.structs.replace(LADDER, stages=LADDER.stages[:1])
    assert differences(LADDER, other) == ("other load levels",)
    rung = msgspec.structs.replace(LADDER, concurrency=2, duration=5.0)
    assert differences(rung, msgspec.structs.replace(PLAN, concurrency=2)) == ()
    assert differences(rung, msgspec.structs.replace(rung, concurrency=1)) == ("concurrency 2 → 1",)


def test_named_requests_take_the_place_of_the_url() -> None:
    mixed = msgspec.structs.replace(PLAN, mix=(Request(name="one", url="http://a/1"),))
    assert differences(mixed, msgspec.structs.replace(mixed, url="http://elsewhere/")) == ()
    assert differences(PLAN, mixed) == ("other requests",)


def test_no_secret_is_in_the_words() -> None:
    one = LoadPlan(url="http://me:word@a/", headers=(("Authorization", "one"),), body="token=1", requests=1)
    other = LoadPlan(url="http://b/", headers=(("Cookie", "two"),), body="token=2", requests=1)
    said = " ".join(differences(one, other))
    assert said == "URL http://a/ → http://b/ other headers other body"
