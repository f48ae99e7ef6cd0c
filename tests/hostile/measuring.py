"""Sizes of the fuzzers, and the memory that a test needs."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Seeds of each fuzzer. Development machines can test many more.
SEEDS = range(int(os.environ.get("COCKPIT_FUZZ_SEEDS", "1")))
THOROUGH = len(SEEDS) > 1


@contextmanager
def growth_below(mib: int) -> Iterator[None]:
    """Fail if the peak resident memory of this process grows by more."""
    # Resets the peak to the current memory.
    Path("/proc/self/clear_refs").write_text("5")
    before = _peak_mib()
    yield
    assert _peak_mib() - before < mib


def _peak_mib() -> float:
    """Not ru_maxrss, which is inherited from the parent."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024
