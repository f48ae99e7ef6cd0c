"""`cockpit schema`: print the JSON Schema of --json outputs and of profiles."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from inspect import cleandoc
from typing import Any

import msgspec

from cockpit.autopilot.diagnosis import Bottleneck
from cockpit.cli.commands.doctor import DoctorJson
from cockpit.cli.commands.help import profile_keys
from cockpit.cli.file_changes import ChangedFile
from cockpit.cli.spec import SpecJson
from cockpit.cli.terminal import emit, write_utf8
from cockpit.cli.tune_output import ActionJson, ChangeJson, KnobJson, PastChangeJson
from cockpit.export.ndjson import AnyLine
from cockpit.metrics.catalogue import SAMPLE_METRICS, SECOND_METRICS, Metric
from cockpit.model.errors import EXIT_GOOD
from cockpit.profiles.sections import ProfileFile
from cockpit.recording.library import RecordingInfo
from cockpit.report.check import BaselineJson, CheckJson
from cockpit.report.comparison import CompareJson
from cockpit.report.encoding import to_json
from cockpit.report.history import HistoryJson
from cockpit.report.run_json import RunJson
from cockpit.report.search_json import SearchJson
from cockpit.report.study_json import StudyJson
from cockpit.report.verdicts import VerdictJson


def _schema_of(kind: Any) -> dict[str, Any]:
    """Return the schema of a type. The indentation of descriptions depends on the version of msgspec otherwise."""
    document = msgspec.json.schema(kind)
    for section in document.get("$defs", {}).values():
        if "description" in section:
            section["description"] = cleandoc(section["description"])
    return document


def profile_schema() -> dict[str, Any]:
    """Return the schema of profiles, with descriptions from the topic `profile`."""
    document = _schema_of(ProfileFile)
    sections = document["$defs"]
    for table, key, words in profile_keys():
        section = sections[_section_name(document["$ref"])]
        for name in filter(None, table.split(".")):
            section = sections[_section_name(_reference(section["properties"][name]))]
        section["properties"][key]["description"] = words
    sections["ProfileFile"]["anyOf"] = [{"required": ["target"]}, {"required": ["variant"]}]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "cockpit profile", **document}


def ndjson_schema() -> dict[str, Any]:
    """Return the schema of the lines, with the metrics of a second and their descriptions."""
    document = _schema_of(AnyLine)
    second = document["$defs"]["SecondLine"]["properties"]
    second["load"] = _metrics(SECOND_METRICS)
    second["hosts"]["additionalProperties"] = _metrics(SAMPLE_METRICS)
    return document


def _metrics(metrics: Iterable[Metric]) -> dict[str, Any]:
    known = {metric.column: {"type": "number", "description": metric.help} for metric in metrics}
    return {"type": "object", "properties": known, "additionalProperties": False}


def _section_name(reference: str) -> str:
    return reference.rpartition("/")[2]


def _reference(schema: Any) -> str:
    """Return the reference of a key's section, which may be in a list or among several types."""
    while "$ref" not in schema:
        schema = schema.get("items") or next(each for each in schema["anyOf"] if each.get("type") != "null")
    return str(schema["$ref"])


# run, duet and watch print one document per run.
_OUTPUTS: dict[str, Any] = {
    **dict.fromkeys(("run", "duet", "watch"), RunJson),
    "check": CheckJson,
    "compare": CompareJson,
    "study": StudyJson,
    "history": HistoryJson,
    "report": list[RunJson] | StudyJson,
    "autopilot": SearchJson | list[Bottleneck],
    "doctor": DoctorJson,
    "recordings-list": list[RecordingInfo],
    "baseline-list": list[BaselineJson],
    **dict.fromkeys(("baseline-set", "baseline-add", "baseline-show"), BaselineJson),
    **dict.fromkeys(
        ("recordings-rename", "recordings-delete", "recordings-prune", "baseline-delete"), list[ChangedFile]
    ),
    **dict.fromkeys(("new", "capture", "import"), list[ChangedFile]),
    "tune-show": list[KnobJson],
    **dict.fromkeys(("tune-set", "tune-undo"), list[ChangeJson]),
    "tune-history": list[PastChangeJson],
    "tune-rounds": VerdictJson | None,
    "tune-action": list[ActionJson],
    "spec": SpecJson,
}


def schema_of(name: str) -> dict[str, Any]:
    """Return the JSON Schema of one of SCHEMAS."""
    described = {"profile": profile_schema, "ndjson": ndjson_schema}
    return described[name]() if name in described else _schema_of(_OUTPUTS[name])


def schema(options: Namespace) -> int:
    write_utf8()
    emit(to_json(schema_of(options.of)))
    return EXIT_GOOD
