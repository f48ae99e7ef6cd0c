"""`cockpit tune`: a profile's knobs and actions without the screen."""

from __future__ import annotations

import asyncio
import sys
from argparse import Namespace
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from cockpit.cli.load_options import flagged, named_profile
from cockpit.cli.rounds import rounds
from cockpit.cli.terminal import tell
from cockpit.cli.trusting import require_trust
from cockpit.cli.unfinished import settle, typed_line
from cockpit.hosts.shell import Shell
from cockpit.hosts.transport import open_shell
from cockpit.model.errors import EXIT_GOOD, ChangeRefused, CockpitError, HostError, UsageError
from cockpit.model.events import Stage
from cockpit.model.hosts import HostConfig
from cockpit.model.knobs import Knob, not_yet_active
from cockpit.model.text import escaped, neutral
from cockpit.profiles.plan import Wrong, checked_url
from cockpit.profiles.profile import Profile
from cockpit.tuning import history
from cockpit.tuning.applied import Applied, Past, PastState, name_of
from cockpit.tuning.change_options import Approval, Watch
from cockpit.tuning.plan import Plan
from cockpit.tuning.probing import probe_of
from cockpit.tuning.remote import Following, Remote, privileged
from cockpit.tuning.tuner import Tuner

Assignments = list[tuple[Knob, str | None]]
# How many names these take.
_MOST_NAMES = {"list": 0, "history": 0, "actions": 0, "undo": 1}


def tune(options: Namespace) -> int:
    """Carries one of the actions out. Exit 5: the change was refused or undone; 3: a host is out of reach."""
    profile = _profile(options)
    work: dict[str, Callable[[Namespace, Profile], Coroutine[Any, Any, Any]]] = {
        "list": _list,
        "get": _get,
        "set": _set,
        "undo": _undo,
        "history": _history,
        "actions": _actions,
        "do": _do,
    }
    if options.action == "rounds":
        _name_what(options, profile)
        return rounds(options, profile)
    if len(options.names) > _MOST_NAMES.get(options.action, len(options.names)):
        raise UsageError(f"tune {options.action}: unexpected {options.names[-1]!r}; see cockpit tune --help")
    if options.action in ("get", "set", "do"):
        _name_what(options, profile)
    asyncio.run(work[options.action](options, profile))
    return EXIT_GOOD


def _name_what(options: Namespace, profile: Profile) -> None:
    if not options.names:
        raise UsageError(f"tune {options.action}: name what: {_known(profile, options.action)}")


def _profile(options: Namespace) -> Profile:
    """The profile, its target replaced by --target. Raises UsageError, ProfileError."""
    try:
        profile = named_profile(options.profile)
        require_trust(profile, options.profile, accepted=options.trust)
        if options.url:
            profile = replace(profile, plan=replace(profile.plan, url=checked_url(options.url)))
    except Wrong as error:
        raise flagged(error, {"target.url": "--target"}) from None
    return profile


def _known(profile: Profile, action: str) -> str:
    names = [one.name for one in (profile.actions if action == "do" else profile.knobs)]
    return ", ".join(names) or "the profile has none"


class _Ways:
    """The ways to the hosts, opened when they are first needed, and again where one was lost."""

    def __init__(self, profile: Profile, options: Namespace) -> None:
        self._configs = {config.name: config for config in profile.hosts}
        self._ssh_config = options.ssh_config
        self._open: dict[str, tuple[Shell, asyncio.Task[None]]] = {}
        self._remotes: dict[str, Remote] = {}
        self.tuner = Tuner(None if options.no_probe else probe_of(profile.plan))

    def to(self, host: str) -> Remote:
        """What runs commands on a host of the profile."""
        if host not in self._remotes:
            config = self._configs[host]
            self._remotes[host] = privileged(config, Following(lambda: self._shell(config)))
        return self._remotes[host]

    async def _shell(self, config: HostConfig) -> Shell:
        known = self._open.get(config.name)
        if known is None or known[1].done():
            shell = await open_shell(config, self._ssh_config)
            self._open[config.name] = (shell, asyncio.ensure_future(shell.wait_closed()))
        return self._open[config.name][0]

    async def close(self) -> None:
        for shell, closed in self._open.values():
            await shell.close()
            await asyncio.wait([closed])


@asynccontextmanager
async def _ways(profile: Profile, options: Namespace) -> AsyncIterator[_Ways]:
    ways = _Ways(profile, options)
    try:
        yield ways
    finally:
        await ways.close()


async def _list(options: Namespace, profile: Profile) -> None:
    await _show(options, profile, profile.knobs, must_be_read=False)


async def _get(options: Namespace, profile: Profile) -> None:
    await _show(options, profile, [_knob(profile, name) for name in options.names], must_be_read=True)


