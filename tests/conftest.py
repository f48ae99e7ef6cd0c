"""What all tests share."""

from pathlib import Path

import pytest
from hypothesis import settings

# How long an example takes says something about the machine, not about the code.
settings.register_profile("cockpit", deadline=None)
settings.load_profile("cockpit")

# What has the machine to itself: `make test` runs the rest side by side first.
ALONE = [Path(__file__).parent / folder for folder in ("lab", "load/truth")]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if any(item.path.is_relative_to(folder) for folder in ALONE):
            item.add_marker("alone")
