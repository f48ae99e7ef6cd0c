"""What an installation without extras downloads from the package index."""

import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from tests.bench.table import at_most, show

_PROJECT = Path(__file__).parents[2] / "pyproject.toml"


def installation() -> bool:
    """Packages and MiB of all dependencies for this interpreter."""
    requirements = tomllib.loads(_PROJECT.read_text())["project"]["dependencies"]
    with tempfile.TemporaryDirectory(prefix="cockpit-bench-") as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-cache-dir", "--dest", folder]
        subprocess.run([*command, *requirements], check=True, capture_output=True)
        sizes = {path.name.partition("-")[0]: path.stat().st_size / 2**20 for path in Path(folder).iterdir()}
    largest = sorted(sizes, key=lambda name: -sizes[name])[:3]
    lines = [f"the largest: {', '.join(f'{name} {sizes[name]:.1f} MiB' for name in largest)}"]
    bars = [at_most("packages", len(sizes), 25), at_most("download", sum(sizes.values()), 28, " MiB")]
    return show("an installation without extras", lines, bars)
