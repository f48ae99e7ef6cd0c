"""The uses of a profile: commands it runs, hosts it contacts, files it reads and writes. Pure, except `owners`."""

from __future__ import annotations

import pwd
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from cockpit.model.host.samples import HostConfig
from cockpit.model.knobs import LIVE_KNOBS, Knob
from cockpit.model.load.plan import url_without_password
from cockpit.model.text import count_text, sanitize
from cockpit.profiles.profile import Profile
from cockpit.servers.inventory import foreign_programs

Sort = Literal["target", "file", "host", "page", "writes", "reads", "command"]
# Longer runs of blanks or empty lines are shown as their number, because they could hide the text after them.
_BLANKS = re.compile(r"[^\S\n]{40,}")
# Maximum number of listed reasons of one use.
_MAX_REASONS = 2
_EMPTY_LINES = re.compile(r"\n(?:[^\S\n]*\n){3,}")


class Use(NamedTuple):
    """One use. `place` is the name of a host, "" for this machine; `why` are the keys of the profile that cause it."""

    sort: Sort
    place: str
    why: str
    text: str

    @property
    def lines(self) -> list[str]:
        """Return the full text for a terminal, with long runs of blanks shortened, so that they hide nothing."""
        text = _BLANKS.sub(lambda match: f" [{len(match[0])} blanks] ", self.text)
        text = _EMPTY_LINES.sub(lambda match: f"\n[{match[0].count(chr(10)) - 1} empty lines]\n", text)
        return [sanitize(line, len(line) + 1) for line in text.rstrip("\n").split("\n")]


def uses_of(profile: Profile) -> tuple[Use, ...]:
    """Return all uses in the order of the sections, each once with its reasons."""
    reasons: dict[Use, dict[str, None]] = {}
    for use in _uses(profile):
        reasons.setdefault(use._replace(why=""), {})[use.why] = None
    return tuple(use._replace(why=_listed(list(whys))) for use, whys in reasons.items())


def _listed(whys: Sequence[str]) -> str:
    more = len(whys) - _MAX_REASONS
    return "; ".join(whys[:_MAX_REASONS]) + (f"; {more} more" if more > 0 else "")


def is_load_only(profile: Profile) -> bool:
    """Return whether a profile only sends requests over the network to its target: no host, no command, no local file,
    no Unix socket."""
    return all(use.sort == "target" for use in uses_of(profile)) and not profile.plan.unix


def summary(uses: Iterable[Use]) -> str:
    """Return the numbers of uses, e.g. `3 commands, 2 files, 1 host (web1)`."""
    listed = tuple(uses)
    commands = sum(use.sort == "command" for use in listed)
    hosts = [use.place for use in listed if use.sort == "host"]
    files = sum(use.sort in ("file", "reads", "writes") for use in listed)
    parts = [_count(commands, "command"), _count(files, "file")]
    parts.append(
        f"{_count(len(hosts), 'host')} ({', '.join(hosts[:5])}{', …' if len(hosts) > 5 else ''})" if hosts else ""
    )
    return ", ".join(part for part in parts if part) or "requests to a local socket"


_VERBS: dict[Sort, str] = {
    "target": "loads",
    "file": "reads",
    "host": "logs in",
    "page": "requests",
    "writes": "writes",
    "reads": "reads",
    "command": "runs",
}


def listing(uses: Iterable[Use]) -> Iterator[str]:
    """Yield lines of text, with a heading per host; control characters are escaped."""
    place = None
    for use in sorted(uses, key=lambda use: use.place):
        if use.place != place:
            place = use.place
            yield f"{sanitize(place) or 'this machine'}:"
        first, *more = use.lines
        yield f"  {_VERBS[use.sort]:<8}  {first}" + ("" if more else f"   ({sanitize(use.why)})")
        yield from (f"  {'':8}  {line}" for line in more)
        if more:
            yield f"  {'':8}  ({sanitize(use.why)})"


def owners(profile: Profile) -> Iterator[str]:
    """Yield a line per program outside the system's directories that commands run on this machine: owner and mode.

    Those of other hosts are unknown: none is contacted before the profile is trusted.
    """
    here = {"", *(host.name for host in profile.hosts if host.place == "this machine")}
    commands = [use.text for use in uses_of(profile) if use.sort == "command" and use.place in here]
    for path in foreign_programs(*(word for text in commands for word in re.split(r"[\s;&|()<>'\"]+", text))):
        try:
            facts = Path(path).stat()
            owner = pwd.getpwuid(facts.st_uid).pw_name
        except KeyError:
            owner = str(facts.st_uid)
        except (OSError, ValueError):
            continue
        if stat.S_ISREG(facts.st_mode):
            yield f"  {'owner':<8}  {sanitize(path)} ({sanitize(owner)}, {stat.filemode(facts.st_mode)})"


def _uses(profile: Profile) -> Iterator[Use]:
    yield from _targets(profile)
    for name in profile.source.files if profile.source else ():
        yield Use("file", "", "read on this machine, and sent or used for TLS", name)
    for host in profile.hosts:
        yield from _uses_of_host(host)
    for generator in profile.generators:
        yield Use("host", generator.name, "generator", f"ssh {generator.ssh}")
        yield Use("command", generator.name, "generator", generator.python or "python3")
    for knob in profile.knobs:
        yield from _uses_of_knob(knob)
    for action in profile.actions:
        times = f", {action.times} times" if action.times > 1 else ""
        yield Use("command", action.host, f"action {action.name}{times}", action.command)
    for study in filter(None, (profile.study, profile.short_study)):
        for observation in study.observations:
            yield Use("command", observation.host, f"study.observe {observation.name}", observation.command)


def _targets(profile: Profile) -> Iterator[Use]:
    studies = [study for study in (profile.study, profile.short_study) if study]
    urls = [
        profile.plan.url,
        *(request.url for request in profile.plan.mix),
        *(variant.url for variant in profile.plan.variants),
        *(variant.url for s in studies for variant in s.variants),
    ]
    for url in dict.fromkeys(filter(None, urls)):
        yield Use("target", "", "load", url_without_password(url))
    if profile.plan.connect_to:
        yield Use("target", "", "target.connect_to", profile.plan.connect_to)
    if profile.plan.unix:
        yield Use("target", "", "target.unix", profile.plan.unix)


def _uses_of_host(host: HostConfig) -> Iterator[Use]:
    yield Use("host", host.name, "host", f"{host.place}{', changes and actions with sudo' if host.sudo else ''}")
    for page in host.status:
        yield Use("page", host.name, "status page", page.url)
    if host.access_log:
        yield Use("reads", host.name, "access log", host.access_log)
    for command in host.tail:
        yield Use("command", host.name, "tail", command)


def _uses_of_knob(knob: Knob) -> Iterator[Use]:
    why = f"knob {knob.name}"
    if knob.in_file:
        yield Use("writes", knob.host, why, knob.file)
    if knob.kind in LIVE_KNOBS and (written := LIVE_KNOBS[knob.kind].writes(knob)):
        yield Use("writes", knob.host, why, written)
    if knob.log:
        yield Use("reads", knob.host, why, knob.log)
    for part in ("get", "set", "test", "reload"):
        if command := getattr(knob, part):
            yield Use("command", knob.host, f"{why}, {part}", command)
    for option in knob.option:
        for part in ("set", "when"):
            if command := getattr(option, part):
                yield Use("command", knob.host, f"{why}, option {option.name}, {part}", command)


def _count(number: int, word: str) -> str:
    return count_text(number, word) if number else ""
