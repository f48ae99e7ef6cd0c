"""Files of a `sysctl.d` directory that are read after another one. Nothing is changed on the host."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable

from cockpit.model.knobs import Knob
from cockpit.model.text import sanitize
from cockpit.tuning import files
from cockpit.tuning.remote import Remote

_SETTING = 'grep -lsE -- "$1" "$2"/*.conf'


async def overriding_files(remote: Remote, knobs: Iterable[Knob]) -> list[str]:
    """Return a note about each knob in a file of `sysctl.d` whose key is also in a later file, in the order of names.
    Raises HostError."""
    notes = []
    for knob in knobs:
        directory, name = posixpath.split(knob.file)
        if posixpath.basename(directory) != "sysctl.d":
            continue
        # A key may be written with dots or slashes.
        key = re.sub(r"\W", lambda sign: "[./]" if sign[0] in "./" else f"[{sign[0]}]", knob.key)
        done = await files.run(remote, _SETTING, rf"^[[:space:]]*-?{key}[[:space:]]*=", directory)
        if later := [path for path in done.lines if posixpath.basename(path) > name]:
            words = f"{max(later)} also sets {knob.key}: it is read after {knob.file}, so its value counts after a boot"
            notes.append(sanitize(words, 600))
    return notes
