"""Redaction: no value of an event contains a secret, and everything else is unchanged."""

import base64
import html
import json
import shlex
import time
import types
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Annotated, Any, Literal, Union, get_args, get_origin
from urllib.parse import quote, quote_plus

import msgspec
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from cockpit.model.clock import Clock
from cockpit.model.events import (
    AnyEvent,
    ChangeBegun,
    HostChanged,
    HostSample,
    KnobRead,
    RunStarted,
    TailText,
    decode,
    encode,
)
from cockpit.model.histogram import EMPTY, Histogram
from cockpit.model.host.samples import HostConfig, StatusPage
from cockpit.model.knobs import Knob, Setting
from cockpit.model.load.plan import REDACTED, LoadPlan, TargetVariant
from cockpit.model.recorded import Name
from cockpit.model.study import Observation, Study, StudyBegun, Variant
from cockpit.profiles.profile import Profile
from cockpit.recording.redaction import SHORTEST_INSIDE, Redactor
from cockpit.recording.secrets import Secrets
from cockpit.session.live_load import LiveLoad
from tests.hostile.measuring import THOROUGH
from tests.session.events import reading

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
FINITE = st.floats(allow_nan=False, allow_infinity=False)


def events(text: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    """Any event; all its strings and mapping keys are drawn from `text`, except literals."""
    return st.one_of([_of(kind, text) for kind in get_args(AnyEvent)])


def _of(kind: Any, text: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    simple: dict[Any, st.SearchStrategy[Any]] = {
        str: text,
        int: INT64,
        float: FINITE,
        bool: st.booleans(),
        bytes: text.map(lambda value: value.encode()),
        types.NoneType: st.none(),
        Histogram: st.just(EMPTY),
    }
    if kind in simple:
        return simple[kind]
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        fields = msgspec.structs.fields(kind)
        needed = {field.name: _of(field.type, text) for field in fields if field.required}
        optional = {field.name: _of(field.type, text) for field in fields if not field.required}
        return st.fixed_dictionaries(needed, optional=optional).map(lambda values: kind(**values))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return st.sampled_from(kind)
    parts = get_args(kind)
    if get_origin(kind) is Annotated:
        return _of(parts[0], text)
    if get_origin(kind) is Literal:
        return st.sampled_from(parts)
    if get_origin(kind) in (Union, types.UnionType):
        return st.one_of([_of(part, text) for part in parts])
    if get_origin(kind) is dict:
        return st.dictionaries(_of(parts[0], text), _of(parts[1], text), max_size=2)
    if get_origin(kind) is tuple and parts[-1] is ...:
        return st.lists(_of(parts[0], text), max_size=2).map(tuple)
    if get_origin(kind) is tuple:
        return st.tuples(*(_of(part, text) for part in parts))
    raise TypeError(f"no strategy for {kind}")


TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
SECRETS = st.one_of(TEXT, st.from_regex(r"[0-9]{1,8}", fullmatch=True), st.sampled_from(["recorded", "(not ", "event"]))


SECRET = st.shared(SECRETS, key="secret")
WITH_SECRET = st.one_of(SECRET, st.builds(lambda a, secret, b: a + secret + b, TEXT, SECRET, TEXT))
EVENTS = events(st.one_of(TEXT, WITH_SECRET))
PLAIN_EVENTS = events(TEXT)
PRINTABLE = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=5, max_size=20)


def values(value: object, kind: Any = None) -> Iterator[tuple[bool, str]]:
    """All strings of an event except keys of mappings, with whether each is a name."""
    if isinstance(value, str | bytes):
        yield kind == Name, value if isinstance(value, str) else value.decode()
    elif isinstance(value, msgspec.Struct):
        for field in msgspec.structs.fields(type(value)):
            yield from values(getattr(value, field.name), field.type)
    elif isinstance(value, dict):
        for item in value.values():
            yield from values(item)
    elif isinstance(value, tuple):
        kinds = get_args(kind)
        for item, inner in zip(value, kinds[:1] * len(value) if kinds[-1] is ... else kinds, strict=True):
            yield from values(item, inner)


def emptied(value: Any) -> Any:
    """The event with all string values replaced by "", leaving keys and numbers."""
    if isinstance(value, dict):
        return {key: emptied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [emptied(item) for item in value]
    return "" if isinstance(value, str) else value


@settings(max_examples=300 if THOROUGH else 100, suppress_health_check=list(HealthCheck))
@given(SECRET, EVENTS)
def test_any_secret_in_any_event_is_redacted(secret: str, event: AnyEvent) -> None:
    cleaned = Redactor([secret]).event(event)
    assert type(cleaned) is type(event)
    assert decode(encode(cleaned)) == cleaned
    before, after = (json.loads(encode(item)) for item in (event, cleaned))
    assert emptied(after) == emptied(before)
    for (name, old), (_, new) in zip(values(event), values(cleaned), strict=True):
        if name:
            assert new == old
            continue
        assert not secret or old != secret or new != secret
        assert len(secret) < SHORTEST_INSIDE or secret not in new
        if secret and old != secret and len(secret) < SHORTEST_INSIDE:
            assert new == old


@settings(max_examples=150 if THOROUGH else 50, suppress_health_check=list(HealthCheck))
@given(st.from_regex(r"[a-z]{5,9}", fullmatch=True), PLAIN_EVENTS)
def test_event_without_secret_is_same_object(secret: str, event: AnyEvent) -> None:
    text = encode(event).decode()
    assume(secret not in text and base64.b64encode(secret.encode()).decode()[:6] not in text)
    assert Redactor([secret]).event(event) is event


def _as_nginx(text: str) -> str:
    return "".join(chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\x{byte:02X}" for byte in text.encode())


FORMS: list[Callable[[str], str]] = [
    str,
    lambda text: quote(text, safe=""),
    lambda text: quote(text, safe="").lower() if text.islower() else quote(text, safe=""),
    quote_plus,
    json.dumps,
    lambda text: json.dumps(text, ensure_ascii=False),
    lambda text: json.dumps(json.dumps({"message": text})),
    html.escape,
    shlex.quote,
    _as_nginx,
    lambda text: text.replace("\\", "\\\\").replace('"', '\\"'),
]


@settings(max_examples=100 if THOROUGH else 30)
@given(secret=st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=5, max_size=20))
def test_encoded_secret_is_redacted(secret: str) -> None:
    redactor = Redactor([secret])
    for form in FORMS:
        encoded = form(secret)
        cleaned = redactor.text(f"before {encoded} after")
        assert encoded.strip("'\"") not in cleaned or encoded.strip("'\"") in "before  after"


@settings(max_examples=100 if THOROUGH else 50)
@given(before=st.binary(max_size=9), secret=PRINTABLE, after=st.binary(max_size=9))
def test_secret_inside_base64_is_redacted(before: bytes, secret: str, after: bytes) -> None:
    """As in `Authorization: Basic`, at any offset."""
    coded = base64.b64encode(before + secret.encode() + after).decode()
    cleaned = Redactor([secret]).text(f"Basic {coded}")
    # If the secret is part of the usual replacement text, another text is used; base64 has no parentheses.
    assert coded not in cleaned and "(" in cleaned


def profile_with(**fields: Any) -> Profile:
    plan = LoadPlan(url="http://bench/", headers=(("Authorization", "Bearer 70000"),))
    host = HostConfig(name="bench:70000", status=(StatusPage(kind="nginx", url="http://l/", auth="bench:70000"),))
    return Profile(name="p", plan=plan, hosts=(host,), **fields)


def test_numeric_secret_keeps_numbers_and_names() -> None:
    secrets = Secrets(profile_with())
    sample = HostSample(t=70000.0, host="bench:70000", round_trip=0.0, reading=reading(70000.0))
    assert secrets.redact(sample) is sample
    text = TailText(t=70000.0, host="bench:70000", tail=70000, lines=("login 70000 ok", "port 170000"))
    assert secrets.redact(text) == msgspec.structs.replace(text, lines=(f"login {REDACTED} ok", f"port 1{REDACTED}"))
    lost = HostChanged(t=1.0, host="bench:70000", condition="lost", detail="auth bench:70000 refused")
    assert secrets.redact(lost) == msgspec.structs.replace(lost, detail=f"auth {REDACTED} refused")


def test_secret_without_letters_is_redacted_in_samples() -> None:
    """It has no form that could be searched in the encoded event, so each sample is walked."""
    known = reading(1.0)
    processes = (msgspec.structs.replace(known.processes[0], command=f"login {'-.' * 8}"),)
    sample = HostSample(t=1.0, host="web1", round_trip=0.0, reading=msgspec.structs.replace(known, processes=processes))
    assert b"-.-." not in encode(Redactor(["-." * 8]).event(sample))


def test_url_host_and_port_are_not_redacted() -> None:
    secrets = Secrets(profile_with())
    run = RunStarted(t=0.0, run=1, plan=LoadPlan(url="http://bench:70000@h:70000/70000?token=70000"))
    redacted = secrets.redact(run)
    assert isinstance(redacted, RunStarted)
    assert redacted.plan.url == f"http://{REDACTED}@h:70000/{REDACTED}?token={REDACTED}"


def test_short_secret_is_redacted_only_as_whole_value() -> None:
    knob = Knob(name="Pin", host="bench:70000", secret=True, key="Pin", file="/f", kind="keyvalue")
    secrets = Secrets(profile_with(knobs=(knob,)))
    read = secrets.redact(KnobRead(t=0, knob="Pin", host="bench:70000", value="42"))
    assert isinstance(read, KnobRead) and read.value == REDACTED
    text = TailText(t=0, host="bench:70000", tail=0, lines=("42", "420 ms"))
    assert secrets.redact(text) == msgspec.structs.replace(text, lines=(REDACTED, "420 ms"))


def test_secret_values_in_profile_are_redacted_from_start() -> None:
    """A process list may show `cockpit tune P set Token=…` before the change begins."""
    knob = Knob(name="Token", host="bench:70000", secret=True, kind="keyvalue", values=("opensesame", "other-one"))
    variants = (Variant(name="a", set=(("Token", "from-an-arm"), ("Plain", "shown"))),)
    observation = Observation(name="l", host="bench:70000", command="curl -H 'X: 70000'")
    study = Study(plan=LoadPlan(url="http://bench/"), variants=variants, observations=(observation,), secret=("Token",))
    secrets = Secrets(profile_with(knobs=(knob,), study=study))
    line = TailText(t=0, host="bench:70000", tail=0, lines=("set Token=from-an-arm", "opensesame"))
    assert secrets.redact(line) == msgspec.structs.replace(line, lines=(f"set Token={REDACTED}", REDACTED))
    study_begun = secrets.redact(StudyBegun(t=0, study=study.without_secrets(), steps=1, fingerprint=study.fingerprint))
    assert isinstance(study_begun, StudyBegun)
    assert study_begun.study.variants[0].set == (("Token", REDACTED), ("Plain", "shown"))
    assert study_begun.fingerprint == study.fingerprint
    assert study_begun.study.observations[0].command == f"curl -H 'X: {REDACTED}'"


def test_secrets_of_later_plans_and_of_both_variants_are_redacted() -> None:
    secrets = Secrets(profile_with())
    variants = tuple(TargetVariant(name=name, url=f"http://user:{name}-secret@h/") for name in ("base", "head"))
    load = LiveLoad(LoadPlan(url="http://bench/", variants=variants), Clock(), lambda _: None, learn=secrets.learn_plan)
    load.set_plan(LoadPlan(url="http://bench/", headers=(("Authorization", "Bearer typed-in-the-form"),)))
    line = "base-secret head-secret typed-in-the-form"
    assert secrets.text(line) == " ".join([REDACTED] * 3)


@pytest.mark.parametrize(
    ("url", "auth"), [("http://sk-live-123:@h/", ""), ("http://sk-live-123@h/", ""), ("http://h/", "sk-live-123:")]
)
def test_user_without_password_is_a_secret(url: str, auth: str) -> None:
    page = StatusPage(kind="nginx", url="http://l/", auth=auth)
    profile = Profile(name="p", plan=LoadPlan(url=url), hosts=(HostConfig(name="web1", status=(page,)),))
    sent = base64.b64encode(b"sk-live-123:").decode()
    assert Secrets(profile).text(f"sk-live-123 {sent}") == f"{REDACTED} {REDACTED}"
    assert Secrets(profile_with()).text(":") == ":"


def test_values_of_secret_change_are_redacted() -> None:
    knob = Knob(name="Token", host="bench:70000", secret=True, kind="keyvalue")
    secrets = Secrets(profile_with(knobs=(knob,)))
    settings_ = (Setting(knob="Token", old='a"\\b\n1', new="70000e5"),)
    secrets.redact(ChangeBegun(t=0, change="A", host="bench:70000", settings=settings_, diff='-a"\\b'))
    line = TailText(t=0, host="bench:70000", tail=0, lines=(json.dumps({"log": 'a"\\b\n1'}), "70000e5"))
    assert secrets.redact(line) == msgspec.structs.replace(line, lines=('{"log": "(not recorded)"}', REDACTED))


def test_search_is_linear_in_hostile_text() -> None:
    """Lines of escape characters only, which take seconds if each position is searched to the end."""
    redactor = Redactor(["\\\\\\\\\\", "'\"'\"'\"", "     ", "%41%41%41"])
    for part in ("\\", "'", '"', " ", "+", "%", "\\\\x", "&#0"):
        started = time.process_time()
        redactor.text(part * (50_000 // len(part)))
        assert time.process_time() - started < 2.5


def test_request_body_echoed_by_a_tail_is_redacted() -> None:
    body = "user=x&password=hunter22"
    profile = Profile(name="x", plan=LoadPlan(url="http://a/", concurrency=1, method="POST", body=body))
    event = TailText(t=1.0, host="web1", tail=0, lines=(f"POST / {body} 200",))
    assert Secrets(profile).redact(event).lines == (f"POST / {REDACTED} 200",)
