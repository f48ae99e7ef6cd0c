"""What is wrong in a profile is one line: file, key, what was found, what is allowed."""

import re
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cockpit.model.errors import ProfileError
from cockpit.model.load import Extraction, ThinkTime
from cockpit.profiles.reader import parse_profile, read_profile

CHAIN = (
    '[target]\nurl = "http://web1/"\n[[request]]\nname = "a"\nextract = {id = "json:a.0"}\n[[request]]\nname = "b"\n'
)
TARGET = '[target]\nurl = "http://web1/"\n'
KNOB = '[[knob]]\nname = "K"\nhost = "web1"\nfile = "/f"\ndirective = "D"\ntest = "t"\nreload = "r"\n'
HOST = '[[host]]\nname = "web1"\nssh = "root@web1"\nprocesses = ["apache2"]\n'


def test_a_whole_profile() -> None:
    text = (
        'question = "Why?"\n[target]\nurl = "http://web1"\n[load]\nconcurrency = 20\nrequests = "10k"\n'
        f'keepalive = false\n{HOST}{KNOB}[check]\nthresholds = ["p99 < 50ms"]\n'
    )
    profile = parse_profile(text, "x", "x.toml")
    assert (profile.plan.url, profile.plan.requests, profile.plan.duration) == ("http://web1/", 10_000, None)
    assert (profile.hosts[0].ssh, profile.knobs[0].directive) == ("root@web1", "D")
    assert profile.thresholds == ("p99 < 50ms",)


def test_without_an_end_it_lasts_ten_seconds() -> None:
    assert parse_profile(TARGET, "x", "x").plan.duration == 10


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = ", "x.toml: invalid TOML"),
        (
            "",
            "missing key 'target'; allowed: question, target, request, load, tls, host, generator, knob, action, check",
        ),
        (TARGET + "[load]\nconcurency = 3", "load: unknown key 'concurency'; did you mean concurrency?"),
        (TARGET + "[load]\nzzz = 3", ", … (all keys: cockpit schema profile)"),
        (TARGET + '[load]\nconcurrency = "x"', "load.concurrency: found 'x'; allowed: a whole number"),
        (TARGET + "[load]\nconcurrency = 0", "load.concurrency: found 0; allowed: a whole number >= 1"),
        (
            TARGET + "[load]\nrequests = 5\nduration = 3\nstages = [{duration = 1, concurrency = 1}]",
            "load.stages: conflicts with requests and duration; use stages alone",
        ),
        (
            TARGET + "[load]\nconcurrency = 9\nrequests = 5",
            "load.requests: found 5; allowed: at least the concurrency, 9",
        ),
        (TARGET + "[load]\nconcurrency = 1\nworkers = 2", "load.workers: found 2; allowed: at most the concurrency, 1"),
        (TARGET + "[load]\nduration = -3", "load.duration: found -3.0; allowed: more than 0"),
        (TARGET + '[load]\nduration = "long"', "load.duration: 'long' is not a duration"),
        (TARGET + '[load]\nheaders = {"A b" = "c"}', "load.headers: found 'A b'; allowed: a header name"),
        ('[target]\nurl = "ftp://x"', "target.url: found 'ftp://x'; allowed: http://host[:port]/path"),
        ('[target]\nurl = "http://x:99999/"', "target.url: found 'http://x:99999/'"),
        (TARGET + '[[host]]\nname = "a b"', "host.0.name: found 'a b'; allowed: a text matching"),
        (TARGET + HOST + HOST, "host.name: found 'web1' twice; choose unique names"),
        (TARGET + KNOB, "knob K.host: found 'web1'; allowed: a [[host]] of this file (none is defined)"),
        (TARGET + HOST + KNOB + 'kind = "iis"', "knob.0.kind: found 'iis'; allowed: apache"),
    ],
)
def test_bad_profiles(text: str, said: str) -> None:
    with pytest.raises(ProfileError) as caught:
        parse_profile(text, "x", "x.toml")
    assert str(caught.value).startswith("x.toml: ")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="no such profile"):
        read_profile(tmp_path / "none.toml")
    with pytest.raises(ProfileError, match="cannot be read"):
        read_profile(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b"question = '\xe9'")
    with pytest.raises(ProfileError, match="not UTF-8"):
        read_profile(tmp_path / "latin.toml")


