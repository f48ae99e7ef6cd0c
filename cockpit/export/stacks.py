"""CPU profiles as folded stacks, and as JSON for speedscope.

Formats: https://github.com/brendangregg/FlameGraph (a stack and its samples per line) and
https://www.speedscope.app/file-format-schema.json (stacks as indices of frames).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from cockpit.analysis.stacks.merging import segment_stacks
from cockpit.analysis.words.timeline import segment_label
from cockpit.model.errors import UsageError
from cockpit.model.stacks import SEPARATOR
from cockpit.model.state import Segment, State
from cockpit.model.text import escaped, sanitize
from cockpit.recording.reader import Recording, last_state

_SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def folded_stacks(recording: Recording, run: int | None) -> Iterator[str]:
    """Yield a line per stack; its first frame is the host and the segment. Raises UsageError without a profile."""
    for host, segment, stacks in _profiles(last_state(recording), run):
        for stack, samples in sorted(stacks.items()):
            yield f"{host} segment {segment.number}{SEPARATOR}{stack} {samples}\n"


def speedscope(recording: Recording, run: int | None) -> Iterator[str]:
    """Yield the JSON with a profile per host and segment. Raises UsageError without a profile."""
    state = last_state(recording)
    frames: dict[str, int] = {}
    profiles = []
    for host, segment, stacks in _profiles(state, run):
        samples = [[frames.setdefault(frame, len(frames)) for frame in stack.split(SEPARATOR)] for stack in stacks]
        name = f"{host} segment {segment.number}: {sanitize(segment_label(segment))}"
        weights = list(stacks.values())
        head: dict[str, object] = {"type": "sampled", "name": name, "unit": "none", "startValue": 0}
        profiles.append(head | {"endValue": sum(weights), "samples": samples, "weights": weights})
    shared = {"frames": [{"name": name} for name in frames]}
    name, exporter = (state.started.name, f"cockpit {state.started.version}") if state.started else ("", "cockpit")
    page = {"$schema": _SCHEMA, "name": name, "exporter": exporter, "shared": shared, "profiles": profiles}
    yield f"{escaped(msgspec.json.encode(page).decode())}\n"


def _profiles(state: State, run: int | None) -> list[tuple[str, Segment, Mapping[str, int]]]:
    segments = [segment for segment in state.segments if run in (None, segment.run)]
    profiles = [(host, segment, segment_stacks(state, host, segment)) for host in state.hosts for segment in segments]
    profiled = [
        (sanitize(host).replace(SEPARATOR, ":"), segment, stacks) for host, segment, stacks in profiles if stacks
    ]
    if not profiled:
        raise UsageError("no CPU profile in this recording; to record one: cockpit run PROFILE --profile")
    return profiled
