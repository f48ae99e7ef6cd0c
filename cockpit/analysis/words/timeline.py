"""English of the timeline of a session: changes, segments, losses, markers."""

from __future__ import annotations

from collections.abc import Iterable

from cockpit.model.generators import WorkerLost
from cockpit.model.knobs import Setting
from cockpit.model.load.plan import VERSUS, LoadPlan, amount_words
from cockpit.model.markers import (
    ActionMarker,
    ChangeMarker,
    ChangeName,
    GapMarker,
    LoadMarker,
    Marker,
    NoteMarker,
    RestartMarker,
    RoundMarker,
    SettingMarker,
)
from cockpit.model.state import Change, Segment, SegmentBasis
from cockpit.model.text import clock, sanitize

_SIGNS = {"action": "◆", "load": "±", "note": "▸", "gap": "!", "restart": "R", "setting": "!", "worker": "!"}


def settings_words(settings: Iterable[Setting]) -> str:
    """Return `MaxSpareServers 10 → 30`."""
    return ", ".join(f"{setting.knob} {setting.old or 'unset'} → {setting.new or 'unset'}" for setting in settings)


def change_label(change: Change | ChangeName) -> str:
    """Return the changed settings, e.g. `A MaxSpareServers 10 → 30`."""
    undo = f"undo {change.undoes}: " if change.undoes else ""
    return f"{change.letter} {undo}{settings_words(change.settings)}"


def load_words(plan: LoadPlan) -> str:
    """Return the load as text: `c=20`, `2000/s` for open load, `500→5000/s` for a ramp, `access.log ×2` for a replayed
    log, `traffic` for the requests of users; with HTTP/2 `c=20 h2`, or `c=20 h2×10` with 10 streams per connection."""
    version = f" h2{f'×{plan.streams}' if plan.streams > 1 else ''}" if plan.http2 else ""
    if plan.traffic:
        return "traffic"
    if plan.replay is not None:
        return f"{sanitize(plan.replay.file.rpartition('/')[2])} ×{plan.replay.speed:g}{version}"
    return f"{'c=' if plan.rate is None else ''}{amount_words(plan)}{version}"


def segment_label(segment: Segment) -> str:
    """Return the settings of a segment, and the load if its label names it."""
    if segment.labelled_by == "warmup":
        return "warm-up"
    basis = _basis_words(segment.basis)
    return f"{basis} · {load_words(segment.plan)}" if segment.labelled_by == "load" else basis


def _basis_words(basis: SegmentBasis) -> str:
    match basis.kind:
        case "changes":
            return "; ".join(map(change_label, basis.changes))
        case "variants":
            return VERSUS.join(reversed(basis.variants))
        case "level":
            return f"level {basis.number}"
        case "round":
            return f"round {basis.number} {sanitize(basis.host) or basis.side}"
        case "after_rounds":
            return f"after rounds: {'new' if basis.side == 'after' else 'old'}"
        case "between_levels":
            return "between levels"
    return basis.kind


def lost_words(losses: Iterable[WorkerLost]) -> str:
    """Return the lost load workers with the reasons; "": none."""
    return "; ".join(dict.fromkeys(f"worker {loss.worker} lost: {loss.detail}" for loss in losses))


def marker_sign(marker: Marker) -> str:
    """Return the sign of a marker on charts: the letter of a change."""
    match marker:
        case ChangeMarker():
            return marker.change.letter
        case RoundMarker():
            return "○" if marker.side == "before" else "●"
    return _SIGNS[marker.kind]


def marker_text(marker: Marker) -> str:
    match marker:
        case ChangeMarker():
            return _change_text(marker)
        case ActionMarker():
            times = f" {marker.number_of_runs} times" if marker.number_of_runs > 1 else ""
            return f"{marker.action}{times} on {marker.host}"
        case LoadMarker():
            return f"load {load_words(marker.before)} → {load_words(marker.after)}"
        case RoundMarker():
            side = f"new values on {sanitize(marker.host)}" if marker.host else marker.side
            return f"round {marker.round} of {marker.budget}: {side}"
        case NoteMarker():
            return marker.text
        case GapMarker():
            return f"{marker.host} lost: {marker.detail}"
        case RestartMarker():
            event = " restarted: pid" if marker.shown_by == "pid" else ": reloaded, generation"
            return f"{marker.host} {marker.server}{event} {marker.old} → {marker.new}"
        case SettingMarker():
            return f"{marker.host}: {settings_words([marker.setting])}, changed elsewhere"
    return f"generator {marker.machine} lost: {marker.detail}"


def _change_text(marker: ChangeMarker) -> str:
    label = change_label(marker.change)
    if marker.outcome == "applied":
        return label
    if marker.ended is not None and marker.ended > marker.t:
        return f"{label}: {marker.outcome} at {clock(marker.ended)}"
    return ", ".join(filter(None, (f"{label}: {marker.outcome or 'under way'}", marker.detail)))
