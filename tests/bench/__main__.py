"""`python -m tests.bench [NAME ...]`: what the cockpit costs, beside its peers. Exit 1 when a bar is broken.

A bar may break because others use the machine meanwhile; each row says how much they did.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

from tests.bench import (
    agreement,
    arrivals,
    endurance,
    four_generators,
    generator,
    generators,
    hosts,
    recording,
    screen,
    searching,
)

ROWS: dict[str, Callable[[], bool]] = {
    "kept-20": generator.kept_20,
    "kept-100": generator.kept_100,
    "new": generator.new,
    "bottleneck": generator.bottleneck,
    "open-2000-new": arrivals.open_2000_new,
    "open-2000-kept": arrivals.open_2000_kept,
    "open-5000-new": arrivals.open_5000_new,
    "open-5000-kept": arrivals.open_5000_kept,
    "large": endurance.large,
    "memory": endurance.memory,
    "many": endurance.many,
    "workers": endurance.workers,
    "agreement": agreement.agreement,
    "probe-cost": hosts.probe_cost,
    "hosts-scale": hosts.hosts_scale,
    "generators-four": four_generators.four_generators,
    "generators-scale": generators.generators_scale,
    "recording-size": recording.recording_size,
    "recording-seek": recording.recording_seek,
    "kills": recording.kills,
    "search": searching.search,
    "search-claims": searching.search_claims,
    "screen": screen.screen,
    "first-frame": screen.first_frame,
    "key-answered": screen.key_answered,
    "beside-screen": screen.beside_screen,
}


def main(names: list[str]) -> int:
    """Measures the rows named, or all of them; 1 when a bar of theirs is broken, 2 when there is no such row."""
    unknown = [name for name in names if name not in ROWS]
    if unknown:
        print(f"unknown: {unknown[0]}; there are {', '.join(ROWS)}", file=sys.stderr)
        return 2
    # A row takes its time; what it says is to be seen when it says it.
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    broken = [name for name in names or ROWS if not _measured(name)]
    if broken:
        print(f"bars broken: {', '.join(broken)}")
    return 1 if broken else 0


def _measured(name: str) -> bool:
    """Whether a row's bars hold; one that could not be measured is broken too, and the others are measured."""
    print(f"[{name}] ", end="")
    try:
        return ROWS[name]()
    except (RuntimeError, ValueError, subprocess.SubprocessError) as error:
        print(f"  OVER  not measured: {error}")
        return False
    finally:
        print()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
