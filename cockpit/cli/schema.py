"""`cockpit schema`: JSON Schema of what is read and written."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from typing import Any

import msgspec

from cockpit.cli.terminal import tell
from cockpit.model.errors import EXIT_GOOD
from cockpit.profiles.sections import ProfileFile
from cockpit.report.check_result import check_schema
from cockpit.report.comparison_json import compare_schema
from cockpit.report.machine import json_schema
from cockpit.report.study_json import study_schema

_SCHEMAS: dict[str, Callable[[], dict[str, Any]]] = {
    "run": json_schema,
    "check": check_schema,
    "compare": compare_schema,
    "study": study_schema,
    "profile": lambda: msgspec.json.schema(ProfileFile),
}


def schema(options: Namespace) -> int:
    """`run`, `check`, `compare`, `study`: what their --json prints. `profile`: what a profile may say, for editors."""
    found = _SCHEMAS[options.of]()
    tell(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
    return EXIT_GOOD
