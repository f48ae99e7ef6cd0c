"""Terminal sizes: the key metrics are visible at any size."""

from __future__ import annotations

import pytest

from cockpit.tui.main_screen import layout_for
from tests.tui.driving import press, running_app, screen_text
from tests.tui.scenario import Scenario


@pytest.mark.parametrize("size", [(120, 40), (80, 24), (60, 15), (40, 12), (200, 50)])
@pytest.mark.parametrize("hosts", [1, 8])
async def test_rate_percentiles_errors_and_hosts_are_visible(size: tuple[int, int], hosts: int) -> None:
    async with running_app(Scenario(hosts).events(76), size=size) as (pilot, _):
        text = screen_text(pilot)
        assert "1.33k" in text, "rate of the segment"
        assert "p50" in text
        assert "p99" in text
        assert "max" in text
        assert "err" in text
        assert "web1" in text
        assert "LIVE" in text
        assert "00:01:1" in text
        assert "apache2" in text


@pytest.mark.parametrize("size", [(120, 40), (80, 24), (40, 12), (20, 6), (1, 1)])
@pytest.mark.parametrize("events", [[], Scenario(2, hostile=True).events(30)], ids=["empty", "busy"])
async def test_every_screen_opens_at_every_size(size: tuple[int, int], events: list) -> None:  # type: ignore[type-arg]
    async with running_app(events, size=size) as (pilot, _):
        for keys in (("t", "escape"), ("question_mark", "escape"), ("m", "escape"), ("p", "v", "s", "p"), ("up", "b")):
            await press(pilot, *keys)


def test_layout_depends_on_terminal_size() -> None:
    assert [layout_for(*size) for size in ((120, 40), (80, 24), (79, 60), (60, 15), (40, 12), (200, 19))] == [
        *("wide", "narrow", "narrow", "tiny", "tiny", "tiny")
    ]
