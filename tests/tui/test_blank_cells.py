"""Most of the screen informs while load runs."""

import pytest

from tests.tui.blank_cells import blank_cells


@pytest.mark.parametrize(("recording", "most"), [("under-load", 0.15), ("two-hosts", 0.22)])
async def test_few_cells_are_without_information(recording: str, most: float) -> None:
    found = await blank_cells(recording, every=4.0)
    assert found.uninformative <= most, "\n".join(found.lines)
