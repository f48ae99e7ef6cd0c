"""Values of knobs as events of a session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from cockpit.hosts.internal_error import internal_error
from cockpit.model.errors import ChangeRefused, CockpitError
from cockpit.model.events import KnobRead
from cockpit.model.knobs import Knob, Setting
from cockpit.session.live_events import LiveEvents
from cockpit.tuning.discovery.configuration import conditions_of
from cockpit.tuning.files import HostFile
from cockpit.tuning.plan import NewValues
from cockpit.tuning.remote import Remote
from cockpit.tuning.tuner import Tuner

# In place of a value that was never read.
_UNREAD = object()


@dataclass
class KnobReader:
    """Reads `knobs`, and keeps the last values. If a knob cannot be read, its event has the reason."""

    _knobs: Sequence[Knob]
    _remotes: Mapping[str, Remote]
    _tuner: Tuner
    _events: LiveEvents
    _values: dict[str, str | None] = field(init=False, default_factory=dict)
    # Why the last value of a knob is not active, or was not read; "": it is active.
    _whys: dict[str, str] = field(init=False, default_factory=dict)
    _changes: int = field(init=False, default=0)
    # Time of the last reading of each knob.
    _read_at: dict[str, float] = field(init=False, default_factory=dict)
    # Why values are not active, by file and number of changes.
    _inactive: dict[tuple[str, str, bytes, int], dict[str, str]] = field(init=False, default_factory=dict)

    async def read(self, knob: Knob, known: dict[tuple[str, bool], HostFile] | None = None) -> str | None:
        """Read a knob on its host. `known`: files that were read for other knobs. Raises HostError, ChangeRefused."""
        known = {} if known is None else known
        changes = self._changes
        value = await self._tuner.read(self._remotes[knob.host], knob, known)
        if changes != self._changes:
            # The value, and known files, may be older than the change.
            known.clear()
            return await self.read(knob, known)
        self._report(knob, value)
        self._whys[knob.name] = await self._why_inactive(knob, known)
        if why := self._whys[knob.name]:
            raise ChangeRefused(why)
        return value

    async def read_changed(self, host: str) -> None:
        """Read the knobs of the host again, and report those whose value differs, or is active in another way. A knob
        that cannot be read now keeps its value."""
        known: dict[tuple[str, bool], HostFile] = {}
        for knob in self._knobs:
            if knob.host != host:
                continue
            changes = self._changes
            # Also of an internal error: `read_host` reports it, and one host must not end the session.
            with suppress(Exception):
                value = await self._tuner.read(self._remotes[host], knob, known)
                why = await self._why_inactive(knob, known)
                if changes != self._changes:
                    return
                if (value, why) != (self._values.get(knob.name, _UNREAD), self._whys.get(knob.name, "")):
                    self._report(knob, value)
                    self._whys[knob.name] = why
                    if why:
                        self._report_problem(knob, why)
                self._read_at[knob.name] = self._events.now()

    def _report(self, knob: Knob, value: str | None) -> None:
        t, since = self._events.now(), self._read_at.get(knob.name)
        self._values[knob.name], self._read_at[knob.name] = value, t
        self._events.emit(KnobRead(t=t, knob=knob.name, host=knob.host, value=value, since=since))

    def _report_problem(self, knob: Knob, detail: str) -> None:
        self._events.emit(KnobRead(t=self._events.now(), knob=knob.name, host=knob.host, value=None, detail=detail))

    async def read_host(self, host: str) -> bool:
        """Read all knobs of the host, each file once and before commands; return whether it has any."""
        knobs = sorted((knob for knob in self._knobs if knob.host == host), key=lambda knob: knob.live)
        known: dict[tuple[str, bool], HostFile] = {}
        for knob in knobs:
            try:
                await self.read(knob, known)
            except Exception as error:
                detail = str(error) if isinstance(error, CockpitError) else internal_error(error)
                self._report_problem(knob, detail)
                self._whys[knob.name] = detail
        return bool(knobs)

    def settings(self, values: NewValues) -> tuple[Setting, ...]:
        """Return the settings of a change with the last known old values."""
        return tuple(Setting(knob=knob.name, old=self._values.get(knob.name), new=new) for knob, new in values)

    def update(self, settings: Iterable[Setting]) -> None:
        """Report the values that a change has read back: other values are set elsewhere."""
        self._changes += 1
        values = {setting.knob: setting.new for setting in settings}
        for knob in self._knobs:
            if knob.name in values:
                self._report(knob, values[knob.name])
                self._whys.pop(knob.name, None)

    async def _why_inactive(self, knob: Knob, known: Mapping[tuple[str, bool], HostFile]) -> str:
        """Return why a value in a conditional section is not active; "" if it is, or nothing is known. The server is
        asked once per version of the file and change."""
        file = known.get((knob.file, knob.creates))
        if file is None or not conditions_of(knob, file.data):
            return ""
        key = (knob.host, knob.file, file.data, self._changes)
        if key not in self._inactive:
            same_file = [each for each in self._knobs if (each.host, each.file) == (knob.host, knob.file)]
            self._inactive[key] = await self._tuner.inactive(self._remotes[knob.host], knob.host, same_file)
        return self._inactive[key].get(knob.name, "")
