"""Commands of the profile that run on hosts: actions, reloads, and observations of studies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

from cockpit.model.errors import ChangeRefused, CockpitError
from cockpit.model.events import ActionBegun, ActionEnded
from cockpit.model.knobs import ServerAction
from cockpit.profiles.profile import Profile
from cockpit.session.live_events import LiveEvents
from cockpit.tuning.reason import useful_line
from cockpit.tuning.remote import Remote
from cockpit.tuning.tuner import Tuner

# Maximum output of an observation of a study (bytes): the output is recorded completely.
OBSERVATION_LIMIT = 256 * 1024
# Timeout of its command (s).
_COMMAND_TIMEOUT = 30.0


@dataclass
class ServerCommands:
    """Runs commands on the hosts of a session, and reports actions as events.

    `inside` runs observations; `remotes` run actions and reloads, which may need other rights. `turn` returns the lock
    for one change at a time.
    """

    _profile: Profile
    _tuner: Tuner
    _remotes: Mapping[str, Remote]
    _inside: Mapping[str, Remote]
    _turn: Callable[[], AbstractAsyncContextManager[None]]
    _events: LiveEvents
    _count: int = field(init=False, default=0)

    async def output_of(self, host: str, command: str) -> str:
        """Return the output of a command on the host, at most OBSERVATION_LIMIT bytes.

        Raises HostError; ChangeRefused with the command's error message if it fails.
        """
        done = await self._inside[host].run(command, timeout=_COMMAND_TIMEOUT)
        if done.exit_status != 0:
            no_message = f"the command failed without a message (exit status {done.exit_status})"
            raise ChangeRefused(f"{host}: {useful_line(done.stderr, done.stdout) or no_message}")
        if len(done.stdout) > OBSERVATION_LIMIT:
            limit = OBSERVATION_LIMIT // 1024
            raise ChangeRefused(f"{host}: the command printed more than {limit} KiB; limit its output, e.g. with head")
        return done.stdout.decode("utf-8", "replace").rstrip("\n")

    async def act(self, name: str) -> None:
        """Run an action of the profile. Raises ChangeRefused, HostError."""
        actions = {action.name: action for action in self._profile.actions}
        if name not in actions:
            raise ChangeRefused(f"unknown action {name!r}; the profile has: {', '.join(actions) or 'none'}")
        await self._run_action(actions[name])

    async def reload(self, names: Sequence[str]) -> None:
        """Run the reload commands of knobs, each once per host, without a change. Raises HostError, ChangeRefused."""
        knobs = [knob for knob in self._profile.knobs if knob.name in names]
        for (host, command), name in {(knob.host, knob.reload): knob.name for knob in knobs if knob.reload}.items():
            await self._run_action(ServerAction(name=f"reload {name}", host=host, command=command))

    async def _run_action(self, action: ServerAction) -> None:
        async with self._turn():
            self._count += 1
            number, begun = self._count, self._events.now()
            self._events.emit(
                ActionBegun(t=begun, number=number, action=action.name, host=action.host, times=action.times)
            )
            done, detail = 0, "interrupted"
            try:
                while done < action.times:
                    await self._tuner.act(self._remotes[action.host], action)
                    done += 1
                detail = ""
            except CockpitError as error:
                detail = str(error)
                raise
            finally:
                self._events.emit(ActionEnded(t=self._events.now(), number=number, done=done, detail=detail))
