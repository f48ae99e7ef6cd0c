"""Baselines on disk: one JSON file per baseline, in the user's state folder, replaced atomically."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

import msgspec

from cockpit.analysis.baseline import FORMAT, Baseline
from cockpit.analysis.plans import differences
from cockpit.files import read_bounded, state_folder, write_private
from cockpit.metrics.catalogue import LATENCIES
from cockpit.model.errors import UsageError, naming
from cockpit.model.histogram import from_wire, to_wire
from cockpit.model.load.plan import LoadPlan

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_ENDING = ".json"
_MOST = 64 << 20  # bytes


def folder() -> Path:
    return state_folder() / "baselines"


def save(baseline: Baseline) -> Path:
    """Write the baseline, replacing one of the same name. Raises UsageError."""
    path = path_of(baseline.name)
    with naming(path, "be written"):
        write_private(path, _encoder.encode(baseline) + b"\n")
    return path


def load(name: str) -> Baseline:
    """Return the baseline of this name. Raises UsageError for an unknown name and for an invalid file."""
    path = path_of(name)
    try:
        baseline = _decoder.decode(read_bounded(path, _MOST))
    except FileNotFoundError:
        raise UsageError(f"{name}: no such baseline; saved: {', '.join(names()) or 'none'}") from None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    except (msgspec.MsgspecError, ArithmeticError, ValueError, TypeError, RecursionError, MemoryError) as error:
        raise UsageError(f"{path}: invalid baseline: {error}") from None
    if baseline.format > FORMAT:
        raise UsageError(f"{path}: written by a newer cockpit (format {baseline.format}, not {FORMAT}); update cockpit")
    if not baseline.runs or any(kind not in run.histograms for run in baseline.runs for kind in LATENCIES):
        raise UsageError(f"{path}: invalid baseline: a run or its latencies are missing")
    return baseline


def names() -> list[str]:
    try:
        files = [path.name for path in folder().iterdir()]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise UsageError(f"{folder()}: cannot be read: {error.strerror}") from None
    names = (name.removesuffix(_ENDING) for name in files if name.endswith(_ENDING))
    return sorted(name for name in names if _NAME.fullmatch(name))


def latest(plan: LoadPlan) -> Baseline | None:
    """Return the newest baseline of the same load; None without one. Unreadable baselines are skipped."""
    for path in sorted(folder().glob(f"*{_ENDING}"), key=_written, reverse=True):
        with suppress(UsageError):
            baseline = load(path.name.removesuffix(_ENDING))
            if not differences(baseline.plan, plan):
                return baseline
    return None


def _written(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def delete(name: str) -> tuple[Path, int]:
    """Delete the baseline of this name; return its file and size in bytes. Raises UsageError for an unknown name."""
    path = path_of(name)
    try:
        size = path.stat().st_size
        path.unlink()
    except FileNotFoundError:
        raise UsageError(f"{name}: no such baseline; saved: {', '.join(names()) or 'none'}") from None
    except OSError as error:
        raise UsageError(f"{path}: cannot be deleted: {error.strerror}") from None
    return path, size


def path_of(name: str) -> Path:
    """Return the file of a baseline. Raises UsageError for an invalid name."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r}: invalid baseline name; use letters, digits, '.', '_' and '-'")
    return folder() / f"{name}{_ENDING}"


_encoder = msgspec.json.Encoder(enc_hook=to_wire)
_decoder = msgspec.json.Decoder(Baseline, dec_hook=from_wire)
