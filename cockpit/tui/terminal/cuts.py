"""A pane whose lines are sent in parts."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Container
from textual.widget import Widget

# Parts of a line. Each delays the first frame by a few milliseconds.
_PARTS = 4


class CutPane(Container):
    """Contains a chart, over widgets that it covers: Textual sends the changed end of a line from the last edge of any
    widget on, also of a covered one.

    There are none in the first two lines and the last one, which can have wide characters: an edge would hide one.
    """

    DEFAULT_CSS = """
    CutPane { layout: horizontal; layers: covered shown; }
    CutPane > .cut { layer: covered; width: 1fr; margin: 2 0 1 0; }
    CutPane > Pane { layer: shown; width: 100%; height: 100%; }
    """

    def compose(self) -> ComposeResult:
        for _ in range(_PARTS):
            yield Widget(classes="cut")
