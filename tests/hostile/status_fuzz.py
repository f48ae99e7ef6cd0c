"""Feed mutated status pages to the parsers: bytes to metrics, state and a recording, which is replayed.

`python -m tests.hostile.status_fuzz SEED COUNT` prints the results as JSON.
"""

from __future__ import annotations

import json
import math
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import get_args

from cockpit.hosts.status.feed import parse_page
from cockpit.model import events as ev
from cockpit.model.errors import HostError
from cockpit.model.fold import fold, fold_all
from cockpit.model.hosts import HostConfig, StatusKind, StatusPage
from cockpit.model.metrics import run_result
from cockpit.model.state import State
from cockpit.recording.reader import Recording
from cockpit.recording.writer import RecordingWriter
from cockpit.report.summary import summary
from cockpit.servers.status import MOST_VALUES, NAME_CHARS, TEXT_CHARS, PageMetrics
from cockpit.session.rounding import rounded
from tests.hostile.measuring import peak_mib
from tests.hostile.probe_fuzz import RUN, STEP
from tests.hostile.streams import NUMBERS
from tests.hosts import pages
from tests.model.hosts import UP, sample

BLOCK = 1000
KINDS: tuple[StatusKind, ...] = get_args(StatusKind)
PAGES = {
    "apache": pages.APACHE,
    "nginx": pages.NGINX,
    "squid": pages.SQUID_COUNTERS,
    "squid-info": pages.SQUID_INFO,
    "tomcat": pages.TOMCAT,
    "lighttpd": pages.LIGHTTPD,
    "haproxy": pages.HAPROXY,
    "php-fpm": pages.PHP_FPM,
    "mariadb": pages.MARIADB,
    "varnish": pages.VARNISH,
    "caddy": pages.CADDY,
}
HOST = HostConfig(name="web1", status=tuple(StatusPage(kind=kind, url="http://localhost/") for kind in KINDS))
_NUMBER = re.compile(rb"\d[\d.]*")
_TOKEN = re.compile(rb'[A-Za-z]+|[ \t]+|[<>="/:%]')


def mutated(page: bytes, rng: random.Random) -> bytes:
    for _ in range(rng.choice((1, 1, 2, 3))):
        page = rng.choice(_MUTATIONS)(page, rng)
    return page


def _number(page: bytes, rng: random.Random) -> bytes:
    found = list(_NUMBER.finditer(page))
    if not found:
        return page
    start, end = rng.choice(found).span()
    return page[:start] + rng.choice((*NUMBERS, b"1.2.3", b".", b"1e308", b"-1e308", b"9" * 19)) + page[end:]


def _token(page: bytes, rng: random.Random) -> bytes:
    """Repeat or delete a word, a sign or a blank."""
    found = list(_TOKEN.finditer(page))
    if not found:
        return page
    start, end = rng.choice(found).span()
    return page[:start] + page[start:end] * rng.choice((0, 2, 50, 2000)) + page[end:]


def _lines(page: bytes, rng: random.Random) -> bytes:
    lines = page.split(b"\n")
    at = rng.randrange(len(lines))
    lines[at : at + 1] = [lines[at]] * rng.choice((0, 2, 300))
    return rng.choice((b"\n", b"\n", b"\n", b"\r\n", b"\r", b" ")).join(lines)


def _cut(page: bytes, rng: random.Random) -> bytes:
    start, end = sorted(rng.randrange(len(page) + 1) for _ in range(2))
    return page[:start] + page[end:]


def _byte(page: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(page) + 1)
    return page[:at] + rng.randbytes(rng.choice((1, 1, 8))) + page[at + 1 :]


_MUTATIONS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    _number,
    _number,
    _number,
    _token,
    _lines,
    _cut,
    _byte,
)


def main() -> None:
    seed, count = int(sys.argv[1]), int(sys.argv[2])
    rng, outcomes, inputs = random.Random(seed), Counter[str](), 0
    try:
        while inputs < count:
            with tempfile.TemporaryDirectory() as folder:
                recorder = RecordingWriter(Path(folder) / "x.cockpit")
                start = ev.SessionStarted(t=0, wall=1.7e9, version="0", name="x", hosts=(HOST,))
                events: list[ev.AnyEvent] = [start, UP, RUN, sample(0.0)]
                for t in range(1, BLOCK):
                    inputs += 1
                    events.append(_read(t * STEP, rng, outcomes))
                events += [sample(BLOCK * STEP), ev.RunEnded(t=BLOCK * STEP, run=1, reason="completed")]
                state = State()
                for event in events:
                    state = fold(state, event)
                    recorder.record((event,))
                    recorder.settle(state)
                recorder.close()
                with Recording(Path(recorder.path)) as recording:
                    assert fold_all(recording.events()) == state, "the replay differs from the session"
                result = run_result(state, 1)
                assert result is not None
                summary(result)
                for page in state.hosts["web1"].pages:
                    assert all(map(math.isfinite, (*page.values.values(), *page.rates.values())))
    except BaseException:
        print(f"seed {seed}, input {inputs}", file=sys.stderr)
        raise
    print(json.dumps({"inputs": inputs, "mib": peak_mib(), "outcomes": outcomes}))


def _read(t: float, rng: random.Random, outcomes: Counter[str]) -> ev.AnyEvent:
    """The event for a page that is intact or mutated."""
    index = rng.randrange(len(KINDS))
    page = PAGES[KINDS[index]].encode()
    page_metrics, detail = PageMetrics({}, {}), ""
    try:
        page_metrics = parse_page(KINDS[index], page if rng.random() < 0.1 else mutated(page, rng))
        outcomes["read"] += 1
    except HostError as error:
        detail = str(error)
        outcomes["refused"] += 1
    assert len(page_metrics.values) <= MOST_VALUES and len(page_metrics.text) <= MOST_VALUES
    assert all(len(name) <= NAME_CHARS for name in (*page_metrics.values, *page_metrics.text))
    assert all(len(text) <= TEXT_CHARS for text in page_metrics.text.values())
    return rounded(
        ev.StatusRead(t=t, host="web1", page=index, values=page_metrics.values, text=page_metrics.text, detail=detail)
    )


if __name__ == "__main__":
    main()