async def _show(options: Namespace, profile: Profile, knobs: Sequence[Knob], must_be_read: bool) -> None:
    rows = []
    async with _ways(profile, options) as ways:
        for knob in knobs:
            value, problem = None, ""
            try:
                value = await ways.tuner.read(ways.to(knob.host), knob)
            except HostError:
                raise
            except CockpitError as error:
                if must_be_read:
                    raise
                problem = str(error)
            rows.append(_row(knob, value, problem))
    if options.json:
        _tell_json(rows)
    elif must_be_read and len(rows) == 1:
        tell(_shown(rows[0]))
    else:
        tell("\n".join(_columns(rows)) if rows else "the profile has no knobs; a [[knob]] block in it adds one")


def _row(knob: Knob, value: str | None, problem: str) -> dict[str, Any]:
    return {
        "name": knob.name,
        "host": knob.host,
        "kind": knob.kind,
        "value": value,
        "allowed": knob.allowed,
        "options": list(knob.choices),
        "cost": knob.price,
        "place": knob.place,
        "problem": problem,
    }


def _shown(row: dict[str, Any]) -> str:
    if row["problem"]:
        return f"could not be read: {neutral(row['problem'])}"
    return "unset" if row["value"] is None else neutral(row["value"])


def _columns(rows: Sequence[dict[str, Any]]) -> list[str]:
    table = [("knob", "value", "host", "cost", "allowed", "place")]
    table += [(r["name"], _shown(r), r["host"], r["cost"], r["allowed"] or "-", neutral(r["place"], 100)) for r in rows]
    widths = [min(40, max(len(row[column]) for row in table)) for column in range(5)]
    return [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[5]]).rstrip()
        for row in table
    ]


async def _set(options: Namespace, profile: Profile) -> None:
    chosen: dict[str, Assignments] = {}
    for text in options.names:
        name, sign, value = text.partition("=")
        if not sign:
            raise UsageError(f"tune set: {text!r}: write NAME=VALUE")
        knob = _knob(profile, name)
        chosen.setdefault(knob.host, []).append((knob, value))
    async with _ways(profile, options) as ways:
        await settle(ways.tuner, ways.to, chosen, profile.knobs)
        results = [await _change(options, ways, host, assignments) for host, assignments in chosen.items()]
    if options.json:
        _tell_json(results)


async def _change(options: Namespace, ways: _Ways, host: str, assignments: Assignments) -> dict[str, Any]:
    telling = _Telling(options)
    if options.dry_run:
        telling.begun(await ways.tuner.prepare(ways.to(host), host, assignments))
        return telling.result("dry run", ())
    approval = Approval(options.confirm_within, _typed_yes) if options.confirm_within else None
    return await _told(telling, ways.tuner.apply(ways.to(host), host, assignments, telling, approval))


async def _undo(options: Namespace, profile: Profile) -> None:
    """Undoes the named change, else the newest one on the profile's hosts that is applied; one that was interrupted
    first."""
    async with _ways(profile, options) as ways:
        histories = await _histories(ways, profile)
        if options.names:
            host, past = history.named(_newest_first(histories), options.names[0])
        else:
            host, past = _next_to_undo(histories)
        telling = _Telling(options)
        if past.state == PastState.HALF_DONE:
            await ways.tuner.give_up(ways.to(host), host, past)
            result = telling.result("put back", ())
            if not options.json:
                tell(f"{host}: {past.name}, left half done, is rolled back")
        else:
            history.check_newer(histories[host], past)
            applied = await ways.tuner.kept(ways.to(host), host, past)
            result = await _told(telling, ways.tuner.undo(ways.to(host), applied, telling))
            if not options.json:
                print(
                    f"{host}: {past.name} undone; `tune {options.profile} undo` undoes the one before", file=sys.stderr
                )
    if options.json:
        _tell_json([result | {"undoes": past.name}])


def _next_to_undo(histories: Mapping[str, Sequence[Past]]) -> tuple[str, Past]:
    """The newest of the hosts' next changes to undo. Raises ChangeRefused at the end of the history."""
    found = [(host, past) for host, each in histories.items() if (past := history.next_to_undo(each))]
    if not found:
        hosts = ", ".join(histories)
        raise ChangeRefused(f"nothing to undo: no change of this user is applied on {hosts or 'a host with knobs'}")
    return max(found, key=lambda one: (one[1].state == PastState.HALF_DONE, one[1].about.when))


async def _histories(ways: _Ways, profile: Profile) -> dict[str, list[Past]]:
    """The changes on each host that has knobs, newest first."""
    hosts = dict.fromkeys(knob.host for knob in profile.knobs)
    return {host: await ways.tuner.history(ways.to(host), host) for host in hosts}


def _newest_first(histories: Mapping[str, Sequence[Past]]) -> list[tuple[str, Past]]:
    found = [(host, past) for host, each in histories.items() for past in each]
    return sorted(found, key=lambda one: one[1].about.when, reverse=True)


async def _history(options: Namespace, profile: Profile) -> None:
    async with _ways(profile, options) as ways:
        past = _newest_first(await _histories(ways, profile))
    if options.json:
        _tell_json([_past_row(host, one) for host, one in past])
    elif not past:
        tell("no changes yet")
    else:
        tell("\n".join(_past_line(host, one) for host, one in past))


