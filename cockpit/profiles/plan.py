"""Turn the sections of a profile, or flags, into a valid load plan."""

from __future__ import annotations

import base64
import re
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast, get_args
from urllib.parse import quote, urljoin, urlsplit

from msgspec.structs import replace

from cockpit.model.load.checks import Invalid, check_plan, conflict
from cockpit.model.load.options import LOAD_OPTIONS, LONGEST, LoadOption
from cockpit.model.load.plan import (
    Expect,
    Extraction,
    ExtractionSource,
    LoadPlan,
    LogReplay,
    PathList,
    Request,
    Stage,
    TargetVariant,
    ThinkTime,
    Tls,
)
from cockpit.model.units import parse_count, parse_duration, parse_ramp, parse_rate, parse_share
from cockpit.profiles.files import NamedFiles
from cockpit.profiles.sections import (
    DuetSection,
    ExpectSection,
    LoadLevel,
    LoadSection,
    RequestSection,
    TargetSection,
    TlsSection,
)

# Default duration (s) of a run, and of a duet at most; the shortest time in which a duet can conclude.
LONGEST_RUN, LONGEST_DUET, SHORTEST_DUET = 10.0, 120.0, 39.0
SYSTEM_TLS = TlsSection()
NAMED = NamedFiles()
NO_BODY: dict[str, Any] = {"body": None, "binary": None}
_RANGE = re.compile(r"\{\d+\.\.\d+\}")
# host:port, also [::1]:port, and a path.
_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s/:@\[\]]+):\d{1,5}([/?]\S*)?")


@contextmanager
def errors_for_key(key: str) -> Iterator[None]:
    """Context manager that reports an invalid value, or a refused file, under this key."""
    try:
        yield
    except Invalid as error:
        raise Invalid(key, error.problem) from None
    except ValueError as error:
        raise Invalid(key, str(error)) from None


def make_plan(
    target: TargetSection,
    load: LoadSection,
    tls: TlsSection = SYSTEM_TLS,
    mix: tuple[RequestSection, ...] = (),
    files: NamedFiles = NAMED,
    duration: float = LONGEST_RUN,
) -> LoadPlan:
    """Return the plan of the sections, which ends after `duration` seconds if they set no end. `files` reads the files
    named in them. Raises Invalid."""
    url = checked_url(target.url)
    given = {name: getattr(load, name) for name in LOAD_OPTIONS}
    shared = {name: _parse_option(option, given[name]) for name, option in LOAD_OPTIONS.items()}
    shared |= _load_of("load", given["concurrency"], given["rate"])
    stages = tuple(map(_stage, load.stages))
    replay = replay_of(load.replay_log, load.replay_speed, files)
    if not (shared["requests"] or shared["duration"] or stages or target.order == "once" or replay):
        shared["duration"] = duration
    plan = LoadPlan(
        url=url,
        headers=headers_of("load", load.headers.items(), load.auth),
        **body_of("load", load.body, load.body_file, files),
        expect=_expect(target.expect),
        mix=tuple(_request(url, request, files) for request in mix),
        paths=paths_of(target.urls, target.order, target.seed, files, url) if target.urls else None,
        replay=replay,
        stages=stages,
        think_time=think_time_of(load.think_time),
        tls=Tls(
            verify=tls.verify,
            sni=tls.sni,
            ca=_file("tls.ca", tls.ca, files),
            cert=_file("tls.cert", tls.cert, files),
            key=_file("tls.key", tls.key, files),
            resumption=tls.resumption,
        ),
        connect_to=target.connect_to,
        unix=target.unix,
        **shared,
    )
    check_plan(plan)
    return plan


def with_variants(plan: LoadPlan, sections: Sequence[DuetSection], hosts: Container[str]) -> LoadPlan:
    """Return the plan of a duet of the [[variant]] blocks; without any, the plan as it is. Raises Invalid."""
    if not sections:
        return plan
    variants = []
    for section in sections:
        key = f"variant {section.name}"
        if section.host and section.host not in hosts:
            raise Invalid(f"{key}.host", f"found {section.host!r}; allowed: a [[host]] of this file")
        with errors_for_key(f"{key}.url"):
            variants.append(TargetVariant(name=section.name, url=checked_url(section.url), host=section.host))
    duet = replace(plan, variants=tuple(variants))
    check_plan(duet)
    return until_verdict(duet, plan.duration or LONGEST_DUET)


def until_verdict(plan: LoadPlan, longest: float) -> LoadPlan:
    """Return the plan of a duet that ends with its verdict, after `longest` seconds of load at the latest."""
    # A replayed log cannot be extended.
    duration = longest if plan.replay else min(longest, SHORTEST_DUET)
    return replace(plan, duration=duration, extend=longest - duration)


