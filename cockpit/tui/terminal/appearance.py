"""The appearance of the screen, chosen before it opens, and the settings remembered between sessions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import platformdirs

from cockpit.files import read_bounded, write_private
from cockpit.model.errors import UsageError
from cockpit.tui.terminal.theme import DEFAULT, Colours


@dataclass(frozen=True)
class Appearance:
    """`encoding` is that of server texts, if `ascii` restricts the screen's own glyphs to ASCII.

    `lite`: few frames and plain charts, for the reason `why`; `may_lite`: it becomes so by itself on a slow
    line. `outlive`: a run continues to its end when the terminal closes. `notices` are shown once it is up.
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


_MOST = 1 << 20  # bytes


def settings_file() -> Path:
    return platformdirs.user_state_path("cockpit") / "settings.json"


def read_settings() -> dict[str, Any]:
    """Return all settings by name. Raises UsageError for an unreadable file."""
    file = settings_file()
    try:
        return msgspec.json.decode(read_bounded(file, _MOST), type=dict[str, Any])
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise UsageError(f"{file}: cannot be read ({error.strerror}); defaults are used") from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, MemoryError):
        raise UsageError(f"{file}: is no JSON object; defaults are used, delete it to be rid of this") from None


def save_settings(values: Mapping[str, Any]) -> None:
    """Add to the settings; replace an unreadable file. Raises UsageError if it cannot be written."""
    file = settings_file()
    try:
        known = read_settings()
    except UsageError:
        known = {}
    try:
        write_private(file, msgspec.json.encode({**known, **values}))
    except OSError as error:
        raise UsageError(f"{file}: cannot be written ({error.strerror}); it holds for this session only") from None
