"""`cockpit tune`: a profile's knobs and actions without the screen."""

from __future__ import annotations

import asyncio
import sys
from argparse import Namespace
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from msgspec.structs import replace

from cockpit.cli.load_options import flagged, named_profile
from cockpit.cli.rounds import rounds
from cockpit.cli.terminal import tell
from cockpit.cli.trusting import require_trust
from cockpit.cli.tune_output import (
    ChangeProgress,
    finished,
    knob_row,
    knob_table,
    past_line,
    past_row,
    print_json,
    value_text,
)
from cockpit.cli.unfinished import settle, typed_line
from cockpit.hosts.shell import Shell
from cockpit.hosts.transport import open_shell
from cockpit.model.errors import EXIT_GOOD, ChangeRefused, CockpitError, HostError, UsageError
from cockpit.model.hosts import HostConfig
from cockpit.model.knobs import Knob
from cockpit.model.text import neutral
from cockpit.profiles.plan import Wrong, checked_url
from cockpit.profiles.profile import Profile
from cockpit.tuning import history
from cockpit.tuning.applied import Past, PastState
from cockpit.tuning.change_options import Approval
from cockpit.tuning.probing import probe_of
from cockpit.tuning.remote import Following, Remote, privileged
from cockpit.tuning.tuner import Tuner

Assignments = list[tuple[Knob, str | None]]


def tune(options: Namespace) -> int:
    """Run a subcommand. Exit 5: the change was refused or rolled back; 3: a host is unreachable."""
    profile = _profile(options)
    if options.action == "rounds":
        return rounds(options, profile)
    subcommands: dict[str, Callable[[Namespace, Profile], Coroutine[Any, Any, None]]] = {
        "show": _show,
        "set": _set,
        "undo": _undo,
        "history": _history,
        "action": _action,
    }
    asyncio.run(subcommands[options.action](options, profile))
    return EXIT_GOOD


def _profile(options: Namespace) -> Profile:
    """Return the profile, with the target of --target. Raises UsageError, ProfileError."""
    try:
        profile = named_profile(options.profile)
        require_trust(profile, options.profile, accepted=options.trust)
        if url := getattr(options, "url", None):
            profile = replace(profile, plan=replace(profile.plan, url=checked_url(url)))
    except Wrong as error:
        raise flagged(error, {"target.url": "--target"}) from None
    return profile


class _Connections:
    """Connections to the hosts, opened when first needed, and again after one was lost."""

    def __init__(self, profile: Profile, options: Namespace) -> None:
        self._configs = {config.name: config for config in profile.hosts}
        self._ssh_config = options.ssh_config
        self._open: dict[str, tuple[Shell, asyncio.Task[None]]] = {}
        self._remotes: dict[str, Remote] = {}
        self.tuner = Tuner(None if getattr(options, "no_probe", True) else probe_of(profile.plan))

    def to(self, host: str) -> Remote:
        """Return the connection to a host of the profile."""
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
async def _connected(profile: Profile, options: Namespace) -> AsyncIterator[_Connections]:
    connections = _Connections(profile, options)
    try:
        yield connections
    finally:
        await connections.close()


async def _show(options: Namespace, profile: Profile) -> None:
    """Print all knobs, or those named. A knob that is named must be readable."""
    knobs = [_knob(profile, name) for name in options.names] or profile.knobs
    rows = []
    async with _connected(profile, options) as connections:
        for knob in knobs:
            value, problem = None, ""
            try:
                value = await connections.tuner.read(connections.to(knob.host), knob)
            except HostError:
                raise
            except CockpitError as error:
                if options.names:
                    raise
                problem = str(error)
            rows.append(knob_row(knob, value, problem))
    if options.json:
        print_json(rows)
    elif len(options.names) == 1:
        tell(value_text(rows[0]))
    else:
        tell("\n".join(knob_table(rows)) if rows else "the profile has no knobs; add a [[knob]] block to it")


async def _set(options: Namespace, profile: Profile) -> None:
    chosen: dict[str, Assignments] = {}
    for text in options.names:
        name, sign, value = text.partition("=")
        if not sign:
            raise UsageError(f"tune set: {text!r}: write NAME=VALUE")
        knob = _knob(profile, name)
        chosen.setdefault(knob.host, []).append((knob, value))
    async with _connected(profile, options) as connections:
        await settle(connections.tuner, connections.to, chosen, profile.knobs)
        results = [await _change(options, connections, host, assignments) for host, assignments in chosen.items()]
    if options.json:
        print_json(results)


