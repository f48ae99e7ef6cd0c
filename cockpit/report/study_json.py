"""A study as JSON, whose structs are its schema."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cockpit.analysis.warnings import run_warnings
from cockpit.report.capacity import CapacityJson, capacity_json
from cockpit.report.encoding import struct_from, to_json
from cockpit.report.run_json import (
    HostsJson,
    LatencyJson,
    MissingJson,
    StabilityJson,
    hosts_json,
    latency_json,
    missing_json,
    stability_json,
    statuses_json,
)
from cockpit.report.scaling import UslJson, study_fits, usl_json
from cockpit.report.study_table import StudyColumn, columns, value_of
from cockpit.report.verdicts import VerdictJson, WarningJson, verdict_json, warning_json
from cockpit.study.judging import detectable, headline_of
from cockpit.study.results import StudyCell, StudyResult, StudyRunResult, StudyVerdict
from cockpit.study.words import contradiction_words


class StudyRunJson(msgspec.Struct, frozen=True, kw_only=True):
    """One run. `counted`: the run is in the result of the cell. `observations` are the outputs of the study's commands
    before and after the run, by name; `hosts` are means, named as in thresholds. Rates are per second, times in
    seconds. `capacity`: of a run that was a capacity search; the other metrics are then over its levels."""

    session: int
    run: int
    round: int
    turn: int
    counted: bool
    stability: StabilityJson
    completed: int
    failed: int
    errors: dict[str, int]
    statuses: dict[str, int]
    length_mismatches: int
    retries: int
    reconnects: int
    bytes: int
    rate: float
    duration: float
    response: LatencyJson
    generator_cpus: tuple[float, ...]
    observations: dict[str, tuple[str | None, str | None]]
    hosts: HostsJson
    missing: MissingJson
    capacity: CapacityJson | None


class CellJson(msgspec.Struct, frozen=True, kw_only=True):
    """A variant at a load level in a pass. `metrics` cover all counted runs, by the names of the table's columns; null:
    unknown. `control`: the A/A control. `unstable` counts counted runs that were not stable. `complete`: all its steps
    so far are done. `last_round` is the last round with this cell. `warnings`: of all counted runs together."""

    variant: str
    control: bool
    level: float | None
    pass_name: str
    unstable: int
    complete: bool
    last_round: int
    metrics: dict[str, float | None]
    response: LatencyJson | None
    warnings: list[WarningJson]
    runs: list[StudyRunJson]


class StudyVerdictJson(StudyVerdict, frozen=True, kw_only=True):
    """The variant `other` vs `first`. `excluded` rounds (saturated generator, other load) are left out if they are at
    most a quarter, else the verdict is invalid. `warning` is text on how the A/A control contradicts the verdict."""

    warning: str
    verdict: VerdictJson


class RoundJson(msgspec.Struct, frozen=True, kw_only=True):
    """A round: its steps in order (variant, load level), and the comparisons that were open (first variant, other
    variant, load level)."""

    round: int
    order: list[tuple[str, float | None]]
    open: list[tuple[str, str, float | None]]


class SpreadJson(msgspec.Struct, frozen=True, kw_only=True):
    """The noise of the headline `metric`, from the A/A control: the standard deviation (natural logarithm) of one
    round's difference between two set-ups of the same variant, its degrees of freedom, and the minimum detectable
    effect (share) with all rounds."""

    metric: str
    deviation: float
    freedom: int
    detectable: float


class MachineJson(msgspec.Struct, frozen=True, kw_only=True):
    """A host as the probe found it."""

    hostname: str
    kernel: str
    cpus: int


class StudyJson(msgspec.Struct, frozen=True, kw_only=True):
    """A study. `wall` is its start (epoch s). `budget` is the maximum number of counted rounds, after `discard_rounds`.
    `until`: limits of its capacity searches, "" without. `rounds` are all that were started, `complete_rounds` counts
    the complete ones. `ended`: all comparisons are closed or all rounds are done. `seed` determines the order.
    `comparisons` is the number of comparisons that share the risk. `unstable` counts counted runs that were not
    stable. `scalability`: the Universal Scalability Law by variant and pass, if the study has levels of connections."""

    name: str
    form: str
    question: str
    wall: float
    environment: dict[str, str]
    hosts: dict[str, MachineJson]
    seed: int | None
    discard_rounds: int
    budget: int
    complete_rounds: int
    ended: bool
    comparisons: int
    unstable: int
    until: str
    rounds: list[RoundJson]
    spread: SpreadJson | None
    cells: list[CellJson]
    verdicts: list[StudyVerdictJson]
    scalability: list[UslJson]


def study_json(result: StudyResult) -> str:
    study = result.study
    shown = struct_from(
        StudyJson,
        result,
        form=study.form,
        hosts={name: struct_from(MachineJson, facts) for name, facts in result.hosts.items()},
        seed=study.seed,
        discard_rounds=study.discard_rounds,
        budget=study.rounds,
        comparisons=study.comparisons,
        unstable=len(result.unstable),
        until=study.until,
        rounds=[RoundJson(round=turn.round, order=list(turn.steps), open=list(turn.open)) for turn in result.rounds],
        spread=_spread(result),
        cells=[_cell(cell, columns(result)) for cell in result.cells],
        verdicts=[_verdict(pair) for pair in result.verdicts],
        scalability=list(map(usl_json, study_fits(result))),
    )
    return to_json(shown)


def _cell(cell: StudyCell, chosen: Sequence[StudyColumn]) -> CellJson:
    return struct_from(
        CellJson,
        cell,
        unstable=len(cell.unstable),
        metrics={column.name: value_of(column, cell) for column in chosen},
        response=latency_json(cell.total.counts.latency) if cell.total else None,
        warnings=[warning_json(warning) for warning in run_warnings(cell.total)] if cell.total else [],
        runs=[_run(run) for run in cell.runs],
    )


def _spread(result: StudyResult) -> SpreadJson | None:
    if result.spread is None:
        return None
    return SpreadJson(
        metric=headline_of(result.study),
        deviation=result.spread.deviation,
        freedom=result.spread.freedom,
        detectable=detectable(result.study, result.spread.deviation),
    )


def _run(run: StudyRunResult) -> StudyRunJson:
    result, counts = run.result, run.result.counts
    outputs: dict[str, tuple[str | None, str | None]] = {}
    for observation in run.observations:
        before, after = outputs.get(observation.name, (None, None))
        text = None if observation.detail else observation.text
        outputs[observation.name] = (before, text) if observation.after else (text, after)
    return struct_from(
        StudyRunJson,
        counts,
        session=run.session,
        run=run.place.run,
        round=run.place.round,
        turn=run.place.turn,
        counted=run.counted,
        stability=stability_json(run.stability),
        statuses=statuses_json(counts.statuses),
        bytes=counts.bytes_received,
        rate=result.rate,
        duration=result.seconds,
        response=latency_json(counts.latency),
        generator_cpus=result.generator,
        observations=outputs,
        hosts=hosts_json(result.hosts, result.seconds, result.rate),
        missing=missing_json(result.hosts),
        capacity=None if run.capacity is None else capacity_json(run.capacity),
    )


def _verdict(pair: StudyVerdict) -> StudyVerdictJson:
    return struct_from(StudyVerdictJson, pair, warning=contradiction_words(pair), verdict=verdict_json(pair.verdict))
