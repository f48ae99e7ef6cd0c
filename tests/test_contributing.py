"""CONTRIBUTING.md names files and names that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
TABLE = (ROOT / "CONTRIBUTING.md").read_text().split("## Where to change what")[1].split("\n## ")[0]


def test_files_of_changes_exist() -> None:
    named = [path for path in re.findall(r"`([\w/]+/[\w.]+\.(?:py|awk|sh|css))`", TABLE) if "KIND" not in path]
    assert len(named) > 20
    assert [path for path in named if not (ROOT / "cockpit" / path).is_file()] == []


def test_names_of_changes_exist_in_their_files() -> None:
    found = [
        (path, name)
        for path, names in re.findall(r"`([\w/]+\.py)` \(((?:`\w+`(?:, )?)+)\)", TABLE)
        for name in re.findall(r"\w+", names)
    ]
    assert len(found) > 5
    missing = [
        (path, name)
        for path, name in found
        if not re.search(rf"^(?:class |def )?{name}\b", (ROOT / "cockpit" / path).read_text(), re.MULTILINE)
    ]
    assert missing == []
