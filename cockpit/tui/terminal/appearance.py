"""The appearance of the screen, chosen before it opens, and the settings remembered between sessions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from cockpit.files import read_bounded, state_folder, write_private
from cockpit.model.errors import UsageError
from cockpit.tui.terminal.theme import DEFAULT, Colours


@dataclass(frozen=True)
class Appearance:
    """Options of the screen, fixed at its start.

    `ascii`: cockpit's own glyphs are replaced by ASCII; server texts may use all characters of `encoding`. `lite`: few
    frames and plain charts, for the reason `why`; `may_lite`: the screen becomes lite automatically on a slow line.
    `outlive`: a run continues to its end when the terminal closes. `notices` are shown when the screen is up.
    """

    theme: str = DEFAULT
    colours: Colours = "truecolor"
    ascii: bool = False
    encoding: str = "utf-8"
    lite: bool = False
    why: str = ""
    may_lite: bool = False
    mouse: bool = True
    outlive: bool = False
    notices: tuple[str, ...] = ()


_MAX_BYTES = 1 << 20


def settings_file() -> Path:
    return state_folder() / "settings.json"


def read_settings() -> dict[str, Any]:
    """Return all settings by name. Raises UsageError for an unreadable file."""
    file = settings_file()
    try:
        return msgspec.json.decode(read_bounded(file, _MAX_BYTES), type=dict[str, Any])
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise UsageError(f"{file}: cannot be read ({error.strerror}); defaults are used") from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, MemoryError):
        raise UsageError(f"{file}: not a JSON object, defaults are used; delete the file") from None


def save_settings(values: Mapping[str, Any]) -> None:
    """Add to the settings; replace an unreadable file. Raises UsageError if the file cannot be written."""
    file = settings_file()
    try:
        known = read_settings()
    except UsageError:
        known = {}
    try:
        write_private(file, msgspec.json.encode({**known, **values}))
    except OSError as error:
        raise UsageError(f"{file}: cannot be written ({error.strerror}); applies to this session only") from None
