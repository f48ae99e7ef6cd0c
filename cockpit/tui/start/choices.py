"""The choices on the start screen, as lines: running servers, recordings, profiles, first steps. Pure."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Literal, NamedTuple

from rich.cells import cell_len

from cockpit.analysis.words.timeline import load_words
from cockpit.model.errors import UsageError
from cockpit.model.load.checks import Invalid
from cockpit.model.text import clock, count_text, milliseconds, sanitize, si
from cockpit.profiles.catalogue import ProfileEntry
from cockpit.profiles.plan import checked_url
from cockpit.recording.library import ChangeSummary, Recent
from cockpit.tui.key_table import MainKey, SessionKey, StartKey
from cockpit.tui.runs.strip_lines import ROLES
from cockpit.tui.status_lines import shortened
from cockpit.tui.terminal.styled_line import Line, clip, fit, left_and_right, length, right, rule
from cockpit.tuning.discovery.local_servers import LocalServer

Kind = Literal["demo", "url", "new", "profile", "recording", "server"]
# Minimum width for a row with less important facts.
_WIDE = 100
# Maximum cells of a name, of a target and of an effect.
_MAX_NAME = 24
_MAX_TARGET = 34
_MAX_EFFECT = 22
# Changes listed for the selected recording, the newest.
_MAX_CHANGES = 3


@dataclass(frozen=True)
class Choice:
    """The user's choice; `what` is a file or URL, or "" if none is needed. `processes`: pattern of a server's names."""

    kind: Kind
    what: str = ""
    processes: str = ""


@dataclass(frozen=True)
class StartChoice:
    """An entry of the list. `key` opens the entry; a filter searches `words`."""

    choice: Choice
    key: str = ""
    listed: ProfileEntry | None = None
    recent: Recent | None = None
    server: LocalServer | None = None
    words: str = ""

    @property
    def opens(self) -> bool:
        broken = (self.listed and self.listed.problem) or (self.recent and self.recent.info.problem)
        return not broken


@dataclass(frozen=True)
class ChoiceGroup:
    """Choices under a heading; `empty` is shown if there are none, `note` on the right of the heading."""

    heading: str
    choices: tuple[StartChoice, ...]
    empty: str = ""
    note: str = ""


@dataclass(frozen=True)
class StartChoices:
    profiles: Sequence[ProfileEntry] = ()
    recordings: Sequence[Recent] = ()
    servers: Sequence[LocalServer] = ()


BEGIN = (
    StartChoice(Choice("demo"), str(StartKey.DEMO), words="demo try"),
    StartChoice(Choice("url"), str(StartKey.URL), words="url load"),
    StartChoice(Choice("new"), str(StartKey.NEW), words="new profile"),
)
# Title, description, details and the effect of Enter.
_FIRST_STEPS = {
    "demo": (
        "try it on the demo",
        "an embedded web server and SSH host: nothing is installed, nothing remains",
        f"A prefork web server with low limits, watched over SSH. {SessionKey.TOGGLE}: start the load, {MainKey.TUNE}: "
        "change a setting and see its effect.",
        "Enter: open it   ·   cockpit demo",
    ),
    "url": (
        "load a URL",
        "requests/s and latency of any web server; no profile needed",
        "Asks for a URL with the flags of cockpit run, e.g. web1:8080/ -c 20 -z 60s, and opens the main screen.",
        "Enter: type a URL   ·   cockpit run http://…",
    ),
    "new": (
        "write a profile",
        "your URL and hosts; cockpit finds their servers and settings",
        "Asks for a URL, the hosts to watch (from your ssh_config) and the load; inspects the hosts for servers and "
        "offers their settings. Nothing is changed.",
        "Enter: start",
    ),
}
_ORIGINS = {"here": "in this folder", "yours": "your own", "shipped": "shipped with cockpit"}


def sections(choices: StartChoices | None, text: str = "", most: int | None = None) -> tuple[ChoiceGroup, ...]:
    """Group all choices, or only the choices with every word of `text`.

    This machine's running servers are first, then the user's recordings and profiles, the first steps, and the shipped
    profiles. For a new user, without recordings and profiles, the first steps are before these. At most `most`
    servers and recordings are listed (None: all). `choices` is None while they are loading.
    """
    profiles, recordings, servers = (choices.profiles, choices.recordings, choices.servers) if choices else ((), (), ())
    own = [entry for entry in profiles if entry.origin != "shipped"]
    shipped = [entry for entry in profiles if entry.origin == "shipped"]
    user_groups = (
        _recent_recordings(recordings, text, most),
        ChoiceGroup("your profiles", _profiles(own, text), f"No profiles of your own yet. {StartKey.NEW}: write one"),
    )
    first_steps = ChoiceGroup("begin", _matching(text, BEGIN))
    is_new = choices is not None and not recordings and not own
    groups = (
        _limited("running on this machine", _matching(text, map(_server_choice, servers)), "", most),
        *((first_steps, *user_groups) if is_new else (*user_groups, first_steps)),
        ChoiceGroup("shipped profiles", _profiles(shipped, text), note=str(len(shipped)) if not text else ""),
    )
    if not text:
        return tuple(group for group in groups if group.choices or group.empty)
    matching = tuple(group for group in groups if group.choices)
    return matching or (ChoiceGroup("no match", (), f"{StartKey.ALL}: show all"),)


def _recent_recordings(recordings: Sequence[Recent], text: str, most: int | None) -> ChoiceGroup:
    offers = _matching(
        text,
        [
            StartChoice(Choice("recording", recent.info.path), recent=recent, words=_recording_words(recent))
            for recent in recordings
        ],
    )
    return _limited("recent recordings", offers, "No recordings yet. Every session is recorded here.", most)


def _limited(title: str, offers: tuple[StartChoice, ...], empty: str, most: int | None) -> ChoiceGroup:
    note = f"{most} shown   {StartKey.MORE}: more" if most is not None and len(offers) > most else ""
    return ChoiceGroup(title, offers[:most], empty, note)


def _server_choice(server: LocalServer) -> StartChoice:
    choice = Choice("server", server.url, server.processes)
    return StartChoice(choice, server=server, words=f"{server.kind} {server.processes} {server.url}")


def _profiles(profiles: Sequence[ProfileEntry], text: str) -> tuple[StartChoice, ...]:
    choices = (StartChoice(Choice("profile", str(entry.path)), listed=entry, words=_words(entry)) for entry in profiles)
    return _matching(text, choices)


def _matching(text: str, offers: Iterable[StartChoice]) -> tuple[StartChoice, ...]:
    words = text.casefold().split()
    return tuple(offer for offer in offers if all(word in offer.words.casefold() for word in words))


def _words(entry: ProfileEntry) -> str:
    hosts = [host.name for host in entry.profile.hosts] if entry.profile else []
    knobs = [knob.name for knob in entry.profile.knobs] if entry.profile else []
    return " ".join((entry.name, entry.origin, entry.question, entry.target, entry.problem, *hosts, *knobs))


def _recording_words(recent: Recent) -> str:
    return " ".join(
        (
            *(recent.info.name, recent.info.session, recent.info.target),
            *(f"{change.label} {change.verdict}" for change in recent.changes),
        )
    )


class Widths(NamedTuple):
    """Widths (cells) of the columns of names, and of a recording's target, verdict and effect."""

    name: int
    target: int
    verdict: int
    effect: int


