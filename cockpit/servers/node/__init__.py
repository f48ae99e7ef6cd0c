"""Node.js, whose options are on its command line and in the application."""

from cockpit.servers.kind import on_command_line

KIND = on_command_line("Node.js", "node", "node", "nodejs")