def replay_of(log: str | None, speed: float | None, files: NamedFiles) -> LogReplay | None:
    """Return the replay of an access log; None without a log. Raises Invalid."""
    if log is None:
        if speed is not None:
            raise Invalid("load.replay_speed", "found without a log; allowed: together with a log to replay")
        return None
    return LogReplay(file=_file("load.replay_log", log, files), speed=speed or 1.0)


def checked_url(url: str) -> str:
    """Return a URL with scheme (default: http) and path. Raises Invalid."""
    shown = f"found {without_credentials(url)!r}"
    url = _checked_characters("target.url", url if "://" in url else f"http://{url}")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        # The error message may contain a part of the password.
        reason = "" if "@" in url else f" ({error})"
        raise Invalid("target.url", f"{shown}{reason}; allowed: http://host[:port]/path") from None
    named = parts.hostname and not parts.netloc.endswith(":")
    if parts.scheme not in ("http", "https") or not named or port == 0 or " " in parts.netloc:
        raise Invalid("target.url", f"{shown}; allowed: http://host[:port]/path")
    return url if parts.path else parts._replace(path="/").geturl()


def _checked_characters(key: str, url: str) -> str:
    """Return the URL or path, in which letters outside of ASCII and spaces are encoded later. Raises Invalid."""
    if char := next((char for char in url if char != " " and (char.isspace() or not char.isprintable())), None):
        raise Invalid(key, f"found {without_credentials(url)!r}; allowed: no {char!a}; write it as {quote(char)}")
    return url


def is_address(text: str) -> bool:
    """Return whether a text is a URL, or host:port with an optional path."""
    return "://" in text or _ADDRESS.fullmatch(text) is not None


def without_credentials(text: str) -> str:
    """Remove credentials from a possibly invalid URL for an error message: all text up to the last `@`."""
    before, at, after = text.rpartition("@")
    scheme, slashes, _ = before.partition("//")
    return f"{scheme if slashes else ''}{slashes}…@{after}" if at else text


def headers_of(key: str, headers: Iterable[tuple[str, str]], auth: str | None) -> tuple[tuple[str, str], ...]:
    """Return the headers; `auth` (user:password) becomes a header for basic authentication. Raises Invalid."""
    checked = tuple(headers)
    if auth is None:
        return checked
    if any(name.lower() == "authorization" for name, _ in checked):
        raise Invalid(f"{key}.auth", conflict("the header Authorization"))
    if ":" not in auth:
        raise Invalid(f"{key}.auth", "found no colon; allowed: user:password")
    return (*checked, ("Authorization", "Basic " + base64.b64encode(auth.encode()).decode()))


def body_of(key: str, body: str | None, file: str | None, files: NamedFiles) -> dict[str, Any]:
    """Return `body` and `binary` of a plan or a request, given as text or as a file. Raises Invalid."""
    if file is None:
        return {"body": body, "binary": None}
    if body is not None:
        raise Invalid(f"{key}.body", conflict("body_file"))
    raw = _bytes(f"{key}.body_file", file, files)
    try:
        return {"body": raw.decode("utf-8"), "binary": None}
    except UnicodeDecodeError:
        return {"body": None, "binary": raw}


def paths_of(urls: str, order: Any, seed: int, files: NamedFiles, target: str) -> PathList:
    """Return the paths of a pattern (it contains `{`), or of a file with one path or URL of the target per line. Raises
    Invalid."""
    if "{" in urls:
        if not urls.startswith("/") or set("{}") & set(_RANGE.sub("", urls)):
            raise Invalid(
                "target.urls", f"found {urls!r}; allowed: a pattern, e.g. /img/{{001..200}}.jpg, or a file name"
            )
        return PathList(pattern=urls, order=order, seed=seed)
    try:
        text = _bytes("target.urls", urls, files).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Invalid("target.urls", f"{urls}: is not UTF-8 text") from None
    lines = [line.strip(" \r") for line in text.split("\n")]
    listed = tuple(_path(line, target) for line in lines if line and not line.startswith("#"))
    if not listed:
        raise Invalid("target.urls", f"{urls}: contains no paths; allowed: one path per line, e.g. /img/1.jpg")
    return PathList(listed=listed, order=order, seed=seed)


def _path(line: str, target: str) -> str:
    parts, own = urlsplit(_checked_characters("target.urls", line)), urlsplit(target)
    path = parts._replace(scheme="", netloc="").geturl() or "/"
    if parts.netloc and (parts.scheme, parts.netloc) != (own.scheme, own.netloc):
        raise Invalid("target.urls", f"found {line!r}; allowed: only URLs of {own.scheme}://{own.netloc}")
    if not path.startswith("/"):
        raise Invalid("target.urls", f"found the line {line!r}; allowed: one path or URL per line, e.g. /img/1.jpg")
    return path


