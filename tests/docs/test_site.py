"""The site of `make docs` in a real browser: no dead link, no request to another host, casts that play."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urldefrag

import pytest

from cockpit.cli.commands.help import topics
from docs.__main__ import build
from docs.pages import casts, write_pages
from tests.browser import Browser, browser

pytestmark = pytest.mark.lab

# Links, their possible targets, tables and items of lists.
ASK = """({
  links: [...document.querySelectorAll('a[href]')].map(link => link.href),
  names: [...document.querySelectorAll('[id]')].map(part => part.id),
  tables: document.querySelectorAll('article table').length,
  items: document.querySelectorAll('article li').length,
})"""
# The text of each cast's screen, after it was started and at least two frames were drawn.
PLAY = """Promise.all([...document.querySelectorAll('.cast')].map(cast => new Promise(resolve => {
  const seen = new Set();
  const look = () => {
    const screen = cast.querySelector('.ap-term');
    if (screen) seen.add(screen.innerHTML);
    seen.size > 2 ? resolve(screen.innerText) : requestAnimationFrame(look);
  };
  cast.querySelector('.ap-overlay-start').click();
  look();
})))"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    folder = tmp_path_factory.mktemp("docs") / "site"
    build(folder)
    with served(folder) as url:
        yield folder, url


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("chromium")) as running:
        yield running


def test_every_page_opens_without_another_host_or_a_dead_link(chromium: Browser, site: tuple[Path, str]) -> None:
    folder, url = site
    names = [path.name for path in sorted(folder.rglob("*.html")) if path.name != "404.html"]
    results = {f"{url}/{name}": chromium.open_page(f"{url}/{name}", 1000, 300, ASK) for name in names}
    assert {f"{name}.html" for name in topics()} < set(names)
    for result in results.values():
        assert result.console == []
        assert [each for each in result.requests if not each.startswith(f"{url}/")] == []
    targets = {(page, name) for page, result in results.items() for name in ("", *result.value["names"])}
    links = {(page, link) for page, result in results.items() for link in result.value["links"]}
    assert {(page, link) for page, link in links if link.startswith(url) and urldefrag(link) not in targets} == set()


def test_tables_and_lists_of_every_page_are_drawn(chromium: Browser, site: tuple[Path, str], tmp_path: Path) -> None:
    _, url = site
    write_pages(tmp_path / "pages")
    for name in ("metrics", "shipped-profiles", "commands", "tuning"):
        page = (tmp_path / "pages" / f"{name}.md").read_text()
        drawn = chromium.open_page(f"{url}/{name}.html", 1000, 300, ASK).value
        assert drawn["tables"] == len(re.findall(r"^\|(?: ?:?-+:? ?\|)+$", page, re.MULTILINE)), name
        assert drawn["items"] == len(re.findall(r"^(?: {4})?(?:-|\d+\.) ", page, re.MULTILINE)), name


def test_casts_play_and_pages_can_be_dark(chromium: Browser, site: tuple[Path, str]) -> None:
    _, url = site
    result = chromium.open_page(f"{url}/sessions.html", 1200, 900, PLAY, dark=True)
    assert result.console == [] and len(result.value) == len(casts())
    for text in result.value:
        assert "throughput" in text and "REPLAY" in text
