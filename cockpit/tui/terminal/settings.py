"""What the screen remembers from one session to the next, in a small JSON file in the user's state directory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import platformdirs

from cockpit.files import read_bounded, write_private
from cockpit.model.errors import UsageError

_MOST = 1 << 20  # bytes


def place() -> Path:
    """The file; it may not exist yet."""
    return platformdirs.user_state_path("cockpit") / "settings.json"


def recall() -> dict[str, Any]:
    """All that is remembered, by name. Raises UsageError, one line, where the file does not read."""
    file = place()
    try:
        return msgspec.json.decode(read_bounded(file, _MOST), type=dict[str, Any])
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise UsageError(f"{file}: cannot be read ({error.strerror}); defaults are used") from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, MemoryError):
        raise UsageError(f"{file}: is no JSON object; defaults are used, delete it to be rid of this") from None


def remember(values: Mapping[str, Any]) -> None:
    """Adds to what is remembered; a file that does not read makes way. Raises UsageError where it cannot be written."""
    file = place()
    try:
        known = recall()
    except UsageError:
        known = {}
    try:
        write_private(file, msgspec.json.encode({**known, **values}))
    except OSError as error:
        raise UsageError(f"{file}: cannot be written ({error.strerror}); it holds for this session only") from None
