"""The main screen as text, at every size, with two, four and eight hosts of long and wide names.

`pytest --snapshot-update` rewrites the snapshots.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace
from rich.cells import cell_len
from syrupy.assertion import SnapshotAssertion

from cockpit.model import events as ev
from tests.tui.driving import press, running_app, wait_idle
from tests.tui.scenario import Scenario
from tests.tui.test_themes import strips

SIZES = ((200, 50), (120, 40), (80, 24), (60, 15), (40, 12))
HOSTS = (2, 4, 8)
NAMES = {
    "web1": "web-frontend-01.frankfurt.example.net",
    "web2": "日本語サーバー東京",
    "web3": "db",
    "web4": "ｆｕｌｌｗｉｄｔｈ",
    "web5": "edge-cache-5",
    "web6": "한국서버",
    "web7": "x",
    "web8": "app-8",
}
PROFILE = "a-very-long-profile-name-of-多くの予備サーバー"
PROCESSES = ("php-fpm-pool-very-long-名前", "apache2", "nginx")


def renamed(events: Sequence[ev.AnyEvent]) -> list[ev.AnyEvent]:
    """Return the same session with other names."""
    return [_renamed(event) for event in events]


def _renamed(event: ev.AnyEvent) -> ev.AnyEvent:
    if isinstance(event, ev.SessionStarted):
        hosts = tuple(
            replace(host, name=NAMES[host.name], ssh=f"root@{NAMES[host.name]}", processes=(PROCESSES[at % 3],))
            for at, host in enumerate(event.hosts)
        )
        knobs = tuple(replace(knob, host=NAMES[knob.host]) for knob in event.knobs)
        return replace(event, name=PROFILE, hosts=hosts, knobs=knobs)
    host = getattr(event, "host", "")
    return replace(event, host=NAMES[host]) if host in NAMES else event


async def screen_lines(size: tuple[int, int], events: Sequence[ev.AnyEvent], keys: Sequence[str] = ()) -> list[str]:
    """Return the lines of the screen."""
    async with running_app(events, size=size) as (pilot, _):
        await press(pilot, *keys)
        await wait_idle(pilot)
        return [strip.text for strip in strips(pilot.app)]


def checked(lines: Sequence[str], size: tuple[int, int]) -> str:
    """Return the screen as text; every line must have the width of the screen."""
    width, height = size
    assert len(lines) == height
    assert {cell_len(line) for line in lines} == {width}
    return "\n".join(f"{line}|" for line in lines)


@pytest.mark.parametrize("hosts", HOSTS, ids="{} hosts".format)
@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_main_screen_by_size_and_host_count(
    size: tuple[int, int], hosts: int, snapshot: SnapshotAssertion
) -> None:
    lines = await screen_lines(size, renamed(Scenario(hosts, hostile=True).events(62.5)))
    if size in SIZES[:2]:
        assert_one_border(lines)
    assert checked(lines, size) == snapshot


@pytest.mark.parametrize(
    ("second", "keys"),
    [(-1.0, ()), (0.1, ()), (62.5, ()), (82.0, ()), (99.0, ()), (30.0, ("p",)), (30.0, ("p", "p"))],
    ids=["nothing yet", "connecting", "saturated and lost", "stopped", "over", "one host alone", "all hosts"],
)
@pytest.mark.parametrize("size", [(120, 40), (80, 24)], ids=["120x40", "80x24"])
async def test_main_screen_by_state(
    size: tuple[int, int], second: float, keys: Sequence[str], snapshot: SnapshotAssertion
) -> None:
    lines = await screen_lines(size, renamed(Scenario(2, hostile=True).events(second)), keys)
    assert checked(lines, size) == snapshot


def assert_one_border(lines: Sequence[str]) -> None:
    """Check that the border is in the same column of every line, whatever the names."""
    columns = {cell_len(line[: line.index(" │ ─ ")]) for line in lines[1:-1] if " │ ─ " in line}
    assert len(columns) == 1
    (border,) = columns
    for line in lines[1:-1]:
        cells = [char for char in line for _ in range(cell_len(char))]
        assert cells[border + 1] == "│", line