def test_everything_a_load_can_be(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text("<a/>")
    (tmp_path / "ca.pem").touch()
    file = tmp_path / "p.toml"
    file.write_text(
        '[target]\nurl = "https://web1/base/"\nconnect_to = "10.0.0.1:8443"\n'
        '[load]\nwarmup = "5s"\nstages = [{concurrency = 1, duration = "1m"}, {concurrency = 24, duration = 60}]\n'
        'local_addresses = ["127.0.0.2"]\n[tls]\nca = "ca.pem"\nsni = "other"\n'
        '[[request]]\nname = "order"\npath = "order"\nbody_file = "a.xml"\nweight = 2\n'
        'expect = {status = 200, contains = "ok"}\n'
        '[[request]]\nname = "list"\npath = "/list"\nauth = "me:sesame"\nexpect = {status = [200, 204]}\n'
    )
    plan = read_profile(file).plan
    order, listing = plan.mix
    assert (order.url, order.method, order.body, order.weight) == ("https://web1/base/order", "POST", "<a/>", 2)
    assert (listing.url, listing.method) == ("https://web1/list", "GET")
    assert listing.expect is not None and listing.expect.statuses == (200, 204)
    assert dict(listing.headers)["Authorization"].startswith("Basic ")
    assert "Basic" not in repr(plan.without_secrets())
    assert [stage.concurrency for stage in plan.stages] == [1, 24]
    assert (plan.warmup, plan.duration, plan.requests, plan.open) == (5, None, None, False)
    assert (plan.tls.ca, plan.tls.sni, plan.connect_to) == (str(tmp_path / "ca.pem"), "other", "10.0.0.1:8443")


def test_a_chain_of_a_user_with_cookies() -> None:
    text = 'path = "/{id}/b"\nheaders = {X-Id = "{id}"}\nextract = {t = "regex: t=(.) ", h = "header:ETag"}\n'
    plan = parse_profile(CHAIN + text + "[load]\ncookies = true", "x", "x").plan
    assert plan.chained and plan.cookies and plan.connections_per_user == 1
    first, second = plan.mix
    assert first.extract == (Extraction(name="id", source="json", expression="a.0"),)
    assert [one.expression for one in second.extract] == ["t=(.)", "ETag"]
    assert second.url == "http://web1/{id}/b"


@pytest.mark.parametrize(
    ("text", "think_time"),
    [
        ("0", None),
        ("0.5", ThinkTime(seconds=0.5)),
        ('"500ms"', ThinkTime(seconds=0.5)),
        ('"0.2s to 2s"', ThinkTime(seconds=0.2, most=2.0, distribution="uniform")),
        ('"1s exponential"', ThinkTime(seconds=1.0, distribution="exponential")),
    ],
)
def test_think_times(text: str, think_time: ThinkTime | None) -> None:
    plan = parse_profile(TARGET + f"[load]\nrequests_per_connection = 7\nthink_time = {text}", "x", "x").plan
    assert (plan.think_time, plan.requests_per_connection) == (think_time, 7)


def test_open_load_and_paths(tmp_path: Path) -> None:
    (tmp_path / "urls").write_text("/a.jpg\n# none\nhttp://elsewhere/b.jpg?x=1\n")
    text = TARGET + 'urls = "%s"\norder = "once"\nseed = 7\n[load]\nrate = 2000\narrivals = "poisson"\n'
    pattern = parse_profile(text % "/img/{00001..15000}.jpg", "x", "x").plan
    assert pattern.paths is not None and pattern.paths.pattern == "/img/{00001..15000}.jpg"
    assert (pattern.rate, pattern.open, pattern.duration) == (2000, True, None)
    listed = parse_profile(text % "urls", "x", "x", tmp_path).plan
    assert listed.paths is not None and listed.paths.listed == ("/a.jpg", "/b.jpg?x=1")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TARGET + '[load]\nbody_file = "none"', "load.body_file: none: no such file"),
        (TARGET + '[load]\nbody = "a"\nbody_file = "b"', "load.body: conflicts with body_file"),
        (TARGET + '[load]\nauth = "me:a"\nheaders = {authorization = "b"}', "load.auth: conflicts with the header"),
        (TARGET + '[load]\nauth = "me"', "load.auth: found no colon; allowed: user:password"),
        (TARGET + "[load]\nstages = [{duration = 5}]", "load.stages: found a load level without exactly one of"),
        (TARGET + "[load]\nrate = 0", "load.rate: found 0; allowed: a number > 0"),
        (TARGET + '[[request]]\nname = "a"\n[[request]]\nname = "a"', "request.name: found 'a' twice"),
        (TARGET + 'urls = "none"', "target.urls: none: no such file"),
        (TARGET + '[target.expect]\nmatches = "("', "target.expect.matches: found '('"),
        (TARGET + '[tls]\nkey = "k"', "tls.key: k: no such file"),
        (TARGET + '[load]\nthink_time = "2s to 1s"', "load.think_time: found '2s to 1s'; allowed: e.g. 0.5s"),
        (
            TARGET + "[load]\nthink_time = 1\nrate = 5",
            "load.think_time: conflicts with a rate or a log; use closed load",
        ),
        (
            TARGET + "[load]\ncookies = true\nrate = 5",
            "load.cookies: conflicts with a rate or a log; use closed load",
        ),
        (TARGET + '[load]\ncookies = true\nheaders = {cookie = "a=b"}', "load.cookies: conflicts with"),
        (TARGET + "[load]\nconnections_per_user = 2", "load.connections_per_user: requires cookies"),
        (
            CHAIN + "[load]\nconnections_per_user = 2\ncookies = true",
            "load.connections_per_user: requires cookies, and",
        ),
        (CHAIN + "[load]\nrate = 2", "request.extract: conflicts with a rate or a log"),
        (CHAIN + "weight = 2", "request b.weight: conflicts with a chain"),
        (
            CHAIN + 'extract = {"a b" = "json:x"}',
            "request b.extract: found the name 'a b'; allowed: letters, digits and _",
        ),
        (
            CHAIN + 'extract = {a = "xpath:x"}',
            "found 'xpath:x'; allowed: header:NAME, json:items.0.id or regex:PATTERN",
        ),
        (CHAIN + 'extract = {a = "header:"}', "request b.extract: found 'header:'; allowed: header:NAME"),
        (CHAIN + 'extract = {a = "regex:("}', "request b.extract: found '(' (missing )"),
        (
            CHAIN + 'path = "/{later}"\n[[request]]\nname = "c"\nextract = {later = "json:x"}',
            "request b: {later} is used before",
        ),
        (TARGET + "[load]\nrequests_per_connection = 0", "requests_per_connection: found 0; allowed: a whole number"),
        (
            TARGET + "[load]\nrequests_per_connection = 2\nkeepalive = false",
            "conflicts with disabled keep-alive; use one of",
        ),
    ],
)
def test_bad_loads(text: str, said: str) -> None:
    with pytest.raises(ProfileError) as caught:
        parse_profile(text, "x", "x.toml")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = " + "[" * 100_000, "nested too deeply"),
        ("a = " + "{a = " * 100_000, "nested too deeply"),
        ("a" + ".a" * 100_000 + " = 1", "a key of more than 50 parts (at line 1)"),
        ("\n[a" + " . 'a'" * 100_000 + "]", "a key of more than 50 parts (at line 2)"),
        ('x = """\\""""""\n' + "a." * 100_000 + 'a = 1\ny = """x"""', "a key of more than 50 parts (at line 2)"),
        ("a = 1" + "0" * 10_000, "invalid TOML: Exceeds the limit"),
        ("# " + "x" * (1 << 20), "is larger than 1 MiB"),
    ],
    ids=["lists", "tables", "dotted key", "header", "behind a string", "digits", "size"],
)
def test_a_file_made_to_exhaust_the_reader_is_one_line(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "p.toml"
    file.write_text(text)
    with memory_limited(), pytest.raises(ProfileError, match=re.escape(said)) as caught:
        read_profile(file)
    assert "\n" not in str(caught.value)


@contextmanager
def memory_limited() -> Iterator[None]:
    """At most 512 MiB of address space more than now."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (512 << 20), before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def test_dots_in_text_are_no_key() -> None:
    text = TARGET + "[[request]]\nname = 'a'\nbody = '''\n" + "a." * 1000 + "'''\n# " + "a." * 1000
    assert parse_profile(text, "x", "x").plan.mix[0].body == "a." * 1000
