"""The state of the session and the next step, in one line below the throughput."""

from __future__ import annotations

from cockpit.model.state import Segment
from cockpit.model.text import neutral, si
from cockpit.session.controls import PlaybackPhase, PlaybackStatus
from cockpit.tui.action_keys import action_key_name
from cockpit.tui.draw_context import DrawContext
from cockpit.tui.terminal.styled_line import EMPTY, Line, length, packed

_ENDED = {"completed": "is over", "stopped": "was stopped"}


def state_line(scene: DrawContext, width: int) -> Line:
    """Return it for a saturated generator, the end of a recording, or between two runs; empty during a run, or with the
    chart cursor."""
    second = scene.second
    if second is not None and second.saturated:
        return _first(_SATURATED, width, "warn")
    if scene.view.cursor is not None:
        return EMPTY
    if isinstance(scene.status, PlaybackStatus) and scene.status.phase is PlaybackPhase.END:
        return _with_keys(("end of the recording", "strong"), _AT_END, width)
    row = scene.row
    if scene.state.running is not None or row is None or row.end is None or scene.view.row is not None:
        return EMPTY
    return _over(row, scene, width)


_SATURATED = (
    "the generator is saturated: it limits the rate, not the server. Less load (-), or more processes (-w, --cpus)",
    "the generator limits the rate, not the server: less load (-), or -w, --cpus",
    "the generator limits the rate, not the server: less load (-)",
    "the generator is saturated: less load (-)",
)
_AT_END = (("Home", "start"), ("[ ]", "markers"), ("← →", "step"), ("q", "quit"))


def _over(row: Segment, scene: DrawContext, width: int) -> Line:
    """Return how the last run ended, and the keys for the next step."""
    rows = [segment.counts for segment in scene.state.segments if segment.run == row.run and not segment.warmup]
    failures = sum(counts.failed for counts in rows)
    failed = f", {si(failures)} failed" if failures else ""
    how = _ENDED.get(row.reason, f"ended: {neutral(row.detail or row.reason)}")
    begin = next((action_key_name(action) for action in scene.actions if action.name == "toggle"), "")
    keys = [(begin, "again")] if begin and scene.extent is None else []
    keys += [("t", "tune")] if scene.state.knobs and scene.extent is None else []
    keys += [("c", "compare")] if len(scene.state.segments) > 1 else []
    said = f"run {row.run} {how}: {si(sum(counts.completed for counts in rows))} responses{failed}"
    return _with_keys((said, "strong"), tuple(keys), width)


def _with_keys(said: tuple[str, str], keys: tuple[tuple[str, str], ...], width: int) -> Line:
    parts: list[Line] = [((key, "key"), (f" {words}", "dim")) for key, words in keys]
    return packed([(said,), *parts], width, "   ")


def _first(texts: tuple[str, ...], width: int, role: str) -> Line:
    """The longest of the texts that fits; the shortest is cut."""
    lines: list[Line] = [((text, role),) for text in texts]
    return next((line for line in lines if length(line) <= width), lines[-1])
