"""Feed mutated status pages to the parsers: bytes to metrics, state and a recording, which is replayed."""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import get_args

from cockpit.hosts.status.feed import parse_page
from cockpit.model import events as ev
from cockpit.model.errors import HostError
from cockpit.model.hosts import HostConfig, StatusKind, StatusPage
from cockpit.servers.status import MOST_VALUES, NAME_CHARS, TEXT_CHARS, PageMetrics
from cockpit.session.rounding import rounded
from tests.hostile.probe_fuzz import RUN, STEP, replay
from tests.hostile.streams import mutated
from tests.hosts import pages
from tests.model.hosts import UP, sample

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


def run(seed: int, count: int) -> Counter[str]:
    """Record and replay the events of `count` pages; return the outcomes."""
    rng, outcomes = random.Random(seed), Counter[str]()
    start = ev.SessionStarted(t=0, wall=1.7e9, version="0", name="x", hosts=(HOST,))
    read = [_read(t * STEP, rng, outcomes) for t in range(1, count + 1)]
    end = (count + 1) * STEP
    last = (sample(end), ev.RunEnded(t=end, run=1, reason="completed"))
    state = replay([start, UP, RUN, sample(0.0), *read, *last])
    for page in state.hosts["web1"].pages:
        assert all(map(math.isfinite, (*page.values.values(), *page.rates.values())))
    return outcomes


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
