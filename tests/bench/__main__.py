"""`python -m tests.bench [NAME ...]`: cost of cockpit relative to its peers. Exit 1 if a limit is exceeded.

Other load on the machine can push a metric over its limit; each row shows how much other load there was.
"""

import subprocess
import sys
from collections.abc import Callable
from functools import partial

from tests.bench import (
    agreement,
    generator,
    generators,
    hosts,
    installation,
    profiles,
    recording,
    screen,
    searching,
    traffic,
)
from tests.bench.table import Skipped

ROWS: dict[str, Callable[[], bool]] = {
    "kept-20": partial(generator.kept, 20),
    "kept-100": partial(generator.kept, 100),
    "http2-1": partial(generator.http2, 1),
    "http2-10": partial(generator.http2, 10),
    "http2-100": partial(generator.http2, 100),
    "http2-new-tls": partial(generator.new_tls, "2"),
    "new-tls": partial(generator.new_tls, "1.1"),
    "new": generator.new,
    "bottleneck": generator.bottleneck,
    "open-2000-new": partial(generator.open_load, 2000, kept=False),
    "open-2000-kept": partial(generator.open_load, 2000, kept=True),
    "open-5000-new": partial(generator.open_load, 5000, kept=False),
    "open-5000-kept": partial(generator.open_load, 5000, kept=True),
    "open-5000-http2": partial(generator.open_load, 5000, kept=True, http2=True),
    "large": generator.large,
    "memory": generator.memory,
    "memory-http2": partial(generator.memory, http2=True),
    "many": generator.many,
    "workers": generator.workers,
    "agreement": agreement.agreement,
    "probe-cost": hosts.probe_cost,
    "hosts-scale": hosts.hosts_scale,
    "profile-cost": profiles.profile_cost,
    "profile-cost-python": profiles.python_profile_cost,
    "log-cost": traffic.log_cost,
    "generators-four": generators.four_generators,
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
    "installation": installation.installation,
}


def main(names: list[str]) -> int:
    """Measure the named rows (default all); return 1 if a limit is exceeded, 2 for an unknown row."""
    unknown = [name for name in names if name not in ROWS]
    if unknown:
        print(f"unknown row {unknown[0]!r}; choose from {', '.join(ROWS)}", file=sys.stderr)
        return 2
    # A row takes minutes: show its lines as they are printed.
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    failed = [name for name in names or ROWS if not _measured(name)]
    if failed:
        print(f"limits exceeded: {', '.join(failed)}")
    return 1 if failed else 0


def _measured(name: str) -> bool:
    """Return whether a row is within its limits; a row that cannot be measured fails, and the others still run."""
    print(f"[{name}] ", end="")
    try:
        return ROWS[name]()
    except Skipped as reason:
        print(f"  skipped, {reason}")
        return True
    except (RuntimeError, ValueError, subprocess.SubprocessError) as error:
        print(f"  OVER  not measured: {error}")
        return False
    finally:
        print()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
