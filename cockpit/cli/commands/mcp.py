"""`cockpit mcp`: serve an agent over stdin and stdout by the Model Context Protocol."""

from __future__ import annotations

import sys
from argparse import Namespace
from contextlib import redirect_stdout
from importlib.util import find_spec

from cockpit.cli.terminal import raw
from cockpit.model.errors import EXIT_GOOD, ExtraRequired, UsageError


def mcp(options: Namespace) -> int:
    """Serve until stdin ends. Raises UsageError."""
    if options.yes and not options.allow_changes:
        raise UsageError("--yes: only with --allow-changes")
    if find_spec("mcp") is None:
        raise ExtraRequired("mcp", "the SDK", "mcp")
    from cockpit.cli.mcp_server import make_server

    # The SDK duplicates the file descriptor.
    with redirect_stdout(raw(sys.stdout)):
        make_server(options.ssh_config, allow_changes=options.allow_changes, ask=not options.yes).run("stdio")
    return EXIT_GOOD
