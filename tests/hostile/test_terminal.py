"""Texts of a foreign recording on a terminal, in a picture and in a cast: none of them is executed."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cockpit.model.events import AnyEvent, encode
from cockpit.model.fold.fold import fold
from cockpit.model.state import State
from cockpit.recording.writer import RecordingWriter
from tests.commands import cockpit
from tests.session.events import small_session

# C0, C1 and a direction override: a title, a clipboard, a cleared screen, a ring of the bell.
ACTING = "\x1b]0;t\x07\x1b]52;c;cHduZWQ=\x07\x1b[2J\x9b2J\x85\x08\r\u202e"
EXECUTED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
# Cursor, colours and styles of a cast.
OWN = re.compile(r"\x1b\[[\d;]*[mH]|\x1b\[2J|\x1b\[\?25[lh]")


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each text."""
    if isinstance(value, str):
        yield path
    for key, part in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from leaves(part, (*path, key))


def hostile(event: AnyEvent) -> AnyEvent:
    """Put ACTING before every text of an event that may be any text."""
    value = json.loads(encode(event))
    found = event
    for *way, last in leaves(value):
        part = value
        for key in way:
            part = part[key]
        intact = part[last]
        part[last] = ACTING + intact
        try:
            found = msgspec.json.decode(json.dumps(value), type=type(event))
        except (msgspec.ValidationError, ValueError):
            part[last] = intact
    return found


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hostile") / "made\x1b[2J.cockpit"
    writer, state = RecordingWriter(path), State()
    for event in map(hostile, small_session()):
        writer.record([event])
        state = fold(state, event)
        writer.settle(state)
    writer.close()
    return path


@pytest.mark.parametrize(
    "command",
    [
        *("report FILE", "report FILE --format md", "report FILE --format html", "compare FILE#1 FILE#2"),
        *("export FILE --format csv", "export FILE --format cast --every 5", "export FILE --format svg"),
        *("report FILE.missing", "import FILE", "recordings rename FILE x", "export FILE -o FILE/x.csv"),
    ],
)
def test_no_command_prints_an_escape_sequence_of_a_recording(command: str, recording: Path) -> None:
    done = cockpit(*command.replace("FILE", str(recording)).split(" "))
    text = done.stdout
    assert text or "made" in done.stderr
    if "cast" in command:
        text = "".join(OWN.sub("", event[2]).replace("\r", "") for event in map(json.loads, text.splitlines()[1:]))
    assert not EXECUTED.search(text) and not EXECUTED.search(done.stderr)
