"""What must not be told: passwords, tokens and cookies of the profile, and values of knobs that it marks secret.

They are taken out of every event before anybody sees it, wherever they turn up: in a process's command line, in the
line of a tail, in an error.
"""

from __future__ import annotations

import base64
import binascii
from urllib.parse import quote, unquote, urlsplit

import msgspec
from msgspec.structs import replace

from cockpit.model.events import AnyEvent, ChangeBegun, KnobRead, Tick, decode, encode
from cockpit.model.knobs import Setting
from cockpit.model.load import REDACTED
from cockpit.profiles.profile import Profile

# What is shorter stands in too many places where it is no secret.
_SHORTEST = 5
# A header is taken for a secret by its name.
_TELLING = ("auth", "cookie", "token", "secret", "key", "session", "password", "credential")


class Secrets:
    """The secrets of one session; it may learn more of them as knobs are read and changed."""

    def __init__(self, profile: Profile) -> None:
        self._knobs = {knob.name for knob in profile.knobs if knob.secret}
        self._coded: set[bytes] = set()
        plan = profile.plan
        for url, headers in ((plan.url, plan.headers), *((one.url, one.headers) for one in plan.mix)):
            self._learn_url(url)
            for name, value in headers:
                self._learn_header(name, value)
        for page in (page for host in profile.hosts for page in host.status):
            self._learn_login(page.auth)

    def without(self, event: AnyEvent) -> AnyEvent:
        """The event with `(not recorded)` in the place of every secret."""
        if self._knobs:
            event = self._without_values(event)
        if not self._coded or isinstance(event, Tick):
            return event
        body = encode(event)
        if not any(secret in body for secret in self._coded):
            return event
        for secret in sorted(self._coded, key=len, reverse=True):
            body = body.replace(secret, REDACTED.encode())
        return decode(body)

    def _without_values(self, event: AnyEvent) -> AnyEvent:
        if isinstance(event, KnobRead) and event.knob in self._knobs and event.value is not None:
            self._learn(event.value)
            return replace(event, value=REDACTED)
        if isinstance(event, ChangeBegun) and any(setting.knob in self._knobs for setting in event.settings):
            return replace(
                event, settings=tuple(map(self._hidden, event.settings)), diff=REDACTED if event.diff else ""
            )
        return event

    def _hidden(self, setting: Setting) -> Setting:
        if setting.knob not in self._knobs:
            return setting
        for value in (setting.old, setting.new):
            self._learn(value or "")
        return replace(
            setting,
            old=None if setting.old is None else REDACTED,
            new=None if setting.new is None else REDACTED,
        )

    def _learn(self, text: str) -> None:
        """As it stands in the JSON of an event, plain and as URLs write it."""
        for form in {text, quote(text, safe=""), unquote(text)}:
            if len(form) >= _SHORTEST and form != REDACTED:
                self._coded.add(msgspec.json.encode(form)[1:-1])

    def _learn_url(self, url: str) -> None:
        user, at, _ = urlsplit(url).netloc.rpartition("@")
        if at:
            self._learn_login(unquote(user))

    def _learn_login(self, login: str) -> None:
        """`user:password`: the password, both together, and both as HTTP sends them."""
        _, colon, password = login.partition(":")
        if colon and password:
            self._learn(password)
            self._learn(login)
            self._learn(base64.b64encode(login.encode()).decode())

    def _learn_header(self, name: str, value: str) -> None:
        if not any(word in name.lower() for word in _TELLING):
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
            _, equals, worth = pair.strip().partition("=")
            if equals:
                self._learn(worth)
