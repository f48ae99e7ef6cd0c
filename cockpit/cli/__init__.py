"""Commands: the only package that combines all others. stdout is data, stderr is progress and errors."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence

from cockpit.cli.arguments import make_parser, with_profile
from cockpit.cli.parser import join_time_values
from cockpit.cli.signals import ended_by_signals
from cockpit.cli.terminal import drop_output, prepare_streams, write_utf8
from cockpit.model.errors import EXIT_INTERRUPTED, EXIT_USAGE, CockpitError
from cockpit.model.text import sanitize
from cockpit.plugins import PROBLEMS

# Maximum length of an error line, which may contain long paths and texts of hosts.
_MAX_ERROR = 1 << 20

# Options whose output is data; JSON is UTF-8 (RFC 8259).
_DATA = ("json", "ndjson")

# New objects between garbage collections. Imported modules stay alive, so that with Python's default of 700 the
# collections take a tenth of the time until the first frame.
GARBAGE = 20_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. A user's error is one line on stderr."""
    gc.set_threshold(GARBAGE)
    prepare_streams()
    given = (sys.argv[1:] if arguments is None else arguments) or ["start"]
    try:
        for text in given:
            if any("\ud800" <= char <= "\udfff" for char in text):
                return _refuse(f"{text!a}: not valid in this terminal's encoding", EXIT_USAGE)
        options = make_parser(given[0]).parse_args(join_time_values(with_profile(given)))
        if any(getattr(options, name, False) for name in _DATA):
            write_utf8()
        with ended_by_signals():
            code: int = options.command(options)
    except CockpitError as error:
        return _refuse(str(error), error.exit_code)
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "can't start new thread" not in str(error):
            raise
        return _refuse("out of memory or threads; raise the limits: ulimit -v, ulimit -u", EXIT_USAGE)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader of stdout closed the pipe.
        drop_output()
        return EXIT_INTERRUPTED
    finally:
        for problem in PROBLEMS:
            print(f"cockpit: {sanitize(problem)}", file=sys.stderr)
    return code


def _refuse(problem: str, code: int) -> int:
    print(f"cockpit: {sanitize(problem, _MAX_ERROR)}", file=sys.stderr)
    return code
