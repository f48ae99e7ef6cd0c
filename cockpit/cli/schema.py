"""`cockpit schema`: JSON Schema of what is read and written."""

from __future__ import annotations

from argparse import Namespace

import msgspec

from cockpit.cli.terminal import tell
from cockpit.model.errors import EXIT_GOOD
from cockpit.profiles.sections import ProfileFile
from cockpit.report.machine import json_schema


def schema(options: Namespace) -> int:
    """`run`: what --json prints. `profile`: what a profile may say, for editors."""
    found = json_schema() if options.of == "run" else msgspec.json.schema(ProfileFile)
    tell(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
    return EXIT_GOOD
