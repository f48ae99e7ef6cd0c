"""Profiles that are read and written; a mistake is one line: file, key, what was found, what is allowed."""

import re
import resource
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cockpit.analysis.verdicts.wait import FIRST
from cockpit.analysis.windows import GUARD
from cockpit.model.errors import ProfileError, UsageError
from cockpit.model.host.samples import HostConfig, StatusPage
from cockpit.model.knobs import Knob
from cockpit.model.load.plan import Extraction, ThinkTime
from cockpit.profiles.reader import parse_profile, read_profile
from cockpit.profiles.writing import Draft, profile_text, write_profile

CHAIN = (
    '[target]\nurl = "http://web1/"\n[[request]]\nname = "a"\nextract = {id = "json:a.0"}\n[[request]]\nname = "b"\n'
)
MISTAKES = tomllib.loads(Path(__file__).with_name("mistakes.toml").read_text())
TARGET = '[target]\nurl = "http://web1/"\n'


def test_a_whole_profile() -> None:
    text = (
        'question = "Why?"\n[target]\nurl = "http://web1"\n[load]\nconcurrency = 20\nrequests = "10k"\n'
        'keepalive = false\n[[host]]\nname = "web1"\nssh = "root@web1"\n[[knob]]\nname = "K"\nhost = "web1"\n'
        'file = "/f"\ndirective = "D"\ntest = "t"\nreload = "r"\n[check]\nthresholds = ["p99 < 50ms"]\n'
    )
    profile = parse_profile(text, "x", "x.toml")
    assert (profile.plan.url, profile.plan.requests, profile.plan.duration) == ("http://web1/", 10_000, None)
    assert (profile.hosts[0].ssh, profile.knobs[0].directive) == ("root@web1", "D")
    assert profile.thresholds == ("p99 < 50ms",)
    assert parse_profile(TARGET, "x", "x").plan.duration == 10, "without an end it lasts ten seconds"


def test_two_variants_are_a_duet_without_a_target() -> None:
    variants = "".join(f'[[variant]]\nname = "{name}"\nurl = "http://{name}/"\n' for name in ("old", "new"))
    plan = parse_profile(variants, "x", "x").plan
    assert plan.url == "http://old/" and [variant.url for variant in plan.variants] == ["http://old/", "http://new/"]
    assert (plan.duration, plan.extend) == (FIRST + GUARD + 1, 120 - FIRST - GUARD - 1), "until the verdict"
    assert parse_profile(f'{variants}[load]\nduration = "30s"\n', "x", "x").plan.seconds == 30
    replayed = parse_profile(f'{variants}[load]\nreplay_log = "mistakes.toml"\n', "x", "x", Path(__file__).parent).plan
    assert (replayed.duration, replayed.extend) == (120, 0), "a log cannot be extended"
    with pytest.raises(ProfileError, match="variant: conflicts with requests"):
        parse_profile(f"{variants}[load]\nrequests = 10\n", "x", "x")


@pytest.mark.parametrize("group", MISTAKES)
def test_a_mistake_is_named_in_one_line(group: str) -> None:
    head = MISTAKES[group]["head"]
    for text, words in MISTAKES[group]["cases"]:
        with pytest.raises(ProfileError) as caught:
            parse_profile(head + text, "x", "x.toml")
        error = str(caught.value)
        assert error.startswith("x.toml: ") and words in error and "\n" not in error and "sesame" not in error


def test_tails_and_status_pages() -> None:
    text = (
        '[[host]]\nname = "web1"\n'
        'tail = ["tail -F /var/log/apache2/error.log", "sar -b 1"]\n'
        'status = [{ kind = "apache", url = "http://localhost/server-status?auto" },\n'
        '  { kind = "tomcat", url = "https://localhost:8443/manager/status?XML=true", auth = "me:sesame" }]\n'
    )
    host = parse_profile(TARGET + text, "x", "x").hosts[0]
    assert host.tail == ("tail -F /var/log/apache2/error.log", "sar -b 1")
    assert host.status[0] == StatusPage(kind="apache", url="http://localhost/server-status?auto")
    assert host.status[1].auth == "me:sesame"
    assert "sesame" not in repr(host.without_secrets())


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


