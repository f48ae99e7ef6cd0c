"""Markers as Grafana annotations: a POST of JSON per marker to a webhook.

Format: https://grafana.com/docs/grafana/latest/developers/http_api/annotations/ (time in milliseconds, tags, text).
"""

from __future__ import annotations

import os

import httpx

from cockpit.model.errors import UsageError
from cockpit.model.state import Marker, State
from cockpit.model.text import neutral

# The environment variable with the token of the webhook; it is sent as a bearer token and never recorded.
TOKEN = "COCKPIT_ANNOTATE_TOKEN"
# Seconds that the webhook may take, and how often in a row it may fail before it is left alone.
_TIMEOUT, _GIVEN_UP = 5.0, 3
_LAST_PORT = (1 << 16) - 1


class AnnotationStream:
    """Sends each marker once. Raises UsageError for a URL that is none."""

    def __init__(self, url: str) -> None:
        self._why = ""
        self._failures = self._delivered = self._known = 0
        self._sent: set[Marker] = set()
        try:
            self._url = httpx.URL(url)
        except httpx.InvalidURL as error:
            raise UsageError(f"--annotate: {error}") from None
        if self._url.scheme not in ("http", "https") or not self._url.host or (self._url.port or 1) > _LAST_PORT:
            raise UsageError(f"--annotate {neutral(url, 200)}: write it as https://grafana.example/api/annotations")
        token = os.environ.get(TOKEN, "")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._client = httpx.AsyncClient(headers=headers, timeout=_TIMEOUT, trust_env=False)

    @property
    def trouble(self) -> str:
        lost = self._known - self._delivered
        return f"--annotate: {self._url.host}: {self._why}; {lost} of {self._known} markers not sent" if lost else ""

    async def take(self, state: State) -> None:
        if state.started is None:
            return
        self._known = len(set(state.markers))
        for marker in state.markers:
            if marker not in self._sent and self._failures < _GIVEN_UP:
                self._sent.add(marker)
                await self._send(marker, state.started.wall)

    async def close(self, state: State) -> None:
        await self.take(state)
        await self._client.aclose()

    async def _send(self, marker: Marker, wall: float) -> None:
        annotation = {"time": round(1000 * (wall + marker.t)), "tags": ["cockpit", marker.kind], "text": marker.text}
        try:
            answer = await self._client.post(self._url, json=annotation)
        except httpx.HTTPError as error:
            why = str(error) or type(error).__name__
        else:
            why = "" if answer.is_success else f"status {answer.status_code}"
        if why:
            self._failures += 1
            self._why = neutral(why, 200)
        else:
            self._failures = 0
            self._delivered += 1
