"""A study as JSON, whose structs are its schema."""

from __future__ import annotations

from typing import Any

import msgspec

from cockpit.model.text import escaped
from cockpit.report.machine import HostsJson, Latency, MissingJson, hosts_json, latency_json, missing_json
from cockpit.report.study_table import columns, value_of
from cockpit.report.verdicts import VerdictJson, verdict_json
from cockpit.study.results import StudyResult, StudyRunResult, StudyVerdict


class StudyRunJson(msgspec.Struct, frozen=True, kw_only=True):
    """One run. `counted`: it is in the cell's result. `looks` are what the study's commands printed, by name, before
    and after it; `hosts` averages by the names that thresholds use. Rates a second, times in seconds."""

    session: int
    run: int
    round: int
    turn: int
    counted: bool
    completed: int
    failed: int
    errors: dict[str, int]
    statuses: dict[str, int]
    varied: int
    retries: int
    reconnects: int
    bytes: int
    rate: float
    duration: float
    response: Latency
    generator_cpus: list[float]
    looks: dict[str, tuple[str | None, str | None]]
    hosts: HostsJson
    missing: MissingJson


class CellJson(msgspec.Struct, frozen=True, kw_only=True):
    """An arm on a rung in a pass. `figures` are of all runs that count, together, by the names of the table's columns;
    null: not known. `steady`: the runs settled; `whole`: every round of it is done."""

    arm: str
    rung: float | None
    part: str
    steady: bool
    whole: bool
    figures: dict[str, float | None]
    response: Latency | None
    runs: list[StudyRunJson]


class StudyVerdictJson(msgspec.Struct, frozen=True, kw_only=True):
    """The arm `other` against `first`."""

    first: str
    other: str
    rung: float | None
    part: str
    verdict: VerdictJson


class StudyJson(msgspec.Struct, frozen=True, kw_only=True):
    """A study; `wall` is when it began, epoch seconds. `steady`: every cell settled; `done` of its `steps` are done."""

    name: str
    form: str
    question: str
    wall: float
    environment: dict[str, str]
    steps: int
    done: int
    steady: bool
    cells: list[CellJson]
    verdicts: list[StudyVerdictJson]


def study_json(result: StudyResult) -> str:
    """Indented, no line end; hostile characters are escaped."""
    chosen = columns(result)
    told = StudyJson(
        name=result.name,
        form=result.study.form,
        question=result.question,
        wall=result.wall,
        environment=result.environment,
        steps=result.steps,
        done=result.done,
        steady=result.steady,
        cells=[
            CellJson(
                arm=cell.arm,
                rung=cell.rung,
                part=cell.part,
                steady=cell.steady,
                whole=cell.whole,
                figures={column.name: value_of(column, cell) for column in chosen},
                response=latency_json(cell.total.counts.latency) if cell.total else None,
                runs=[_run(run) for run in cell.runs],
            )
            for cell in result.cells
        ],
        verdicts=[_verdict(one) for one in result.verdicts],
    )
    return escaped(msgspec.json.format(msgspec.json.encode(told), indent=2).decode())


def study_schema() -> dict[str, Any]:
    """JSON Schema of `cockpit study --json`."""
    return msgspec.json.schema(StudyJson)


def _run(run: StudyRunResult) -> StudyRunJson:
    result, counts = run.result, run.result.counts
    said: dict[str, tuple[str | None, str | None]] = {}
    for look in run.looks:
        before, after = said.get(look.look, (None, None))
        text = None if look.detail else look.text
        said[look.look] = (before, text) if look.after else (text, after)
    return StudyRunJson(
        session=run.session,
        run=run.place.run,
        round=run.place.round,
        turn=run.place.turn,
        counted=run.counted,
        completed=counts.completed,
        failed=counts.failed,
        errors=dict(counts.errors),
        statuses={str(status): count for status, count in sorted(counts.statuses.items())},
        varied=counts.varied,
        retries=counts.retries,
        reconnects=counts.reconnects,
        bytes=counts.bytes_received,
        rate=result.rate,
        duration=result.seconds,
        response=latency_json(counts.latency),
        generator_cpus=list(result.generator),
        looks=said,
        hosts=hosts_json(result.hosts, result.seconds),
        missing=missing_json(result.hosts),
    )


def _verdict(one: StudyVerdict) -> StudyVerdictJson:
    return StudyVerdictJson(
        first=one.first, other=one.other, rung=one.rung, part=one.part, verdict=verdict_json(one.verdict)
    )