def _past_row(host: str, past: Past) -> dict[str, Any]:
    return {
        "name": past.name,
        "host": host,
        "state": past.state,
        "undone_by": past.undone_by or None,
        "undoes": name_of(past.about.undoes) or None,
        "who": past.about.who,
        "when": past.about.when,
        "settings": [msgspec.to_builtins(setting) for setting in past.about.settings],
        "inactive": list(past.about.inactive),
        "directory": past.change,
    }


def _past_line(host: str, past: Past) -> str:
    when = datetime.fromtimestamp(past.about.when).strftime("%Y-%m-%d %H:%M:%S")
    settings = [f"{s.knob} {s.old or 'unset'} → {s.new or 'unset'}" for s in past.about.settings]
    what = ", ".join(settings) or "nothing to change"
    undo = f"undo {name_of(past.about.undoes)}: " if past.about.undoes else ""
    state = f"undone by {past.undone_by}" if past.undone_by else past.state
    if past.state == PastState.APPLIED and past.about.inactive:
        state = f"written without a reload: {', '.join(past.about.inactive)}"
    return neutral(f"{past.name}  {when}  {host}  {past.about.who}  {undo}{what}  {state}")


async def _actions(options: Namespace, profile: Profile) -> None:
    if options.json:
        _tell_json([msgspec.to_builtins(action) for action in profile.actions])
    else:
        rows = [f"{one.name}  {one.host}  {one.times} x  {neutral(one.command, 100)}" for one in profile.actions]
        tell("\n".join(rows) or "the profile has no actions; an [[action]] block in it adds one")


async def _do(options: Namespace, profile: Profile) -> None:
    known = {action.name: action for action in profile.actions}
    for name in options.names:
        if name not in known:
            raise UsageError(f"unknown action {name!r}; the profile has: {', '.join(known) or 'none'}")
    done = []
    async with _ways(profile, options) as ways:
        for action in (known[name] for name in options.names):
            for _ in range(action.times):
                await ways.tuner.act(ways.to(action.host), action)
            done.append({"action": action.name, "host": action.host, "done": action.times})
            if not options.json:
                tell(f"{action.host}: {action.name} done{f' {action.times} times' if action.times > 1 else ''}")
    if options.json:
        _tell_json(done)


class _Telling(Watch):
    """Prints a change as it goes on: its diff on stdout, its stages on stderr."""

    def __init__(self, options: Namespace) -> None:
        self._json = options.json
        self._plan: Plan | None = None
        self._stages: list[str] = []

    def begun(self, plan: Plan) -> None:
        self._plan = plan
        if not self._json:
            diff = "".join(f"{_harmless(line)}\n" for line in plan.diff.splitlines())
            waits = not_yet_active(plan.inactive)
            cost = f"{plan.cost}{f' ({waits})' if waits else ''}"
            tell(f"{diff}cost: {cost}" if diff else "nothing to change")

    def stage(self, stage: Stage, seconds: float | None = None) -> None:
        self._stages.append(stage)
        waits = "" if seconds is None else f"; type y and Enter within {seconds:g} s to keep it"
        print(f"{stage}{waits}", file=sys.stderr, flush=True)

    def result(self, outcome: str, notes: tuple[str, ...]) -> dict[str, Any]:
        """The change as data."""
        plan = self._plan
        return {
            "host": plan.host if plan else "",
            "settings": [msgspec.to_builtins(setting) for setting in plan.settings] if plan else [],
            "cost": plan.cost if plan else "",
            "diff": plan.diff if plan else "",
            "stages": self._stages,
            "outcome": outcome,
            "inactive": [knob.name for knob in plan.inactive] if plan else [],
            "notes": list(notes),
        }


def _harmless(line: str) -> str:
    """A line of a diff with its tabs."""
    return "\t".join(neutral(part) for part in line.split("\t"))


async def _told(telling: _Telling, change: Coroutine[Any, Any, Applied]) -> dict[str, Any]:
    """Awaits a change and prints how it ended."""
    try:
        applied = await change
    except asyncio.CancelledError:
        print("cockpit: interrupted; the host is as it was", file=sys.stderr)
        raise
    result = telling.result(applied.outcome, applied.notes)
    if not result["host"]:
        result["host"] = applied.host
    if waits := not_yet_active(applied.inactive):
        print(waits, file=sys.stderr)
    for note in applied.notes:
        print(f"note: {neutral(note)}", file=sys.stderr)
    return result


async def _typed_yes() -> bool:
    """Whether the next line of stdin says yes."""
    return await typed_line() in ("y", "yes")


def _knob(profile: Profile, name: str) -> Knob:
    for knob in profile.knobs:
        if knob.name == name:
            return knob
    raise UsageError(f"unknown knob {name!r}; the profile has: {_known(profile, 'set')}")


def _tell_json(rows: Any) -> None:
    tell(escaped(msgspec.json.format(msgspec.json.encode(rows), indent=2).decode()))
