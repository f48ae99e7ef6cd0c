"""The registry of server kinds: one folder each, unique names, derived tables."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from cockpit.cli.help import text
from cockpit.model.hosts import StatusPage
from cockpit.model.pages import PAGE_METRICS
from cockpit.profiles.knobs import NEEDS
from cockpit.servers import registry
from cockpit.servers.kind import ServerKind

FOLDERS = sorted(path.parent.name for path in Path(registry.__file__).parent.glob("*/__init__.py"))


@pytest.mark.parametrize("folder", FOLDERS)
def test_each_folder_is_registered(folder: str) -> None:
    module = import_module(f"cockpit.servers.{folder}")
    if folder in ("keyvalue", "systemd"):
        assert registry.GRAMMARS[folder] is module.GRAMMAR
    else:
        assert module.KIND in registry.KINDS


def test_kind_and_page_names_are_unique() -> None:
    names = [kind.name for kind in registry.KINDS]
    pages = [page.name for kind in registry.KINDS for page in kind.status]
    assert len(set(names)) == len(names) and len(set(pages)) == len(pages)


@pytest.mark.parametrize("page", registry.STATUS_PAGES.values(), ids=registry.STATUS_PAGES)
def test_each_page_has_metrics_help_and_hints(page: registry.StatusPageKind) -> None:
    assert not set(page.means) & set(page.rates)
    assert all(page.is_counter(name) for name in page.rates.values())
    assert not any(page.is_counter(name) for name in page.means.values())
    assert page.not_found and page.forbidden
    assert f"{page.name}.{next(iter({**page.means, **page.rates}))}" in PAGE_METRICS
    assert f"| `{page.name}` | `{page.url}` |" in text("hosts")
    assert StatusPage(kind=page.name, url="http://x/")


@pytest.mark.parametrize("kind", registry.KINDS, ids=[kind.name for kind in registry.KINDS])
def test_each_knob_kind_is_in_profiles_and_help(kind: ServerKind) -> None:
    for expression in (kind.failure, kind.correction, kind.chatter):
        re.compile(expression)
    if kind.grammar is not None:
        assert NEEDS[kind.name] == ("file", "directive", "test", "reload")
        assert f"`{kind.name}`" in text("knobs") and kind.name in text("profile")