def widths(groups: Iterable[ChoiceGroup], width: int) -> Widths:
    offers = [offer for section in groups for offer in section.choices]
    names = [_name(offer) for offer in offers if not offer.recent]
    recordings = [offer.recent for offer in offers if offer.recent]
    decided = [change for recent in recordings if (change := _decided(recent.changes))]
    most = min(_MAX_NAME, width // 3)
    name = min(most, max(map(cell_len, names), default=0))
    target = max((cell_len(_target(recent)) for recent in recordings), default=0)
    verdict = max((cell_len(_result(change)) for change in decided), default=0)
    effect = max((cell_len(sanitize(change.effect)) for change in decided), default=0)
    target = max(name, min(_MAX_TARGET, width // 3, target))
    return Widths(name, target, verdict, min(_MAX_EFFECT, effect))


def heading(section: ChoiceGroup, width: int) -> Line:
    return rule(((section.heading, "title"),), ((section.note, "dim"),) if section.note else (), width)


def row(offer: StartChoice, columns: Widths, width: int, now: dt.datetime) -> Line:
    if offer.listed:
        return _profile_row(offer.listed, columns, width)
    if offer.recent:
        return _recording_row(offer.recent, columns, width, now)
    if offer.server:
        unknown = f"its port is unknown: only {sanitize(offer.server.user)} can read it"
        words = f"{offer.server.url}   Enter measures it" if offer.server.url else unknown
        return clip(((fit(_name(offer), columns.name), ""), (f"  {words}", "dim")), width)
    title, words, *_ = _FIRST_STEPS[offer.choice.kind]
    return clip(((f"{offer.key} ", "key"), (fit(title, columns.name - 2), ""), (f"  {words}", "dim")), width)


def command_words(offer: StartChoice) -> tuple[str, str]:
    if offer.listed:
        return f"open {sanitize(offer.listed.name)}", sanitize(offer.listed.question or offer.listed.target)
    if offer.recent:
        return f"replay {sanitize(offer.recent.info.name)}", sanitize(offer.recent.info.target)
    if offer.server:
        return f"measure {_name(offer)}", offer.server.url or "asks for its URL"
    title, words, *_ = _FIRST_STEPS[offer.choice.kind]
    return title, f"{offer.key}   {words}"


def _name(offer: StartChoice) -> str:
    if offer.listed:
        return sanitize(offer.listed.name)
    if offer.server:
        port = offer.server.url.rstrip("/").rpartition(":")[2]
        return f"{offer.server.kind}{f' on :{port}' if port.isdecimal() else ''}"
    return "  " + _FIRST_STEPS[offer.choice.kind][0]


def _profile_row(entry: ProfileEntry, columns: Widths, width: int) -> Line:
    """Return the name, the first question and, if there is room, the hosts and settings."""
    name = (fit(sanitize(entry.name), columns.name), "")
    if entry.profile is None:
        return clip((name, ("  invalid: ", "warn"), (sanitize(entry.problem), "dim")), width)
    question, mark, _ = (sanitize(entry.question) or sanitize(entry.target)).partition("?")
    start: Line = (name, (f"  {_cut_at_clause(question + mark, width - columns.name - 2)}", ""))
    facts: Line = ((_summary(entry), "dim"),)
    return left_and_right(start, facts, width) if length(start) + length(facts) + 2 <= width else clip(start, width)


def _cut_at_clause(text: str, room: int) -> str:
    """Return the text; if it is too long, only its first clauses that fit, or as much as fits."""
    if cell_len(text) <= room:
        return text
    ends = [at for at, char in enumerate(text) if char in ",:" and cell_len(text[:at]) <= room - 2]
    return f"{text[: ends[-1]]} …" if ends else fit(text, room)


def _summary(entry: ProfileEntry) -> str:
    if entry.profile is None:
        return ""
    hosts = ", ".join(host.name for host in entry.profile.hosts)
    knobs = count_text(len(entry.profile.knobs), "knob") if entry.profile.knobs else ""
    parts = (hosts, knobs, "study" if entry.profile.study else "")
    return sanitize(" · ".join(part for part in parts if part))


def _target(recent: Recent) -> str:
    """Return the target without http://, or the name of a recording without one."""
    return sanitize(recent.info.target.removeprefix("http://") or recent.info.name)


def _recording_row(recent: Recent, columns: Widths, width: int, now: dt.datetime) -> Line:
    """Return target, change, verdict, effect and, if there is room, the time."""
    kept, target = recent.info, columns.target
    if kept.problem:
        return clip(((fit(sanitize(kept.name), target), ""), (f"  {sanitize(kept.problem)}", "warn")), width)
    when = f"  {right(when_words(kept.began, now), 12)}" if width >= _WIDE else ""
    end: Line = ((when, "dim"),)
    if not kept.ended:
        end = (("  not ended", "warn"), *end)
    elif (change := _decided(recent.changes)) is not None:
        role = ROLES.get(change.verdict, "warn")  # type: ignore[call-overload]
        result = (f"  {fit(_result(change), columns.verdict)}", role)
        end = (result, (f"  {fit(sanitize(change.effect), columns.effect)}", ""), *end)
    room = max(0, width - target - 2 - length(end))
    words, role = (_change_words(recent.changes), "") if recent.changes else (_load_words(recent), "dim")
    return clip(((fit(shortened(_target(recent), target), target), ""), ("  " + fit(words, room), role), *end), width)


def _decided(changes: Sequence[ChangeSummary]) -> ChangeSummary | None:
    """Return the newest change with a verdict, else the newest change."""
    return next((change for change in reversed(changes) if change.verdict), changes[-1] if changes else None)


def _change_words(changes: Sequence[ChangeSummary]) -> str:
    change = _decided(changes)
    others = f"  and {len(changes) - 1} more" if len(changes) > 1 else ""
    return f"{sanitize(change.label)}{others}" if change else ""


def _result(change: ChangeSummary) -> str:
    """Return the verdict on a change, or the outcome of one that is not active; "" if neither is known."""
    return sanitize(change.verdict) or (change.outcome or "" if change.outcome in ("rolled back", "failed") else "")


def _load_words(recent: Recent) -> str:
    """Return the results of a recording without changes."""
    runs = count_text(recent.info.runs, "run") if recent.info.runs else "no run"
    if recent.capacity:
        return f"{runs}  capacity {sanitize(recent.capacity)}"
    if recent.rate is None or recent.p99_ms is None:
        return runs
    return f"{runs}  {si(recent.rate)} req/s  p99 {milliseconds(recent.p99_ms / 1000)} ms"


def when_words(wall: float, now: dt.datetime) -> str:
    """Return `today 14:05`, `Nov 20 14:05`, or the date in another year, in local time; `wall` is in epoch seconds."""
    then = dt.datetime.fromtimestamp(wall)
    if then.date() == now.date():
        return then.strftime("today %H:%M")
    return then.strftime("%b %d %H:%M") if then.year == now.year else then.strftime("%Y-%m-%d")


def about(offer: StartChoice | None, width: int) -> Iterator[tuple[str, str]]:
    """Yield (text, role) about the selected choice: contents, then the effect of Enter."""
    if offer is None:
        return
    if offer.listed:
        yield from _about_profile(offer.listed, width)
    elif offer.recent:
        yield from _about_recording(offer.recent)
    elif offer.server:
        yield from _about_server(offer.server)
    else:
        *_, details, enter = _FIRST_STEPS[offer.choice.kind]
        yield details, ""
        yield enter, "dim"


def _about_profile(entry: ProfileEntry, width: int) -> Iterator[tuple[str, str]]:
    profile = entry.profile
    if profile is None:
        yield f"{sanitize(str(entry.path))}: {sanitize(entry.problem)}", "warn"
        yield "fix the file; editors complete and check it with: cockpit schema profile", "dim"
        return
    if entry.question:
        yield sanitize(entry.question), ""
    hosts = ", ".join(f"{host.name} ({host.place})" for host in profile.hosts) or "no hosts"
    knobs = ", ".join(knob.name for knob in profile.knobs)
    load = f"{sanitize(entry.target)} · {load_words(profile.plan)} · {sanitize(hosts)}"
    yield load + (f" · knobs {sanitize(knobs)}" if knobs else ""), "dim"
    more = f"   ·   {_ORIGINS[entry.origin]}: {_short(entry.path)}" if width >= _WIDE else ""
    study = f"   ·   cockpit study {sanitize(quote(entry.argument))} --short" if profile.study else ""
    yield f"Enter: open it ({SessionKey.TOGGLE} starts the load)   ·   {StartKey.DOCTOR}: doctor{study}{more}", "dim"


def _about_server(server: LocalServer) -> Iterator[tuple[str, str]]:
    yield f"{server.kind} runs on this machine as {sanitize(server.user)}: {sanitize(server.processes)}", ""
    if server.url:
        yield (
            f"Opens {server.url} with the server's processes and the settings that cockpit finds. Nothing is changed.",
            "",
        )
        yield f"Enter: open it ({SessionKey.TOGGLE} starts the load)   ·   cockpit run {server.url}", "dim"
    else:
        yield "Another user's sockets cannot be read, so its port is unknown. As root, cockpit finds it.", ""
        yield "Enter: type its URL", "dim"


def _about_recording(recent: Recent) -> Iterator[tuple[str, str]]:
    kept = recent.info
    if kept.problem:
        yield f"{sanitize(kept.path)}: {sanitize(kept.problem)}", "warn"
        return
    metrics = f"   {_load_words(recent)}" if recent.changes else ""
    yield f"{sanitize(kept.name)}   {sanitize(kept.target)}   {clock(kept.seconds)}{metrics}", ""
    for change in recent.changes[-_MAX_CHANGES:]:
        words = (change.label, change.outcome or "under way", change.verdict, change.effect)
        yield sanitize("  ".join(filter(None, words))), "dim"
    ended = "" if kept.ended else "in progress, or interrupted   ·   "
    yield f"{ended}Enter: replay it   ·   cockpit report {sanitize(kept.name)}", "dim"


def _short(path: Path) -> str:
    text = sanitize(str(path))
    home = str(Path.home())
    return "~" + text[len(home) :] if home != "/" and text.startswith(home + "/") else text


def url_of(text: str) -> str:
    """Return the URL, with `http://` added if it is missing. Raises UsageError."""
    try:
        return checked_url(text.strip())
    except Invalid as error:
        raise UsageError(error.problem) from None