def _request(url: str, section: RequestSection, files: NamedFiles) -> Request:
    key = f"request {section.name}"
    body = body_of(key, section.body, section.body_file, files)
    return Request(
        name=section.name,
        url=checked_url(urljoin(url, section.path)) if section.path else url,
        method="POST" if body != NO_BODY and section.method == "GET" else section.method,
        headers=headers_of(key, section.headers.items(), section.auth),
        **body,
        weight=section.weight,
        expect=_expect(section.expect),
        extract=tuple(_extraction(f"{key}.extract", name, text) for name, text in section.extract.items()),
    )


def _extraction(key: str, name: str, text: str) -> Extraction:
    source, _, expression = (part.strip() for part in text.partition(":"))
    if source not in get_args(ExtractionSource) or not expression:
        raise Invalid(key, f"found {text!r}; allowed: header:NAME, json:items.0.id or regex:PATTERN")
    return Extraction(name=name, source=cast(ExtractionSource, source), expression=expression)


def _expect(expect: ExpectSection | None) -> Expect | None:
    if expect is None:
        return None
    statuses = (expect.status,) if isinstance(expect.status, int) else expect.status or ()
    return Expect(
        statuses=statuses,
        contains=expect.contains,
        matches=expect.matches,
        length=expect.length,
        sha256=expect.sha256.lower() if expect.sha256 else None,
    )


def _stage(level: LoadLevel) -> Stage:
    seconds = seconds_of("load.stages.duration", level.duration) or 0.0
    return Stage(duration=seconds, **_load_of("load.stages", level.concurrency, level.rate))


def _load_of(key: str, concurrency: Any, rate: Any) -> dict[str, Any]:
    """Return the load of a plan or a stage. Text may be a ramp such as `10:200`. Raises Invalid."""
    load = {"concurrency": concurrency, "rate": rate, "ramp_to": None}
    for name, value, parse in (("concurrency", concurrency, parse_count), ("rate", rate, parse_rate)):
        if not isinstance(value, str):
            continue
        with errors_for_key(f"{key}.{name}"):
            load[name], load["ramp_to"] = parse_ramp(value, parse)
    return load


def _parse_option(option: LoadOption, value: Any) -> Any:
    """Return a value of [load] in the form of a plan. Durations and counts may be strings. Raises Invalid."""
    key = f"load.{option.name}"
    if option.kind.parser in ("seconds", "wait"):
        return seconds_of(key, value, 0.0 if option.kind.parser == "wait" else None)
    with errors_for_key(key):
        return parse_count(value) if option.kind.parser == "positive" and isinstance(value, str) else value


def _file(key: str, name: str, files: NamedFiles) -> str:
    with errors_for_key(key):
        return files.existing(name) if name else ""


def _bytes(key: str, name: str, files: NamedFiles) -> bytes:
    with errors_for_key(key):
        return files.read(name)


def think_time_of(value: Any) -> ThinkTime | None:
    """Return a think time: `0.5s`, `0.2s to 2s` (uniform) or `1s exponential`; None if missing or 0. Raises Invalid."""
    key, text = "load.think_time", str(value)
    low, to, high = text.partition(" to ")
    try:
        if to:
            least, most = seconds_of(key, low, 0.0) or 0.0, seconds_of(key, high) or 0.0
            if least >= most:
                raise Invalid(key, "the minimum is not less than the maximum")
            return ThinkTime(distribution="uniform", seconds=least, most=most)
        mean = text.removesuffix(" exponential")
        seconds = None if value is None else seconds_of(key, mean, 0.0)
    except Invalid:
        raise Invalid(key, f"found {text!r}; allowed: e.g. 0.5s, 0.2s to 2s (a range), or 1s exponential") from None
    if not seconds:
        return None
    return ThinkTime(distribution="constant" if mean == text else "exponential", seconds=seconds)


def share_of(key: str, value: str | None) -> float | None:
    """Return a percentage of a profile as a fraction; None stays None. Raises Invalid."""
    if value is None:
        return None
    try:
        return parse_share(value)
    except ValueError as error:
        raise Invalid(key, f"found {error}") from None


def seconds_of(key: str, value: Any, least: float | None = None) -> float | None:
    """Return a duration of a profile in seconds; None stays None. `least` is allowed, too. Raises Invalid."""
    if value is None:
        return None
    with errors_for_key(key):
        seconds = parse_duration(value) if isinstance(value, str) else float(value)
    if not (0 < seconds <= LONGEST or seconds == least):
        raise Invalid(key, f"found {value!r}; allowed: greater than 0, at most 7 days")
    return seconds
