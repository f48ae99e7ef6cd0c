"""The secrets of a session: passwords, tokens and cookies of its profile, and values of knobs marked as secret.

They are replaced in every event before it is recorded or shown, e.g. in command lines, log lines and errors.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from urllib.parse import unquote, urlsplit

from msgspec.structs import replace

from cockpit.model.errors import CockpitError
from cockpit.model.events import AnyEvent, ChangeBegun, KnobRead, RoundsBegun
from cockpit.model.knobs import Setting
from cockpit.model.load.plan import REDACTED, LoadPlan, Request
from cockpit.profiles.profile import Profile
from cockpit.recording.redaction import Redactor

# A header whose name contains one of these words is a secret.
_SECRET_WORDS = ("auth", "cookie", "token", "secret", "key", "session", "password", "credential")
# Shorter bodies (characters) are words that occur elsewhere, too.
_SHORTEST_BODY = 5


class Secrets:
    """The secrets of a session. Values of secret knobs are added when they are read or changed."""

    def __init__(self, profile: Profile) -> None:
        self._knobs = {knob.name for knob in profile.knobs if knob.secret}
        self._known: set[str] = set()
        self._redactor = Redactor(())
        self.learn_plan(profile.plan)
        for page in (page for host in profile.hosts for page in host.status):
            self._learn_login(page.auth)
        for knob in profile.knobs:
            if knob.secret:
                self._learn(*knob.values)
        for variant in (
            variant for study in (profile.study, profile.short_study) if study for variant in study.variants
        ):
            self._learn_url(variant.url)
            self._learn(*(value for knob, value in variant.set if knob in self._knobs))

    def hide_values(self, knobs: Iterable[str]) -> None:
        """Treat these knobs as secret, too."""
        self._knobs |= set(knobs)

    def learn_plan(self, plan: LoadPlan) -> None:
        """Add the secrets of a load plan."""
        requests: tuple[LoadPlan | Request, ...] = (plan, *plan.mix)
        for request in requests:
            self._learn(*([request.body] if request.body and len(request.body) >= _SHORTEST_BODY else []))
            for name, value in request.headers:
                self._learn_header(name, value)
        for url in (*(request.url for request in requests), *(variant.url for variant in plan.variants)):
            self._learn_url(url)

    def redact(self, event: AnyEvent) -> AnyEvent:
        """Return the event with `(not recorded)` in place of every secret; the same object if it contains none."""
        if self._knobs:
            event = self._without_values(event)
        return self._redactor.event(event)

    def text(self, text: str) -> str:
        return self._redactor.text(text)

    @contextmanager
    def redact_errors(self) -> Iterator[None]:
        """Context manager that replaces every secret in the message of a CockpitError."""
        try:
            yield
        except CockpitError as error:
            error.args = tuple(self.text(arg) if isinstance(arg, str) else arg for arg in error.args)
            raise

    def _without_values(self, event: AnyEvent) -> AnyEvent:
        if isinstance(event, KnobRead) and event.knob in self._knobs and event.value is not None:
            self._learn(event.value)
            return replace(event, value=REDACTED)
        if isinstance(event, ChangeBegun) and any(setting.knob in self._knobs for setting in event.settings):
            return replace(
                event, settings=tuple(map(self._redacted, event.settings)), diff=REDACTED if event.diff else ""
            )
        if isinstance(event, RoundsBegun):
            return replace(event, settings=tuple(map(self._redacted, event.settings)))
        return event

    def _redacted(self, setting: Setting) -> Setting:
        if setting.knob not in self._knobs:
            return setting
        self._learn(*(value for value in (setting.old, setting.new) if value))
        return replace(
            setting,
            old=None if setting.old is None else REDACTED,
            new=None if setting.new is None else REDACTED,
        )

    def _learn(self, *texts: str) -> None:
        """Add secrets, each in plain and percent-decoded form."""
        forms = {form for text in texts for form in (text, unquote(text))} - {"", REDACTED}
        if forms <= self._known:
            return
        self._known |= forms
        self._redactor = Redactor(self._known)

    def _learn_url(self, url: str) -> None:
        user, at, _ = urlsplit(url).netloc.rpartition("@")
        if at:
            self._learn_login(unquote(user))

    def _learn_login(self, login: str) -> None:
        """Add the secrets of `user:password`: the password (without one the user, e.g. an API key), both together, and
        both in Base64 (as HTTP sends them)."""
        user, _, password = login.partition(":")
        if secret := password or user:
            pair = f"{user}:{password}"
            self._learn(secret, pair, base64.b64encode(pair.encode()).decode())

    def _learn_header(self, name: str, value: str) -> None:
        if not any(word in name.lower() for word in _SECRET_WORDS):
            return
        self._learn(value)
        scheme, space, rest = value.partition(" ")
        if space:
            self._learn(rest.strip())
        if scheme.lower() == "basic":
            try:
                self._learn_login(base64.b64decode(rest.strip(), validate=True).decode())
            except (binascii.Error, UnicodeDecodeError):
                return
        for pair in value.split(";"):
            _, equals, secret = pair.strip().partition("=")
            if equals:
                self._learn(secret)
