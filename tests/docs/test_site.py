"""The site of `make docs` in a real browser: no dead link, no request to another host, casts that play."""

import re
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import urldefrag

import pytest

from docs.__main__ import build
from docs.pages import casts, write_pages
from tests.browser import Browser, browser
from tests.data import data_of

DATA = data_of(__file__)

pytestmark = pytest.mark.lab

# Links, their possible targets, tables and items of lists.
ASK = """({
  links: [...document.querySelectorAll('a[href]')].map(link => link.href),
  names: [...document.querySelectorAll('[id]')].map(part => part.id),
  tables: document.querySelectorAll('article table').length,
  items: document.querySelectorAll('article li').length,
})"""
# The text of each cast's screen, after it was started and at least two frames were drawn.
PLAY = DATA["play"]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the URL of the site."""
    folder = tmp_path_factory.mktemp("docs") / "site"
    build(folder)
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("chromium")) as running:
        yield running


def test_every_page_opens_without_another_host_or_a_dead_link(chromium: Browser, site: str, tmp_path: Path) -> None:
    write_pages(tmp_path / "pages")
    results = {}
    for path in (tmp_path / "pages").glob("*.md"):
        page, url = path.read_text(), f"{site}/{path.stem}.html"
        results[url] = result = chromium.open_page(url, 1000, 300, ASK, drawn=False)
        assert result.console == []
        assert [each for each in result.requests if not each.startswith(f"{site}/")] == []
        assert result.value["tables"] == len(re.findall(r"^\|(?: ?:?-+:? ?\|)+$", page, re.MULTILINE)), url
        assert result.value["items"] == len(re.findall(r"^(?: {4})?(?:-|\d+\.) ", page, re.MULTILINE)), url
    targets = {(page, name) for page, result in results.items() for name in ("", *result.value["names"])}
    links = {(page, link) for page, result in results.items() for link in result.value["links"]}
    assert {(page, link) for page, link in links if link.startswith(site) and urldefrag(link) not in targets} == set()


def test_casts_play(chromium: Browser, site: str) -> None:
    result = chromium.open_page(f"{site}/sessions.html", 1200, 900, PLAY, dark=True)
    assert result.console == [] and len(result.value) == len(casts())
    for text in result.value:
        assert "throughput" in text and "REPLAY" in text
