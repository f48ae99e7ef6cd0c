"""Baselines on disk: a JSON file each, in the user's state folder, replaced whole or not at all."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import platformdirs

from cockpit.analysis.baseline import FORMAT, Baseline
from cockpit.files import read_bounded, write_private
from cockpit.model.errors import UsageError
from cockpit.model.histogram import Histogram

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_ENDING = ".json"
_MOST = 64 << 20  # bytes


def folder() -> Path:
    """Return the folder of baselines."""
    return platformdirs.user_state_path("cockpit") / "baselines"


def save(baseline: Baseline) -> Path:
    """Keeps it under its name, in the place of an older one. Raises UsageError."""
    path = _path(baseline.name)
    try:
        write_private(path, _encoder.encode(baseline) + b"\n")
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None
    return path


def load(name: str) -> Baseline:
    """Raises UsageError for a name that there is none of, and for a file that does not read as one."""
    path = _path(name)
    try:
        found = _decoder.decode(read_bounded(path, _MOST))
    except FileNotFoundError:
        raise UsageError(f"{name}: no such baseline; there are: {', '.join(names()) or 'none'}") from None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    except (msgspec.MsgspecError, ArithmeticError, ValueError, TypeError, RecursionError, MemoryError) as error:
        raise UsageError(f"{path}: invalid baseline: {error}") from None
    if found.format > FORMAT:
        raise UsageError(f"{path}: was written by a newer cockpit (format {found.format}; this one reads {FORMAT})")
    return found


def names() -> list[str]:
    """Return the names of existing baselines, sorted."""
    try:
        files = [path.name for path in folder().iterdir()]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise UsageError(f"{folder()}: cannot be read: {error.strerror}") from None
    found = (name.removesuffix(_ENDING) for name in files if name.endswith(_ENDING))
    return sorted(name for name in found if _NAME.fullmatch(name))


def delete(name: str) -> None:
    """Raises UsageError for a name that there is none of."""
    try:
        _path(name).unlink()
    except FileNotFoundError:
        raise UsageError(f"{name}: no such baseline; there are: {', '.join(names()) or 'none'}") from None
    except OSError as error:
        raise UsageError(f"{_path(name)}: cannot be deleted: {error.strerror}") from None


def _path(name: str) -> Path:
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r}: invalid baseline name; use letters, digits, '.', '_' and '-'")
    return folder() / f"{name}{_ENDING}"


def _to_wire(value: Any) -> Any:
    if isinstance(value, Histogram):
        return value.to_wire()
    raise NotImplementedError(f"no wire form for {type(value)}")


def _from_wire(kind: type, value: Any) -> Any:
    if kind is Histogram:
        return Histogram.from_wire(value)
    raise NotImplementedError(f"no wire form for {kind}")


_encoder = msgspec.json.Encoder(enc_hook=_to_wire)
_decoder = msgspec.json.Decoder(Baseline, dec_hook=_from_wire)
