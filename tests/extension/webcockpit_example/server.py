"""A kind of server. This module imports nothing else of cockpit, because cockpit imports it early."""

from cockpit.servers.kind import StartSetting, command_line_kind
from cockpit.servers.settings import Impact, KnownSetting, integer

WORKERS = KnownSetting("processes of the example", integer(1), Impact.RESTART)
KIND = command_line_kind(
    "Example", "example", "exampled", at_start=(StartSetting("workers", WORKERS, variable="EXAMPLE_WORKERS"),)
)