async def _change(options: Namespace, connections: _Connections, host: str, assignments: Assignments) -> dict[str, Any]:
    progress = ChangeProgress(as_json=options.json)
    if options.dry_run:
        progress.begun(await connections.tuner.prepare(connections.to(host), host, assignments))
        return progress.result("dry run", ())
    approval = Approval(options.confirm_within, _typed_yes) if options.confirm_within else None
    change = connections.tuner.apply(connections.to(host), host, assignments, progress, approval)
    return await finished(progress, change)


async def _undo(options: Namespace, profile: Profile) -> None:
    """Undo the named change, else one that was interrupted, else the newest that is applied."""
    async with _connected(profile, options) as connections:
        histories = await _histories(connections, profile)
        if options.change:
            host, past = history.named(_newest_first(histories), options.change)
        else:
            host, past = _next_to_undo(histories)
        progress = ChangeProgress(as_json=options.json)
        if past.state == PastState.HALF_DONE:
            await connections.tuner.give_up(connections.to(host), host, past)
            result = progress.result("rolled back", ())
            if not options.json:
                tell(f"{host}: {past.name} was interrupted and is rolled back")
        else:
            history.check_newer(histories[host], past)
            applied = await connections.tuner.kept(connections.to(host), host, past)
            result = await finished(progress, connections.tuner.undo(connections.to(host), applied, progress))
            if not options.json:
                print(f"{host}: {past.name} undone; repeat the command to undo the one before", file=sys.stderr)
    if options.json:
        print_json([result | {"undoes": past.name}])


def _next_to_undo(histories: Mapping[str, Sequence[Past]]) -> tuple[str, Past]:
    """The newest of the hosts' next changes to undo. Raises ChangeRefused at the end of the history."""
    found = [(host, past) for host, each in histories.items() if (past := history.next_to_undo(each))]
    if not found:
        hosts = ", ".join(histories)
        raise ChangeRefused(f"nothing to undo: no change of this user is applied on {hosts or 'a host with knobs'}")
    return max(found, key=lambda one: (one[1].state == PastState.HALF_DONE, one[1].about.when))


async def _histories(connections: _Connections, profile: Profile) -> dict[str, list[Past]]:
    """The changes on each host that has knobs, newest first."""
    hosts = dict.fromkeys(knob.host for knob in profile.knobs)
    return {host: await connections.tuner.history(connections.to(host), host) for host in hosts}


def _newest_first(histories: Mapping[str, Sequence[Past]]) -> list[tuple[str, Past]]:
    found = [(host, past) for host, each in histories.items() for past in each]
    return sorted(found, key=lambda one: one[1].about.when, reverse=True)


async def _history(options: Namespace, profile: Profile) -> None:
    async with _connected(profile, options) as connections:
        past = _newest_first(await _histories(connections, profile))
    if options.json:
        print_json([past_row(host, one) for host, one in past])
    elif not past:
        tell("no changes yet")
    else:
        tell("\n".join(past_line(host, one) for host, one in past))


async def _action(options: Namespace, profile: Profile) -> None:
    """Run the named actions in this order; without a name list all."""
    if not options.names:
        if options.json:
            print_json([msgspec.to_builtins(action) for action in profile.actions])
            return
        lines = [f"{one.name}  {one.host}  {one.times} x  {neutral(one.command, 100)}" for one in profile.actions]
        tell("\n".join(lines) or "the profile has no actions; add an [[action]] block to it")
        return
    known = {action.name: action for action in profile.actions}
    for name in options.names:
        if name not in known:
            raise UsageError(f"unknown action {name!r}; the profile has: {', '.join(known) or 'none'}")
    done = []
    async with _connected(profile, options) as connections:
        for action in (known[name] for name in options.names):
            for _ in range(action.times):
                await connections.tuner.act(connections.to(action.host), action)
            done.append({"action": action.name, "host": action.host, "done": action.times})
            if not options.json:
                tell(f"{action.host}: {action.name} done{f' {action.times} times' if action.times > 1 else ''}")
    if options.json:
        print_json(done)


async def _typed_yes() -> bool:
    """Return whether the next line of stdin is y or yes."""
    return await typed_line() in ("y", "yes")


def _knob(profile: Profile, name: str) -> Knob:
    for knob in profile.knobs:
        if knob.name == name:
            return knob
    known = ", ".join(knob.name for knob in profile.knobs) or "none"
    raise UsageError(f"unknown knob {name!r}; the profile has: {known}")
