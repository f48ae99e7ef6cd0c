"""Markers as Grafana annotations: a POST of JSON per marker to a webhook.

Format: https://grafana.com/docs/grafana/latest/developers/http_api/annotations/ (time in milliseconds, tags, text).
"""

from __future__ import annotations

import os

import httpx

from cockpit.analysis.words.timeline import marker_text
from cockpit.model.errors import UsageError
from cockpit.model.markers import Marker
from cockpit.model.state import State
from cockpit.model.text import sanitize

# Environment variable with the webhook's bearer token, which is never recorded.
TOKEN = "COCKPIT_ANNOTATE_TOKEN"
# Timeout of a request (s), and consecutive failures after which no more markers are sent.
_TIMEOUT, _MAX_FAILURES = 5.0, 3
_LAST_PORT = (1 << 16) - 1


class AnnotationStream:
    """A stream that posts each marker once. Raises UsageError for an invalid URL."""

    def __init__(self, url: str) -> None:
        self._reason = ""
        self._failures = self._delivered = self._total = 0
        self._sent: set[Marker] = set()
        try:
            self._url = httpx.URL(url)
        except httpx.InvalidURL as error:
            raise UsageError(f"--annotate: {error}") from None
        if self._url.scheme not in ("http", "https") or not self._url.host or (self._url.port or 1) > _LAST_PORT:
            raise UsageError(
                f"--annotate {sanitize(url, 200)}: invalid URL; write it as https://grafana.example/api/annotations"
            )
        token = os.environ.get(TOKEN, "").strip()
        if not (token.isascii() and token.isprintable()):
            raise UsageError(f"{TOKEN}: a token has only printable ASCII characters")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._client = httpx.AsyncClient(headers=headers, timeout=_TIMEOUT, trust_env=False)

    @property
    def trouble(self) -> str:
        lost = self._total - self._delivered
        return f"--annotate: {self._url.host}: {self._reason}; {lost} of {self._total} markers not sent" if lost else ""

    async def send_new(self, state: State) -> None:
        if state.started is None:
            return
        self._total = len(set(state.markers))
        for marker in state.markers:
            if marker not in self._sent and self._failures < _MAX_FAILURES:
                self._sent.add(marker)
                await self._send(marker, state.started.wall)

    async def close(self, state: State) -> None:
        try:
            await self.send_new(state)
        finally:
            await self._client.aclose()

    async def _send(self, marker: Marker, wall: float) -> None:
        t, tags = round(1000 * (wall + marker.t)), ["cockpit", marker.kind]
        annotation = {"time": t, "tags": tags, "text": marker_text(marker)}
        try:
            response = await self._client.post(self._url, json=annotation)
        except httpx.LocalProtocolError as error:
            # Its text may show a header.
            reason = type(error).__name__
        except httpx.HTTPError as error:
            reason = str(error) or type(error).__name__
        else:
            reason = "" if response.is_success else f"status {response.status_code}"
        if reason:
            self._failures += 1
            self._reason = sanitize(reason, 200)
        else:
            self._failures = 0
            self._delivered += 1
