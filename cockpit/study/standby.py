"""`python -m cockpit.study.standby FOLDER`: start the restorer if the study is killed.

It reads its stdin to the end. A study that ends normally writes `done`; a killed study writes nothing. It waits for as
long as the study runs, so nothing beyond the standard library is imported before that.
"""

from __future__ import annotations

import sys
from pathlib import Path

DONE = b"done\n"
READY = b"ready\n"


def main() -> int:
    """Return the exit status of the restorer; 0: nothing to restore."""
    sys.stdout.buffer.write(READY)
    sys.stdout.buffer.flush()
    if sys.stdin.buffer.read() == DONE:
        return 0
    from cockpit.study.restorer import restore_when_unlocked

    return restore_when_unlocked(Path(sys.argv[1]))


if __name__ == "__main__":
    sys.exit(main())
