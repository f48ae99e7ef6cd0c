"""The status of a session in words."""

from __future__ import annotations

from cockpit.model.fold_load import load_words
from cockpit.session.controls import LoadPhase, LoadStatus, Mode, PlaybackPhase, PlaybackStatus, SessionStatus

_MODES = {Mode.LIVE: "LIVE", Mode.STUDY: "STUDY", Mode.REPLAY: "REPLAY", Mode.LOOKING_BACK: "LOOKING BACK"}
_LOADS = {
    LoadPhase.IDLE: "idle {}",
    LoadPhase.STARTING: "asking the target {}",
    LoadPhase.RUNNING: "{}",
    LoadPhase.ROUNDS: "{} · rounds",
}
_PHASES = {PlaybackPhase.FOLLOWING: "FOLLOWING", PlaybackPhase.PAUSED: "PAUSED", PlaybackPhase.END: "END"}


def status_words(mode: Mode | None, status: SessionStatus | None) -> str:
    """Return mode and status, e.g. `LIVE idle c=40`, `REPLAY ×4`."""
    words = [_MODES[mode]] if mode else []
    if isinstance(status, LoadStatus):
        words.append(_LOADS[status.phase].format(load_words(status.plan)))
    elif isinstance(status, PlaybackStatus):
        words.append(_PHASES.get(status.phase, f"×{status.speed:g}"))
        words += ["DAMAGED"] if status.damaged else []
    return " ".join(words) + (" · End: back to live" if mode is Mode.LOOKING_BACK else "")
