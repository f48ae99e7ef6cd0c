"""Verdicts as JSON, and as parts of reports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cockpit.analysis.verdicts.outcome import Effect, Objection, Verdict
from cockpit.analysis.warnings import Affected, RunWarning
from cockpit.analysis.words.objections import objection_words
from cockpit.analysis.words.stacks import profile_lines
from cockpit.analysis.words.verdicts import effect_words, method_lines, metric_words, verdict_line
from cockpit.analysis.words.warnings import warning_words
from cockpit.document.model import Block, Items, Paragraph, Part
from cockpit.metrics.results import RunResult
from cockpit.report.encoding import struct_from
from cockpit.report.forest import ForestRow, forest, role_of


class WarningJson(RunWarning, frozen=True, kw_only=True):
    """A warning: its kind, the `metrics` affected, its subject and values by name, and its text."""

    metrics: Affected
    text: str


class ObjectionJson(Objection, frozen=True, kw_only=True):
    """Why a comparison, or one metric of it, is invalid, also as text."""

    text: str


class EffectJson(Effect, frozen=True, kw_only=True):
    """The effect on one metric. null: unknown; if only one of `low` and `high` is null, the interval is open at that
    end."""

    text: str
    objection: ObjectionJson | None = None


class VerdictJson(Verdict, frozen=True, kw_only=True):
    """The verdict on the segments `after` vs the segments `before`, also as text."""

    text: str
    objection: ObjectionJson | None = None
    warnings: tuple[WarningJson, ...] = ()
    effects: tuple[EffectJson, ...] = ()


def verdict_json(verdict: Verdict) -> VerdictJson:
    return struct_from(
        VerdictJson,
        verdict,
        text=verdict_line(verdict),
        objection=_objection(verdict.objection),
        warnings=tuple(map(warning_json, verdict.warnings)),
        effects=tuple(
            struct_from(EffectJson, effect, text=effect_words(effect), objection=_objection(effect.objection))
            for effect in verdict.effects
        ),
    )


def warning_json(warning: RunWarning) -> WarningJson:
    return struct_from(WarningJson, warning, metrics=warning.affected, text=warning_words(warning))


def _objection(objection: Objection | None) -> ObjectionJson | None:
    return None if objection is None else struct_from(ObjectionJson, objection, text=objection_words(objection))


def completed_by(result: RunResult, verdicts: Iterable[Verdict]) -> tuple[Verdict, ...]:
    """Return the verdicts completed by segments of this run: each verdict is listed once, with the last of its runs."""
    numbers = {row.number for row in result.segments}
    return tuple(verdict for verdict in verdicts if max(verdict.after, default=0) in numbers)


def verdict_blocks(verdict: Verdict) -> list[Block]:
    """Return the verdict in one line, the differences of CPU profiles, and its method."""
    return [
        Paragraph(verdict_line(verdict), role_of(verdict.outcome)),
        Items(profile_lines(verdict.profiles, verdict.growing)),
        Items(method_lines(verdict), title="method"),
    ]


def verdict_section(verdict: Verdict, rows: Sequence[ForestRow] | None = None) -> Part:
    """Return the verdict with its effects (None: by metric) as a forest plot, and its method."""
    if rows is None:
        rows = [ForestRow(metric_words(effect.name), effect) for effect in verdict.rows]
    line, *others = verdict_blocks(verdict)
    return Part("", [line, forest("metric", rows), *others], role=role_of(verdict.outcome))
