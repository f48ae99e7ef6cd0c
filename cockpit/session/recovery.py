"""Waits of a measurement for lost hosts and for its target, and values that it sets and restores."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence

from cockpit.model.errors import ChangeRefused, CockpitError, HostError, TargetError
from cockpit.model.events import CONNECTED
from cockpit.model.host.state import HostState
from cockpit.model.knobs import Knob, ServerAction
from cockpit.model.load.plan import LoadPlan
from cockpit.model.state import State
from cockpit.session.live_session import LiveSession
from cockpit.tuning.applied import HistoryState
from cockpit.tuning.discovery.probing import probe_of
from cockpit.tuning.effect import GOOD_RESPONSES, wait_for_good_responses
from cockpit.tuning.history import unfinished
from cockpit.tuning.rollback import retry_while_unreachable

# Timeout (s) for a host or a target to be available again after a change.
BACK_WITHIN = 60.0
# Timeout (s) for a host's own rollback of an interrupted change: its lease, and the time of its commands.
OWN_UNDO = 180.0
_PACE = 0.5
_UNDER_WAY = (HistoryState.UNDER_WAY, HistoryState.ROLLING_BACK)


def lost_hosts(state: State) -> list[HostState]:
    return [host for host in state.hosts.values() if host.condition not in CONNECTED]


def is_loss(state: State, error: CockpitError) -> bool:
    """Return whether an error was caused by the loss of a host."""
    return error.is_loss or bool(lost_hosts(state))


def check_hosts(state: State) -> None:
    """Raise HostError if a host is lost."""
    for host in lost_hosts(state):
        raise HostError(host.detail or "was lost", subject=host.config.name)


async def wait_for_hosts(live: LiveSession, within: float = BACK_WITHIN) -> None:
    """Wait until every host is up. Raises HostError after `within` seconds."""
    try:
        async with asyncio.timeout(within):
            await live.session.until(lambda state: not lost_hosts(state))
    except TimeoutError:
        host = lost_hosts(live.state)[0]
        raise HostError(host.detail or f"unreachable for {within:.0f} s", subject=host.config.name) from None


async def recover(live: LiveSession, changed: Collection[str], since: float, within: float) -> None:
    """Wait until every host is up, and the hosts of the `changed` knobs have undone an interrupted change completely.
    Raises HostError after `within` seconds, ChangeFailed if a change since `since` (epoch s) cannot be rolled back."""
    hosts = sorted({knob.host for knob in live.profile.knobs if knob.name in changed})

    async def recovered() -> None:
        await wait_for_hosts(live, within)
        for host in hosts:
            await end_changes(live, host)
            await complete_rollbacks(live, host, changed, since)

    # The loss may not have been detected yet, or a host is lost again.
    await retry_while_unreachable(recovered, within)


async def end_changes(live: LiveSession, host: str) -> None:
    """Wait until no change is under way on the host; undo an interrupted one. Raises HostError, ChangeRefused."""
    deadline = asyncio.get_running_loop().time() + OWN_UNDO
    history = await live.tuning.history(host)
    while any(past.state in _UNDER_WAY for past in history):
        if asyncio.get_running_loop().time() > deadline:
            raise ChangeRefused(f"a change there did not end within {OWN_UNDO:.0f} s", subject=host)
        await asyncio.sleep(_PACE)
        history = await live.tuning.history(host)
    for past in history:
        if past.state == HistoryState.INTERRUPTED:
            await live.tuning.interrupted.undo(host, past)


async def complete_rollbacks(live: LiveSession, host: str, knobs: Collection[str], since: float) -> None:
    """Roll back again each change of the knobs since `since` (epoch s) whose rollback left something on the host.
    Raises ChangeFailed if that leaves something again; HostError, ChangeRefused."""
    for past in unfinished(await live.tuning.history(host)):
        touched = {setting.knob for setting in past.facts.settings}
        if past.state == HistoryState.PARTIAL and past.facts.when >= since and touched & set(knobs):
            await live.tuning.interrupted.undo(host, past)


async def wait_for_target(plan: LoadPlan) -> None:
    """Wait until the target gives GOOD_RESPONSES good responses in a row. Raises TargetError after BACK_WITHIN."""
    if wrong := await wait_for_good_responses(probe_of(plan), BACK_WITHIN, GOOD_RESPONSES):
        raise TargetError(wrong)


async def set_values(live: LiveSession, values: Mapping[str, str | None], *, restores: bool = False) -> Collection[str]:
    """Make these values active; return the knobs that had other values. Raises CockpitError."""
    current = await live.tuning.read(list(values))
    changed = {name: value for name, value in values.items() if current[name] != value}
    await live.tuning.apply(changed, restores=restores)
    return changed.keys()


async def restore(
    live: LiveSession,
    knobs: Sequence[Knob],
    actions: Sequence[ServerAction],
    originals: Mapping[str, str | None],
    since: float,
) -> dict[str, CockpitError]:
    """Restore the values that the knobs had before `since` (epoch s), then run the actions, on each host that can be
    reached; actions on hosts without knobs once all others are restored. Return the errors by host that is left."""
    failed: dict[str, CockpitError] = {}
    for host in dict.fromkeys([*(knob.host for knob in knobs), *(action.host for action in actions)]):
        try:
            await end_changes(live, host)
            values = {knob.name: originals[knob.name] for knob in knobs if knob.host == host}
            await set_values(live, values, restores=True)
            await complete_rollbacks(live, host, values, since)
        except CockpitError as error:
            failed[host] = error
    if failed:
        own = {knob.host for knob in knobs}
        waiting = {action.host for action in actions if action.host not in own}
        failed |= dict.fromkeys(waiting - failed.keys(), next(iter(failed.values())))
    for action in actions:
        if action.host not in failed:
            try:
                await live.tuning.commands.act(action.name)
            except CockpitError as error:
                failed[action.host] = error
    return failed
