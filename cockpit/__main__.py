"""`cockpit`, and `python -m cockpit`. Before and after the command Ctrl-C ends the process without a traceback."""

import signal
import sys

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def main() -> int:
    from cockpit.cli import main as command
    from cockpit.model.errors import EXIT_INTERRUPTED

    if signal.getsignal(signal.SIGINT) is not signal.SIG_DFL:
        return command()
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        return command()
    except KeyboardInterrupt:  # the command has begun to end, or not begun
        return EXIT_INTERRUPTED
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


if __name__ == "__main__":
    sys.exit(main())
