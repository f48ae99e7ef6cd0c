"""A headless Chromium for tests, driven over its DevTools pipe. https://chromedevtools.github.io/devtools-protocol/"""

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


class PageResult(NamedTuple):
    """An opened page: console messages and errors, requested URLs, PNG, and the value of the evaluated script."""

    console: list[str]
    requests: list[str]
    screenshot: bytes
    value: Any


def chromium() -> str | None:
    """Return the path of Chromium; None if it is missing."""
    return shutil.which("chromium")


class Browser:
    """A running browser, with one page at a time."""

    def __init__(self, to: int, from_: int) -> None:
        self._to, self._from = to, from_
        self._number = 0
        self._buffer = b""
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, session: str = "", **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result; store events that arrive before it."""
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
        """Wait for an event of this name; an event that has already arrived counts."""
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self._next())

    def _next(self) -> dict[str, Any]:
        end = time.monotonic() + DEADLINE
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._from], [], [], max(0.0, end - time.monotonic()))
            assert ready, "timeout: no message from the browser"
            chunk = os.read(self._from, 1 << 16)
            assert chunk, "the browser has ended"
            self._buffer += chunk
        message, _, self._buffer = self._buffer.partition(b"\0")
        return dict(json.loads(message))

    def open_page(
        self,
        page: Path | str,
        width: int,
        height: int,
        script: str,
        *,
        dark: bool = False,
        whole: bool = False,
        drawn: bool = True,
    ) -> PageResult:
        """Open a file or URL in a new tab and evaluate `script`. The screenshot has the whole page with `whole`, and is
        empty without `drawn`, which saves 0.1 s."""
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
        self.call("Page.navigate", session, url=page if isinstance(page, str) else page.as_uri())
        self.until("Page.loadEventFired")
        answer = self.call("Runtime.evaluate", session, expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        screenshot = b""
        if drawn:
            capture = self.call("Page.captureScreenshot", session, format="png", captureBeyondViewport=whole)
            screenshot = base64.b64decode(capture["data"])
        self.call("Target.closeTarget", targetId=target)
        return PageResult(_console(self.events), _requests(self.events), screenshot, answer["result"]["value"])


def _console(events: list[dict[str, Any]]) -> list[str]:
    found = []
    for event in events:
        params = event.get("params", {})
        if event.get("method") == "Log.entryAdded":
            found.append(str(params["entry"]["text"]))
        elif event.get("method") == "Runtime.consoleAPICalled":
            found.append(" ".join(str(argument.get("value")) for argument in params["args"]))
        elif event.get("method") == "Runtime.exceptionThrown":
            found.append(str(params["exceptionDetails"]))
    return found


def _requests(events: list[dict[str, Any]]) -> list[str]:
    sent = (event["params"] for event in events if event.get("method") == "Network.requestWillBeSent")
    urls = (params["request"]["url"] for params in sent)
    return [url for url in urls if not url.startswith("data:")]


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """Run a browser until the end of the block; its files go to `folder`."""
    program = chromium()
    assert program
    flags = [*_FLAGS, f"--user-data-dir={folder}", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    in_read, in_write = os.pipe()
    out_read, out_write = os.pipe()
    # Chromium reads commands from descriptor 3 and writes to 4.
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