def test_think_times() -> None:
    for text, think_time in (
        ("0", None),
        ("0.5", ThinkTime(seconds=0.5)),
        ('"500ms"', ThinkTime(seconds=0.5)),
        ('"0.2s to 2s"', ThinkTime(seconds=0.2, most=2.0, distribution="uniform")),
        ('"1s exponential"', ThinkTime(seconds=1.0, distribution="exponential")),
    ):
        plan = parse_profile(TARGET + f"[load]\nrequests_per_connection = 7\nthink_time = {text}", "x", "x").plan
        assert (plan.think_time, plan.requests_per_connection) == (think_time, 7)


def test_open_load_and_paths(tmp_path: Path) -> None:
    (tmp_path / "urls").write_text("/a.jpg\n# none\nhttp://web1/b.jpg?x=1\n")
    text = TARGET + 'urls = "%s"\norder = "once"\nseed = 7\n[load]\nrate = 2000\narrivals = "poisson"\n'
    pattern = parse_profile(text % "/img/{00001..15000}.jpg", "x", "x").plan
    assert pattern.paths is not None and pattern.paths.pattern == "/img/{00001..15000}.jpg"
    assert (pattern.rate, pattern.open, pattern.duration) == (2000, True, None)
    listed = parse_profile(text % "urls", "x", "x", tmp_path).plan
    assert listed.paths is not None and listed.paths.listed == ("/a.jpg", "/b.jpg?x=1")


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


TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=40)


def test_everything_comes_back() -> None:
    host = HostConfig(
        name="web1",
        ssh="root@web1",
        processes=("apache2",),
        tail=("tail -n 3 -F /var/log/apache2/error.log",),
        status=(StatusPage(kind="apache", url="http://localhost/server-status?auto"),),
    )
    knob = Knob(
        name="KeepAlive",
        host="web1",
        file="/etc/apache2/apache2.conf",
        directive="KeepAlive",
        test="apachectl -t",
        reload="apachectl graceful",
        values=("On", "Off"),
    )
    sysctl = Knob(name="somaxconn", host="web1", kind="sysctl", key="net.core.somaxconn", min=1)
    draft = Draft(
        url="http://web1/hello.html",
        question="Is it?",
        concurrency=7,
        duration="90s",
        keepalive=False,
        hosts=(host,),
        knobs=(knob, sysctl),
        others=(
            (replace(sysctl, name="backlog"), "128"),
            (replace(knob, name="Key", secret=True), "s3"),
        ),
        notes={"web1": ("two\nlines = 1",)},
    )
    read = parse_profile(profile_text(draft), "new", "new")
    assert (read.question, read.plan.url) == ("Is it?", "http://web1/hello.html")
    assert (read.plan.concurrency, read.plan.duration, read.plan.keepalive) == (7, 90.0, False)
    assert read.hosts == (host,)
    assert [one.name for one in read.knobs] == ["KeepAlive", "somaxconn"]
    assert (read.knobs[0].values, read.knobs[0].section, read.knobs[1].min) == (("On", "Off"), None, 1)
    text = profile_text(draft)
    assert (
        f"# backlog, now 128: {sysctl.help}\n# [[knob]]\n" in text
        and "# Key, now (secret)" in text
        and "s3" not in text
    )
    whole = parse_profile(re.sub(r"(?m)^# (?=\[\[knob|\w+ = )", "", text), "new", "new")
    assert [one.name for one in whole.knobs] == ["KeepAlive", "somaxconn", "backlog", "Key"]


@given(TEXTS, TEXTS, TEXTS)
def test_no_text_breaks_the_file(question: str, processes: str, note: str) -> None:
    host = HostConfig(name="h", processes=(processes,) if processes else ())
    draft = Draft(url="http://web1/", question=question, hosts=(host,), notes={"h": (note,)})
    read = parse_profile(profile_text(draft), "new", "new")
    assert read.question == question.strip()
    assert read.hosts == (host,)


def test_writing_keeps_files_and_refuses_invalid_profiles(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match=r"target\.url: found 'ftp://x/'"):
        profile_text(Draft(url="ftp://x/"))
    path = tmp_path / "new" / "folder" / "p.toml"
    write_profile(path, "one")
    with pytest.raises(UsageError, match="exists already"):
        write_profile(path, "two")
    assert path.read_text() == "one"
    write_profile(path, "two", replace=True)
    assert path.read_text() == "two"
    with pytest.raises(UsageError, match="cannot be created"):
        write_profile(path / "below" / "it", "three")
    with pytest.raises(UsageError, match="cannot be written"):
        write_profile(path.parent, "three", replace=True)
