"""Hostile text in every field that a server can set is sanitized on the screen and in the summary, escaped in JSON."""

import json
import re
import unicodedata
from functools import cache

import pytest
from msgspec.structs import replace
from rich.cells import cell_len

from cockpit.analysis.warnings import run_warnings
from cockpit.analysis.words.warnings import warning_words
from cockpit.metrics.results import run_result
from cockpit.model import events as ev
from cockpit.model.fold.fold import fold_all
from cockpit.model.host.samples import HostConfig, HostFacts, StatusPage
from cockpit.report.encoding import to_json
from cockpit.report.run import run_text
from cockpit.report.run_json import run_json
from cockpit.tui.terminal.lines import Lines
from tests.tui.driving import main, press, running_app, screen_text
from tests.tui.scenario import Scenario

# Escape sequences, control bytes, markup, directions, hidden and stacked characters, a long line.
HOSTILE = (
    "\x1b[2J\x1b]0;owned\x07\x1bP\x9b31m\x00\b\r\n\v[red]r[/red][@click=app.leave]x[/]"
    "\u202egnp.exe\u2066\u2069\u200b\ufeff\u00ad" + "a" + 20 * "\u0336" + "\ue000\ufffe" + "W" * 5000
)
CONFIG = HostConfig(
    name="web1",
    ssh="web1",
    processes=(HOSTILE,),
    tail=(f"tail -F {HOSTILE}",),
    status=(StatusPage(kind="apache", url=f"http://localhost/{HOSTILE}"), StatusPage(kind="squid", url="http://x/")),
)


def with_hostile_text(event: ev.AnyEvent) -> ev.AnyEvent:
    """Return the event with hostile text in every field that a server can set."""
    match event:
        case ev.SessionStarted():
            return replace(event, hosts=(CONFIG,))
        case ev.HostChanged(facts=HostFacts() as facts):
            return replace(event, facts=replace(facts, hostname=HOSTILE, kernel=HOSTILE))
        case ev.HostSample(reading=reading):
            names = {"comm": HOSTILE, "stat": HOSTILE, "command": HOSTILE}
            hostile = replace(
                reading,
                processes=tuple(replace(process, **names) for process in reading.processes),
                disks=tuple(replace(disk, name=HOSTILE + disk.name) for disk in reading.disks),
                nets=tuple(replace(net, name=HOSTILE + net.name) for net in reading.nets),
            )
            return replace(event, reading=hostile)
        case ev.KnobRead():
            return replace(event, value=HOSTILE)
        case ev.ChangeEnded():
            return replace(event, outcome="rolled back", detail=HOSTILE)
    return event


@cache
def session() -> list[ev.AnyEvent]:
    """Return a run on a hostile host that is lost at the end."""
    values = {HOSTILE: 6.0, "BusyWorkers": 1.0, "ParentServerMPMGeneration": 6.0}
    status = ev.StatusRead(t=6.0, host="web1", page=0, values=values, text={"Scoreboard": HOSTILE, HOSTILE: HOSTILE})
    events: list[ev.AnyEvent] = [
        *map(with_hostile_text, Scenario().events(49)),
        ev.TailChanged(t=2, host="web1", tail=0, condition="running"),
        *(ev.TailText(t=3 + n, host="web1", tail=0, lines=(HOSTILE, f"{n}{HOSTILE}"), skipped=n) for n in range(20)),
        ev.TailChanged(t=30, host="web1", tail=0, condition="ended", detail=HOSTILE),
        *(status, replace(status, t=8.0, values={**values, "ParentServerMPMGeneration": 8.0})),
        *(ev.StatusRead(t=9, host="web1", page=page, detail=HOSTILE) for page in (0, 1)),
        ev.Note(t=20, text=HOSTILE),
        ev.HostChanged(t=49.9, host="web1", condition="lost", detail=HOSTILE),
    ]
    return sorted(events, key=lambda event: event.t)


def harmful(text: str) -> list[str]:
    """Return characters that must not reach a terminal: control and invisible characters, stacked combining marks."""
    marks = [text[at : at + 4] for at in range(len(text)) if all(unicodedata.combining(c) for c in text[at : at + 3])]
    categories = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl"}
    hidden = [char for char in text if char != "\n" and unicodedata.category(char) in categories]
    return hidden + [mark for mark in marks if len(mark) > 2]


@pytest.mark.parametrize("size", [(120, 40), (80, 24)])
async def test_hostile_text_is_harmless_on_screen(size: tuple[int, int]) -> None:
    async with running_app(session(), size) as (pilot, _):
        whole = ""
        for key in ("", "p", *10 * "d", "w", "w", "v", "v", "v", "t"):
            await press(pilot, *key)
            main(pilot.app).frame()
            text = screen_text(pilot)
            assert not harmful(text), key
            whole += text
            for lines in main(pilot.app).query(Lines):
                for strip in map(lines.render_line, range(lines.size.height)):
                    assert strip.cell_length == cell_len(strip.text) <= lines.size.width, (key, strip.text)
                    assert not any(segment.style and segment.style.meta for segment in strip)
    assert "[red]" in whole


def test_hostile_text_is_harmless_in_summary_and_json() -> None:
    result = run_result(fold_all(session()), 1)
    text = run_text(result)
    assert not harmful(text)
    assert re.search(r"\n  apache +busy 1", text)
    assert not any(harmful(warning_words(warning)) for warning in run_warnings(result))
    encoded = to_json(run_json(result))
    assert not harmful(encoded)
    assert json.loads(encoded)["hosts"]["web1"]["apache.busy"] == 1


def test_hostile_text_is_recorded_whole_and_escaped() -> None:
    for event in session():
        line = ev.encode(event)
        assert not any(byte < 0x20 for byte in line)
        assert ev.decode(line) == event
