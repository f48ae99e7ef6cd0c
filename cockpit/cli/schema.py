"""`cockpit schema`: JSON Schema of --json outputs and of profiles."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import msgspec

from cockpit.cli.help import profile_keys
from cockpit.cli.terminal import emit
from cockpit.model.errors import EXIT_GOOD
from cockpit.profiles.sections import ProfileFile
from cockpit.report.check_result import CheckJson
from cockpit.report.comparison import CompareJson
from cockpit.report.encoding import to_json
from cockpit.report.run_json import RunJson
from cockpit.report.study_json import StudyJson
from cockpit.stream.lines import AnyLine


def profile_schema() -> dict[str, Any]:
    """Return the schema of profiles, with descriptions from the topic `profile`."""
    found = msgspec.json.schema(ProfileFile)
    sections = found["$defs"]
    for table, key, words in profile_keys():
        section = sections[_of(found["$ref"])]
        for name in filter(None, table.split(".")):
            section = sections[_of(_refers(section["properties"][name]))]
        section["properties"][key]["description"] = words
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "a profile of cockpit", **found}


def _of(reference: str) -> str:
    return reference.rpartition("/")[2]


def _refers(schema: Any) -> str:
    """Return the reference of a key's section: plain, in a list, or one of several types."""
    while "$ref" not in schema:
        schema = schema.get("items") or next(each for each in schema["anyOf"] if each.get("type") != "null")
    return str(schema["$ref"])


_OUTPUTS = {"run": RunJson, "ndjson": AnyLine, "check": CheckJson, "compare": CompareJson, "study": StudyJson}


def schema(options: Namespace) -> int:
    found = profile_schema() if options.of == "profile" else msgspec.json.schema(_OUTPUTS[options.of])
    emit(to_json(found))
    return EXIT_GOOD
