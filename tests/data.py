"""Data files of test modules: cases and texts."""

import tomllib
from pathlib import Path
from typing import Any


def data_of(module: str) -> dict[str, Any]:
    """Return the data of a module, given its file: those of the TOML file with its name."""
    return tomllib.loads(Path(module).with_suffix(".toml").read_text())
