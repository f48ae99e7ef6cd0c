"""Replace secrets in events: only in string and bytes values. Structure, keys, numbers and names are unchanged.

Names (of a host, a knob, a disk) are unchanged even if they contain a secret: see Name.
"""

from __future__ import annotations

import base64
import html
import re
import types
from collections.abc import Callable, Iterable
from enum import Enum
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec.structs import replace

from cockpit.model import events as ev
from cockpit.model.histogram import Histogram
from cockpit.model.load.plan import REDACTED
from cockpit.model.recorded import Name, Url

# A shorter secret is replaced only if it is the whole value: within a longer text it would match by chance.
SHORTEST_INSIDE = 5
# Replacements of a secret: the first that contains no secret is used. The last one always qualifies.
_MARKERS = (REDACTED, "(hidden)", "***", "")
# Minimum length of an alphanumeric substring of a secret that is searched before the slower patterns.
_SHORTEST_CORE = 4
# Nested escapes: JSON in a JSON log line has three backslashes before a quote.
_BACKSLASHES = r"\\{0,7}"

_URL = re.compile(r"https?://(?:[^/?#@]*@)?(?P<server>[^/?#]*)", re.IGNORECASE)


class Redactor:
    """Replaces a set of secrets, also in escaped, percent-encoded and Base64 form. `event`, `text` and `raw` return the
    same object if it contains none."""

    def __init__(self, secrets: Iterable[str]) -> None:
        known = sorted({secret for secret in secrets if secret}, key=len, reverse=True)
        self._whole = frozenset(known)
        self._inside = [_Pattern(secret) for secret in known if len(secret) >= SHORTEST_INSIDE]
        long = [secret for secret in known if len(secret) >= SHORTEST_INSIDE]
        self._marker = next(marker for marker in _MARKERS if not any(secret in marker for secret in long))
        self._needles = [needle for pattern in self._inside for needle in pattern.needles]
        self._needles += [msgspec.json.encode(secret) for secret in known if len(secret) < SHORTEST_INSIDE]
        self._always = any(not pattern.needles for pattern in self._inside)

    def event(self, event: ev.AnyEvent) -> ev.AnyEvent:
        walk = walk_of(type(event))
        if walk is None or not self._whole:
            return event
        # Samples are frequent and large: a search in their encoded form takes a quarter of the time.
        if isinstance(event, ev.HostSample) and not self._may_hold(event):
            return event
        cleaned: ev.AnyEvent = walk(event, self)
        return cleaned

    def _may_hold(self, sample: ev.HostSample) -> bool:
        """Return False only if the sample contains no secret: a fast test on the encoded event."""
        if self._always:
            return True
        try:
            body = ev.encode(sample)
        except ValueError:
            # A lone surrogate cannot be encoded.
            return True
        return any(needle in body for needle in self._needles)

    def text(self, value: str) -> str:
        if value in self._whole:
            return self._marker
        cleaned = value
        for pattern in self._inside:
            cleaned = pattern.replaced(cleaned, self._marker)
        if cleaned == value:
            return value
        # The marker and the text around it may form a secret.
        return self._marker if any(pattern.secret in cleaned for pattern in self._inside) else cleaned

    def raw(self, value: bytes) -> bytes:
        text = value.decode("utf-8", "surrogateescape")
        cleaned = self.text(text)
        return value if cleaned is text else cleaned.encode("utf-8", "surrogateescape")


Walk = Callable[[Any, Redactor], Any]


class _Pattern:
    """A secret that is replaced within text.

    `needles`: JSON that contains the secret contains at least one of these byte strings. Empty: no such fast test.
    """

    def __init__(self, secret: str) -> None:
        self.secret = secret
        self._core = max(re.findall("[0-9A-Za-z]*", secret), key=len)
        if len(self._core) < _SHORTEST_CORE:
            self._core = ""
        self._base64 = _base64_forms(secret)
        self._encoded = re.compile("".join(map(_any_form, re.findall(r"\\+|[^\\]", secret, re.DOTALL))))
        self.needles = [form.encode() for form in (self._core, *self._base64)] if self._core else []

    def replaced(self, text: str, marker: str) -> str:
        if self._core in text:
            text = self._encoded.sub(lambda _: marker, text)
        for form in self._base64:
            if form in text:
                text = text.replace(form, marker)
        return text


