"""A report as text for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, pairwise, repeat

from cockpit.document.model import (
    Block,
    Cell,
    Document,
    Items,
    Pairs,
    Paragraph,
    Part,
    Plot,
    PlotSeries,
    Role,
    Table,
    non_empty,
)
from cockpit.model.text import sanitize

# Writes text in the colour of a role.
Paint = Callable[[str, Role], str]

_RISING = "▁▂▃▄▅▆▇█"
# Width of lists of values.
_TEXT = 100
# Width of a line chart, and maximum length of the names beside it.
_CHART, _NAME = 60, 28


def plain(text: str, _: Role) -> str:
    return text


def to_text(document: Document, paint: Paint = plain) -> str:
    """Return the lines without a trailing newline: the title with the lead, then the sections after blank lines."""
    head = [paint(sanitize(document.alert), "bad")] if document.alert else []
    head += [paint(sanitize(document.title), "")] if document.title else []
    parts = [[*head, *(f"{'  ' if document.title else ''}{line}" for line in _lines(document.lead, paint))]]
    parts += [_section(part, paint) for part in non_empty(document.sections) if isinstance(part, Part)]
    return "\n\n".join("\n".join(line.rstrip() for line in part) for part in parts if part)


def _section(section: Part, paint: Paint) -> list[str]:
    head = [paint(sanitize(section.title), section.role)] if section.title else []
    return [*head, *(f"  {line}" for line in _lines(section.blocks, paint))]


def _lines(blocks: Iterable[Block | Part], paint: Paint) -> Iterator[str]:
    """Yield the lines of blocks; the columns of all their tables have common widths."""
    kept = non_empty(blocks)
    widths = _common_widths([block for block in kept if isinstance(block, Table)])
    for block in kept:
        match block:
            case Part():
                yield from _section(block, paint)
            case Paragraph(text, role):
                yield paint(sanitize(text), role)
            case Items(lines, role, title):
                mark = ("  " if title else "") + ("! " if role == "warn" else "")
                yield from (f"{mark}{paint(sanitize(line), role)}" for line in lines)
            case Pairs(values):
                width = max(len(sanitize(name)) for name, _ in values)
                for name, value in values:
                    heads = chain([sanitize(name)], repeat(""))
                    rows = zip(heads, _wrapped(sanitize(value), _TEXT - width), strict=False)
                    yield from (f"{head:<{width}}  {line}" for head, line in rows)
            case Table():
                yield from _table(block, widths or _widths(block), paint)
            case Plot():
                yield from _plot(block, paint)


def _wrapped(text: str, width: int) -> list[str]:
    """Break a text between its values, which two spaces separate."""
    lines: list[str] = []
    for value in text.split("  "):
        if lines and len(lines[-1]) + len(value) + 2 <= width:
            lines[-1] += f"  {value}"
        else:
            lines.append(value)
    return lines


def _shown(cell: Cell) -> str:
    return sanitize(f"{cell.text} ({cell.note})" if cell.note else cell.text)


def _widths(table: Table) -> list[int]:
    rows = [[Cell(title) for title in table.titles], *table.cells()]
    return [max(len(_shown(row[at])) for row in rows) for at in range(len(table.titles))]


def _common_widths(tables: Sequence[Table]) -> list[int]:
    """Return one width for the first columns and one for all others of several tables; empty for a single table."""
    if len(tables) < 2:
        return []
    each = [_widths(table) for table in tables]
    first, rest = max(widths[0] for widths in each), max(width for widths in each for width in widths[1:])
    return [first, *[rest] * max(len(widths) - 1 for widths in each)]


def _table(table: Table, widths: Sequence[int], paint: Paint) -> Iterator[str]:
    for row in ([Cell(title) for title in table.titles], *table.cells()):
        columns = zip(row, widths, table.words, strict=False)
        cells = (
            paint(f"{_shown(cell):<{width}}" if words else f"{_shown(cell):>{width}}", cell.role)
            for cell, width, words in columns
        )
        yield "  ".join(cells)


def _plot(plot: Plot, paint: Paint) -> Iterator[str]:
    """Yield values at the labels of the x axis, or a line chart of each series with its range."""
    drawn = [series for series in plot.series if series.name and any(y is not None for _, y in series.points)]
    if plot.kind == "values":
        rows = [(sanitize(series.name, _NAME), *_values(plot, series)) for series in drawn]
        table = Table((plot.title, *(label for _, label in plot.x.labels)), rows)
        yield from _table(table, _widths(table), paint)
        return
    if [series.name for series in drawn] != [plot.title]:
        yield sanitize(plot.title)
    width = min(_CHART, max(len(series.points) for series in drawn))
    for series in drawn:
        low, high = (plot.y.form(pick(y for _, y in series.points if y is not None)) for pick in (min, max))
        yield f"{sanitize(series.name, _NAME):<{_NAME}}  {_chart(plot, series, width):<{width}}  {low} to {high}"
    for sign in plot.signs:
        before = _NAME + 2 + min(width - 1, int(width * plot.x.at(sign.x)))
        yield f"{'':<{before}}▲ {paint(sanitize(sign.words), 'soft')}"
    first, last = plot.x.labels[0][1], plot.x.labels[-1][1]
    yield f"{'':<{_NAME}}  {first}{last:>{max(len(last) + 1, width - len(first))}}"


def _values(plot: Plot, series: PlotSeries) -> Iterator[str]:
    points = dict(series.points)
    for x, _ in plot.x.labels:
        y = points.get(x)
        yield "–" if y is None else plot.y.form(y)


def _chart(plot: Plot, series: PlotSeries, width: int) -> str:
    """Return a line chart, each column the largest of its points; of a distribution, small shares stay visible."""
    power = 0.5 if plot.kind == "steps" else 1.0
    edges = [round(step * len(series.points) / width) for step in range(width + 1)]
    columns = [[y for _, y in series.points[start:end] if y] for start, end in pairwise(edges)]
    return "".join(_RISING[min(7, int(8 * plot.y.at(max(ys)) ** power))] if ys else " " for ys in columns)
