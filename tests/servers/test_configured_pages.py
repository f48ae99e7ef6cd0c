"""Status pages in the configurations of servers, and the URLs at which their host requests them."""

from __future__ import annotations

from typing import Any

import pytest

from cockpit.servers.registry import PAGES
from tests.data import data_of


@pytest.mark.parametrize("case", data_of(__file__)["case"], ids=lambda case: case["id"])
def test_urls_of_pages(case: dict[str, Any]) -> None:
    """A URL has no other host than `localhost`, an own address, or the target's name if the site has it."""
    ports = case.get("ports", [])
    pages = PAGES[case["kind"]]({"/etc/a.conf": case["text"]}, ports)
    rows = {
        page.line: list(page.urls("www.example", ports, {"10.0.0.1"})) or page.obstacle or page.fastcgi
        for page in pages
    }
    assert rows == {int(line): row for line, row in case["pages"].items()}


def test_pool_in_two_files() -> None:
    texts = {"/a.conf": "[www]\npm.status_path = /s\n", "/b.conf": "[www]\nlisten = /run/$pool.sock\n"}
    (page,) = PAGES["php-fpm"](texts, [])
    assert (page.file, page.line, page.pool, page.fastcgi) == ("/a.conf", 2, "www", "/run/www.sock")
