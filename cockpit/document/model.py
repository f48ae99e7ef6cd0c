"""The parts of a report: sections of notes, lists, pairs, tables and plots. Their text may be of any origin: writers
make it harmless."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import msgspec

from cockpit.document.scale import Axis

Role = Literal["", "good", "bad", "warn", "soft", "question", "code"]
SignKind = Literal["change", "note", "trouble"]
Point = tuple[float, float | None]

# A cell without a value, or one that starts as a number does; other cells are words.
_NUMBER = re.compile(r"(?:[-+−×÷≥≤<]? ?[-+−×÷]?\d\S*(?: \S{1,3})*|[-–=]?)")


class Cell(NamedTuple):
    """A cell of a table with the role of its text, and a tag or remark in small type."""

    text: str
    role: Role = ""
    note: str = ""


class Paragraph(msgspec.Struct, frozen=True):
    """A paragraph."""

    text: str
    role: Role = ""


class Items(msgspec.Struct, frozen=True):
    """A list of lines. With a title, they are details of the block before them, folded in HTML."""

    lines: Sequence[str]
    role: Role = ""
    title: str = ""


class Pairs(msgspec.Struct, frozen=True):
    """Names with their values; `tiles`: a few main values, shown large."""

    values: Sequence[tuple[str, str]]
    tiles: bool = False


class Dot(NamedTuple):
    """A point in a row; `pale` if it counts for nothing else; `words` is the tooltip."""

    value: float
    words: str = ""
    pale: bool = False


class Marks(msgspec.Struct, frozen=True):
    """The drawing of a table's row: dots, an interval (an end of None is open), a margin in the background, and a
    reference value."""

    dots: Sequence[Dot] = ()
    colour: int = 0
    interval: tuple[float | None, float | None] | None = None
    margin: tuple[float, float] | None = None
    reference: float | None = None


class Table(msgspec.Struct, frozen=True):
    """Rows of cells. `marks` draw each row on the common `axis`."""

    titles: Sequence[str]
    rows: Sequence[Sequence[str | Cell]]
    axis: Axis | None = None
    marks: Sequence[Marks] = ()

    def cells(self) -> list[list[Cell]]:
        return [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in self.rows]

    @property
    def words(self) -> list[bool]:
        """For each column whether it holds words, which are aligned left; the first column always does."""
        rows = self.cells()
        return [not at or any(not _NUMBER.fullmatch(row[at].text) for row in rows) for at in range(len(self.titles))]


class PlotSeries(msgspec.Struct, frozen=True):
    """`points` by ascending x; a y of None is a gap. `colour` is 0 to 7. `fill`: the area down to `floor` (y by x), or
    to the axis, is filled. `dots`: points without a line."""

    name: str
    points: Sequence[Point]
    colour: int = 0
    fill: bool = False
    floor: Sequence[Point] = ()
    dots: bool = False


class Sign(NamedTuple):
    """A vertical line at x with the letter `sign` on top, if any, and the tooltip `words`."""

    x: float
    sign: str
    words: str
    kind: SignKind = "change"


class Heat(NamedTuple):
    """Opacities (0 to 255) of a grid between two values of the y axis: a line per bucket, the lowest first."""

    lines: Sequence[bytes]
    low: float
    high: float


class Plot(msgspec.Struct, frozen=True, kw_only=True):
    """A chart: series over time, a distribution (`steps` between the edges of its buckets), or values at the labels of
    the x axis (levels, percentiles). `bands` are ranges (from, to, label) in the background."""

    kind: Literal["time", "steps", "values"]
    title: str
    x: Axis
    y: Axis
    series: Sequence[PlotSeries] = ()
    signs: Sequence[Sign] = ()
    bands: Sequence[tuple[float, float, str]] = ()
    heat: Heat | None = None
    wide: bool = False


class FlameBox(NamedTuple):
    """A box in a row from `start` to `end` (shares of the width) with its text, its tooltip `words`, its colour (see
    PlotSeries) and the opacity of the colour (0 to 1)."""

    row: int
    start: float
    end: float
    text: str
    words: str
    colour: int
    opacity: float


class Flame(msgspec.Struct, frozen=True):
    """A flame graph: callers above their callees."""

    title: str
    boxes: Sequence[FlameBox]


class Part(msgspec.Struct, frozen=True):
    """A part of a report; `folded` at first in HTML. A section without a title is a block with the colour of `role`."""

    title: str
    blocks: Sequence[Block | Part]
    folded: bool = False
    role: Role = ""


Block = Paragraph | Items | Pairs | Table | Plot | Flame


class Document(msgspec.Struct, frozen=True):
    """A report. Empty parts and blocks are left out. `alert`: what makes the results unusable, before all else."""

    title: str
    lead: Sequence[Block]
    sections: Sequence[Part] = ()
    alert: str = ""


def non_empty(blocks: Iterable[Block | Part]) -> list[Block | Part]:
    """Return the blocks with content; of sections, those with such a block."""
    return [block for block in blocks if _has_content(block)]


def _has_content(block: Block | Part) -> bool:
    match block:
        case Part():
            return bool(non_empty(block.blocks))
        case Paragraph():
            return bool(block.text)
        case Items():
            return bool(block.lines)
        case Pairs():
            return bool(block.values)
        case Table():
            return bool(block.rows)
        case Flame(_, boxes):
            return bool(boxes)
        case Plot():
            return block.heat is not None or any(y is not None for each in block.series for _, y in each.points)
