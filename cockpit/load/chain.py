"""Chained requests: values extracted from a response are inserted into the following requests of the same user."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote_from_bytes

import msgspec

from cockpit.load.http.request import request_parts, requests_of
from cockpit.load.request_order import PlannedRequest
from cockpit.model.load.plan import Extraction, LoadPlan, Request

# Maximum length of a value (bytes).
_VALUE_LIMIT = 4096
_VALUE = re.compile(rb"[ -~\x80-\xff]+")
_LENGTH = re.compile(rb"(?i)(\r\nContent-Length:)[ \t]*\d+")


def extract_value(extraction: Extraction, head: bytes, body: bytes) -> bytes | None:
    """Return the value in a response; None if it is missing, too long, or not a single line."""
    if extraction.source == "header":
        name = extraction.expression.lower().encode()
        fields = (line.partition(b":") for line in head.splitlines()[1:])
        value = next((value.strip() for field, _, value in fields if field.lower() == name), None)
    elif extraction.source == "json":
        value = _from_json(extraction.expression, body)
    else:
        match = re.compile(extraction.expression.encode()).search(body)
        value = (match[1] if match.re.groups else match[0]) if match else None
    return value if value and len(value) <= _VALUE_LIMIT and _VALUE.fullmatch(value) else None


def _from_json(path: str, body: bytes) -> bytes | None:
    """Return the string, number or boolean at a path of names and indexes, e.g. `items.0.id`."""
    try:
        value: Any = msgspec.json.decode(body)
        for step in path.split("."):
            value = value[int(step)] if isinstance(value, list) else value[step]
    except (msgspec.DecodeError, LookupError, TypeError, ValueError, RecursionError):
        return None
    if isinstance(value, str):
        return value.encode()
    return msgspec.json.encode(value) if isinstance(value, int | float) else None


class RequestTemplate:
    """A request with placeholders `{name}`; values are percent-encoded in the path."""

    def __init__(self, request: Request, names: tuple[str, ...], *, keepalive: bool) -> None:
        self._pieces = request_parts(request, keepalive=keepalive)
        self._size = len(request.content)
        choice = "|".join(map(re.escape, names)).encode()
        self._placeholder = re.compile(rb"(?:\{|%7B)(" + choice + rb")(?:\}|%7D)")
        self.whole = b"".join(self._pieces)
        self._constant = not names or self._placeholder.search(self.whole) is None

    def filled(self, values: Mapping[bytes, bytes]) -> bytes:
        """Return the bytes to send. Raises KeyError for a missing value."""
        if self._constant:
            return self.whole
        before, path, rest = self._pieces
        path = self._placeholder.sub(lambda match: quote_from_bytes(values[match[1]], safe="").encode(), path)
        split = len(rest) - self._size
        head, body = (
            self._placeholder.sub(lambda match: values[match[1]], part) for part in (rest[:split], rest[split:])
        )
        return before + path + _LENGTH.sub(rb"\g<1> %d" % len(body), head, count=1) + body


class ChainOrder:
    """The requests of a chain, in the order of the plan per user, with the members of `RequestOrder`."""

    only = None

    def __init__(self, plan: LoadPlan) -> None:
        requests = requests_of(plan)
        self._extractions = [request.extract for request in requests]
        self._templates = []
        names: tuple[str, ...] = ()
        for request in requests:
            self._templates.append(RequestTemplate(request, names, keepalive=plan.keepalive))
            names += tuple(extraction.name for extraction in request.extract)
        self.largest = max(len(template.whole) for template in self._templates)

    def next_request(self, connection: Any) -> PlannedRequest:
        """Return the next request of a connection's user: the first one after the last one or after a failure."""
        user = connection.user
        step = user.step + 1 if user.succeeded and user.step + 1 < len(self._templates) else 0
        if step == 0:
            user.values = {}
        user.step, user.extractions, user.succeeded = step, self._extractions[step], False
        return PlannedRequest(step, self._templates[step].filled(user.values))
