"""`python -m tests.rewrite [FILE ...]`: write the test recordings again, for a new state or file format."""

import sys
from pathlib import Path

from cockpit.model.fold.fold import fold
from cockpit.model.state import State
from cockpit.recording.reader import Recording, last_state
from cockpit.recording.writer import RecordingWriter

RECORDINGS = Path(__file__).parent / "recordings"


def rewrite(path: Path) -> None:
    """Replace a recording by a recording of the same events, with compacted ticks as they are."""
    with Recording(path) as recording:
        events = list(recording.events())
    written = path.with_suffix(".new")
    written.unlink(missing_ok=True)
    writer, state = RecordingWriter(written), State()
    for event in events:
        writer.record([event])
        state = fold(state, event)
        writer.settle(state)
    writer.close()
    with Recording(written) as recording:
        assert last_state(recording) == state, path
    written.replace(path)


if __name__ == "__main__":
    for each in map(Path, sys.argv[1:]) if sys.argv[1:] else sorted(RECORDINGS.rglob("*.cockpit")):
        rewrite(each)
