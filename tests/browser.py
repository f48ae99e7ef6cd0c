"""A headless Chromium for tests, driven over its DevTools pipe. https://chromedevtools.github.io/devtools-protocol/"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

DEADLINE = 90.0
_FLAGS = (
    *("--headless=new", "--remote-debugging-pipe", "--disable-gpu", "--no-first-run", "--disable-extensions"),
    *("--disable-background-networking", "--disable-sync", "--disable-component-update", "--hide-scrollbars"),
    *("--mute-audio", "--disable-dev-shm-usage", "--disable-breakpad", "--force-color-profile=srgb"),
)


class Look(NamedTuple):
    """What became of a page: `said` on the console (errors and all), addresses that were asked for, a picture."""

    said: list[str]
    asked: list[str]
    picture: bytes
    found: Any


def chromium() -> str | None:
    """Where it is, if it is on this machine."""
    return shutil.which("chromium")


class Browser:
    """Knows one page at a time."""

    def __init__(self, to: int, from_: int) -> None:
        self._to, self._from = to, from_
        self._number = 0
        self._waiting = b""
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, session: str = "", **parameters: Any) -> dict[str, Any]:
        """The answer to a command. Events that come meanwhile are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        os.write(self._to, json.dumps(message | ({"sessionId": session} if session else {})).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return dict(answer["result"])
            self.events.append(answer)

    def until(self, method: str) -> None:
        """Waits for an event of that name, one that came already included."""
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self._next())

    def _next(self) -> dict[str, Any]:
        end = time.monotonic() + DEADLINE
        while b"\0" not in self._waiting:
            ready, _, _ = select.select([self._from], [], [], max(0.0, end - time.monotonic()))
            assert ready, "the browser does not answer"
            piece = os.read(self._from, 1 << 16)
            assert piece, "the browser has gone"
            self._waiting += piece
        message, _, self._waiting = self._waiting.partition(b"\0")
        return dict(json.loads(message))

    def look(self, page: Path, width: int, height: int, ask: str, *, dark: bool = False, whole: bool = False) -> Look:
        """Opens the page anew. `ask` is JavaScript whose value is `found`; `whole`: the picture is of all of it."""
        self.events = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable", session)
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", session, **size)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", session, features=scheme)
        self.events = []
        self.call("Page.navigate", session, url=page.as_uri())
        self.until("Page.loadEventFired")
        answer = self.call("Runtime.evaluate", session, expression=ask, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        shot = self.call("Page.captureScreenshot", session, format="png", captureBeyondViewport=whole)
        self.call("Target.closeTarget", targetId=target)
        return Look(_said(self.events), _asked(self.events), base64.b64decode(shot["data"]), answer["result"]["value"])


def _said(events: list[dict[str, Any]]) -> list[str]:
    found = []
    for event in events:
        told = event.get("params", {})
        if event.get("method") == "Log.entryAdded":
            found.append(str(told["entry"]["text"]))
        elif event.get("method") == "Runtime.consoleAPICalled":
            found.append(" ".join(str(one.get("value")) for one in told["args"]))
        elif event.get("method") == "Runtime.exceptionThrown":
            found.append(str(told["exceptionDetails"]))
    return found


def _asked(events: list[dict[str, Any]]) -> list[str]:
    requests = (event["params"] for event in events if event.get("method") == "Network.requestWillBeSent")
    asked = (told["request"]["url"] for told in requests)
    return [url for url in asked if not url.startswith("data:")]


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """Runs until the block is left; what it writes goes into `folder`."""
    program = chromium()
    assert program
    flags = [*_FLAGS, f"--user-data-dir={folder}", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    in_read, in_write = os.pipe()
    out_read, out_write = os.pipe()
    # It reads commands from 3 and writes to 4, whatever numbers the pipes have here.
    command = f'exec "$@" 3<&{in_read} 4>&{out_write}'
    process = subprocess.Popen(
        ["bash", "-c", command, "bash", program, *flags],
        pass_fds=(in_read, out_write),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "HOME": str(folder)},
    )
    os.close(in_read)
    os.close(out_write)
    driven = Browser(in_write, out_read)
    try:
        yield driven
        driven.call("Browser.close")
    finally:
        os.close(in_write)
        os.close(out_read)
        try:
            process.wait(timeout=DEADLINE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
