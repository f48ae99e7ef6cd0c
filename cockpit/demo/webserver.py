"""Web server of the demo: a small but real prefork server, tuned like Apache.

    python -m cockpit.demo.webserver [--parent-pipe] CONFIG    serve
    python -m cockpit.demo.webserver -t CONFIG           test the configuration

Once it accepts connections, it prints `ready http://ADDRESS:PORT` and nothing more. With --parent-pipe it ends at the
end of its standard input, so that it cannot outlive its parent. SIGUSR1 reloads, SIGTERM ends.
"""

import os
import sys
from pathlib import Path

from cockpit.demo.webconfig import WebConfigError, load

_USAGE = "usage: python -m cockpit.demo.webserver [-t | --parent-pipe] CONFIG"


def main(arguments: list[str]) -> int:
    """Return the exit code: 1 for an invalid configuration or address, 2 for wrong usage."""
    options, files = arguments[:-1], arguments[-1:]
    if not files or files[0].startswith("-") or options not in ([], ["-t"], ["--parent-pipe"]):
        print(_USAGE, file=sys.stderr)
        return 2
    config = Path(files[0]).absolute()
    try:
        if options == ["-t"]:
            load(config)
            print("Syntax OK")
        else:
            _serve(config, sys.stdin.fileno() if options else None)
    except WebConfigError as error:
        print(f"Syntax error: {error}" if options == ["-t"] else error, file=sys.stderr)
        return 1
    return 0


def _serve(config: Path, parent_pipe: int | None) -> None:
    from cockpit.demo.prefork import Prefork

    try:
        server = Prefork(config, parent_pipe)
    except OSError as error:
        raise WebConfigError(
            f"{config}: cannot start: {error.strerror}: {error.filename or 'Listen address'}"
        ) from None

    def ready() -> None:
        host, port = server.address
        print(f"ready http://{host}:{port}", flush=True)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)

    server.run(ready)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
