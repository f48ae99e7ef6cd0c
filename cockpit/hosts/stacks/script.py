"""The profiler's program: settings, the awk program `fold.awk` as a variable, and the shell script `record.sh`."""

from __future__ import annotations

from cockpit.hosts.probe.script import assigned, patterns, text_of
from cockpit.model.host.samples import HostConfig, HostReading
from cockpit.model.stacks import DEFAULT_HZ, MAX_STACKS, MAX_TEXT, SLICE_SECONDS

# Time (s) after which the program ends by itself, if its client vanished without closing its input.
LONGEST = 400
# Pages of the kernel's buffer per CPU, which perf reads when it is half full: with frame pointers about 15 samples,
# which costs a third of the CPU of reading each one. With copies of the user stack (dwarf) a sample has 8 KiB.
PAGES = {"fp": 2, "dwarf": 128}
# Limits of a stack on the host (characters, frames), below those of a slice.
_MOST_LENGTH, _MOST_FRAMES = 4_000, 120


def script(config: HostConfig, reading: HostReading) -> str:
    """Return the program that profiles a host until a line or the end of its input.

    The processes of `reading` and their children are profiled by the profiler of their language if all are in one and
    it is installed, else perf samples processes with the names of `config.processes`: names are user text, which is
    quoted, never run. If the user can only profile own processes, perf samples the processes of `reading` and their
    children; these are the only ones that count if there are other servers with the same names.
    """
    pids = {process.pid for process in reading.processes}
    masters = [process.pid for process in reading.processes if process.ppid not in pids]
    settings = {
        "hz": str(config.profile or DEFAULT_HZ),
        "call_graph": config.call_graph,
        "pages": str(PAGES[config.call_graph]),
        "longest": str(LONGEST),
        "pids": ",".join(map(str, sorted(pids))),
        "masters": " ".join(map(str, masters)),
        "sudo": "y" if config.sudo else "",
        "seconds": f"{SLICE_SECONDS:g}",
        "most_stacks": str(MAX_STACKS),
        "most_text": str(MAX_TEXT),
        "most_length": str(_MOST_LENGTH),
        "most_frames": str(_MOST_FRAMES),
        **patterns(config.processes),
        "roots": " ".join(map(str, masters)) if reading.excluded else "",
        "folder": text_of("stacks", "fold.awk"),
    }
    return "\n".join([assigned(settings), text_of("stacks", "record.sh")])