def _any_form(part: str) -> str:
    """Return a pattern for a character or a run of backslashes, plain and as escaped in URLs, JSON, shells, HTML."""
    if part[0] == "\\":
        count = len(part)
        return rf"(?:\\{{{count},{8 * count}}}|(?:%5[Cc]|\\{{1,8}}x5[Cc]|&#(?:0*92|[Xx]0*5[Cc]);){{{count}}})"
    if part.isascii() and part.isalnum():
        return part
    raw = part.encode("utf-8", "surrogatepass")
    units = part.encode("utf-16-be", "surrogatepass").hex()
    forms = [
        re.escape(part),
        "".join(f"(?i:%{byte:02x})" for byte in raw),
        "".join(rf"\\{{1,8}}(?i:x{byte:02x})" for byte in raw),
        "".join(rf"\\{{1,8}}(?i:u{units[at : at + 4]})" for at in range(0, len(units), 4)),
        re.escape(html.escape(part)),
        rf"&#(?:0*{ord(part)}|(?i:x0*{ord(part):x}));",
    ]
    short = {"\n": "n", "\t": "t", "\r": "r", "\b": "b", "\f": "f"}.get(part)
    if short:
        forms.append(rf"\\{{1,8}}{short}")
    if part == " ":
        forms.append(r"\+")
    if part == "'":
        # A quote within single quotes of a shell.
        forms += [r"'\\''", "'\"'\"'"]
    return f"{_BACKSLASHES}(?:{'|'.join(dict.fromkeys(forms))})"


def _base64_forms(secret: str) -> list[str]:
    """Return the substrings that the Base64 of any text with the secret contains, for the three alignments."""
    raw = secret.encode("utf-8", "surrogatepass")
    forms: dict[str, None] = {}
    for before in range(3):
        coded = base64.b64encode(b"\0" * before + raw)
        first = -(-8 * before // 6)
        last = 8 * (before + len(raw)) // 6
        form = coded[first:last].decode()
        forms.update(dict.fromkeys((form, form.replace("+", "-").replace("/", "_"))))
    return list(forms)


@cache
def walk_of(kind: Any) -> Walk | None:
    """Return a function that redacts values of a type; None: it has no text. Raises TypeError for unknown types."""
    if kind == Name:
        return None
    if kind == Url:
        return _clean_url
    if kind is str:
        return lambda value, cleaner: cleaner.text(value)
    if kind is bytes:
        return lambda value, cleaner: cleaner.raw(value)
    if kind in (int, float, bool, types.NoneType, Histogram):
        return None
    if isinstance(kind, type) and issubclass(kind, Enum):
        return None
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return _walk_struct(kind)
    return _walk_form(kind, get_origin(kind), get_args(kind))


def _walk_form(kind: Any, origin: Any, parts: tuple[Any, ...]) -> Walk | None:
    if origin is Literal:
        return None
    if origin in (Union, types.UnionType) and types.NoneType in parts and len(parts) == 2:
        inner = walk_of(next(part for part in parts if part is not types.NoneType))
        return inner and (lambda value, cleaner: None if value is None else inner(value, cleaner))
    if origin is dict:
        return _walk_values(walk_of(parts[1]))
    if origin is tuple:
        return _walk_items([walk_of(part) for part in parts if part is not ...], repeated=parts[-1:] == (...,))
    raise TypeError(f"no redaction for {kind!r}")


def _walk_struct(kind: type[msgspec.Struct]) -> Walk | None:
    walks = [(field.name, walk_of(field.type)) for field in msgspec.structs.fields(kind)]
    walked = [(name, walk) for name, walk in walks if walk is not None]
    if not walked:
        return None

    def clean(value: Any, cleaner: Redactor) -> Any:
        changed = {}
        for name, walk in walked:
            before = getattr(value, name)
            after = walk(before, cleaner)
            if after is not before:
                changed[name] = after
        return replace(value, **changed) if changed else value

    return clean


def _clean_url(value: str, cleaner: Redactor) -> str:
    """Redact a URL, except host and port, which are names."""
    match = _URL.match(value)
    if not match:
        return cleaner.text(value)
    begin, end = match.span("server")
    cleaned = cleaner.text(value[:begin]) + value[begin:end] + cleaner.text(value[end:])
    return value if cleaned == value else cleaned


def _walk_values(inner: Walk | None) -> Walk | None:
    if inner is None:
        return None

    def clean(value: dict[Any, Any], cleaner: Redactor) -> dict[Any, Any]:
        cleaned = {key: inner(item, cleaner) for key, item in value.items()}
        return cleaned if any(cleaned[key] is not item for key, item in value.items()) else value

    return clean


def _walk_items(inner: list[Walk | None], *, repeated: bool) -> Walk | None:
    if not any(inner):
        return None

    def clean(value: tuple[Any, ...], cleaner: Redactor) -> tuple[Any, ...]:
        walks = inner * len(value) if repeated else inner
        cleaned = tuple(walk(item, cleaner) if walk else item for walk, item in zip(walks, value, strict=True))
        return cleaned if any(item is not before for item, before in zip(cleaned, value, strict=True)) else value

    return clean
