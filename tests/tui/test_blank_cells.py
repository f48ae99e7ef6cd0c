"""Most of the screen informs while load runs."""

from tests.tui.blank_cells import blank_cells


async def test_at_most_15_percent_of_the_screen_is_without_information() -> None:
    found = await blank_cells("under-load", every=6.0)
    assert found.uninformative <= 0.15, "\n".join(found.lines)
