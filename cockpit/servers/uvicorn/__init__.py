"""uvicorn, whose options are on its command line."""

from cockpit.servers.kind import on_command_line

KIND = on_command_line("uvicorn", "uvicorn", "uvicorn")
