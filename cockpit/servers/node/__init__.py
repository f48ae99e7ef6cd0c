"""Node.js: options on its command line, in its environment and in the application."""

from __future__ import annotations

from cockpit.servers.kind import StartSetting, command_line_kind
from cockpit.servers.settings import Impact, KnownSetting, integer

# https://docs.libuv.org/en/v1.x/threadpool.html, https://nodejs.org/api/cli.html
AT_START = (
    StartSetting(
        "UV_THREADPOOL_SIZE",
        KnownSetting(
            "threads for files, DNS, compression and cryptography; matters if requests wait for these",
            integer(1, 1024),
            Impact.RESTART,
        ),
        variable="UV_THREADPOOL_SIZE",
        default="4",
        usual=True,
    ),
    StartSetting(
        "max-old-space-size",
        KnownSetting("heap limit (MiB); matters if garbage collection uses much CPU", integer(1), Impact.RESTART),
        ("--max-old-space-size",),
    ),
)
KIND = command_line_kind("Node.js", "node", "node", "nodejs", at_start=AT_START)
