"""The commands; the only place that puts the parts together. stdout is data, stderr progress and errors."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence

from cockpit.cli.arguments import make_parser
from cockpit.cli.parser import joined
from cockpit.cli.signals import ended_by_signals
from cockpit.cli.terminal import drop_output, open_closed_streams
from cockpit.model.errors import EXIT_INTERRUPTED, EXIT_USAGE, CockpitError
from cockpit.model.text import neutral

# A message is one line and whole, however long the paths and host texts in it.
_LONGEST = 1 << 20

# So many new objects until some are looked through for garbage. What importing makes stays: to look through it every
# 700 objects, as Python does by itself, takes a tenth of the time until the first picture.
GARBAGE = 20_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code. What a user can cause is one line on stderr."""
    gc.set_threshold(GARBAGE)
    open_closed_streams()
    given = sys.argv[1:] if arguments is None else arguments
    for text in given:
        if any("\ud800" <= char <= "\udfff" for char in text):
            return _refuse(f"{text!a}: is not text in this terminal's encoding", EXIT_USAGE)
    options = make_parser().parse_args(joined(given or ["start"]))
    try:
        with ended_by_signals():
            code: int = options.command(options)
    except CockpitError as error:
        return _refuse(str(error), error.exit_code)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has gone; nothing is left to say, and nowhere to say it.
        drop_output()
        return EXIT_INTERRUPTED
    return code


def _refuse(problem: str, code: int) -> int:
    print(f"cockpit: {neutral(problem, _LONGEST)}", file=sys.stderr)
    return code
