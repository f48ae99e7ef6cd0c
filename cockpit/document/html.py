"""A report as one self-contained HTML page for screens, phones and paper.

Text from recordings and profiles is untrusted: it goes through `escaped`. Pages fetch nothing and run nothing, which
their Content-Security-Policy enforces.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from itertools import groupby

from cockpit.document.model import (
    Block,
    Cell,
    Document,
    Flame,
    Items,
    Pairs,
    Paragraph,
    Part,
    Plot,
    Role,
    Table,
    non_empty,
)
from cockpit.document.svg import axis_labels, escaped, figure, flame_figure, row_svg

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
# Cells up to this length (characters) are not wrapped.
_UNWRAPPED = 40


def to_html(document: Document) -> str:
    """Return the page. The same report gives the same page."""
    sections = [each for each in non_empty(document.sections) if isinstance(each, Part)]
    links = "".join(f'<a href="#{_anchor(each)}">{escaped(each.title)}</a>' for each in sections)
    body = "".join(
        f'<section id="{_anchor(each)}"><h2>{escaped(each.title)}</h2>\n{_blocks(each.blocks)}</section>\n'
        for each in sections
    )
    alert = f'<p class="bad">{escaped(document.alert)}</p>\n' if document.alert else ""
    header = f"{alert}<h1>{escaped(document.title)}</h1>\n{_blocks(document.lead)}"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f'<title>{escaped(document.title)} · cockpit</title>\n<link rel="icon" href="data:,">\n'
        f"<style>\n{_style()}</style>\n</head>\n"
        f"<body>\n<header>{header}<nav>{links}</nav></header>\n<main>\n{body}</main>\n</body>\n</html>\n"
    )


def _anchor(section: Part) -> str:
    return escaped(section.title.partition(" ")[0].lower())


@cache
def _style() -> str:
    return (files("cockpit.document") / "page.css").read_text(encoding="utf-8")


def _blocks(blocks: Iterable[Block | Part]) -> str:
    """Return blocks as HTML; plots side by side, unless they are wide."""
    parts = []
    for side_by_side, group in groupby(non_empty(blocks), lambda block: isinstance(block, Plot) and not block.wide):
        inside = list(map(_block, group))
        html = "".join(inside)
        parts.append(f'<div class="charts">{html}</div>\n' if side_by_side and len(inside) > 1 else html)
    return "".join(parts)


def _block(block: Block | Part) -> str:
    match block:
        case Part():
            return _section(block)
        case Paragraph(text, role):
            return f"<p{_class('mono' if role == 'code' else role)}>{escaped(text)}</p>\n"
        case Items(lines, role, title):
            items = _items(lines, role)
            return f"<details><summary>{escaped(title)}</summary>{items}</details>\n" if title else items
        case Pairs(values, tiles):
            if tiles:
                cells = (f"<div><b>{escaped(value)}</b><small>{escaped(name)}</small></div>" for name, value in values)
                return f'<div class="tiles">{"".join(cells)}</div>\n'
            return (
                f"<dl>{''.join(f'<dt>{escaped(name)}</dt><dd>{escaped(value)}</dd>' for name, value in values)}</dl>\n"
            )
        case Table():
            return f'<div class="scroll">{_table(block)}</div>\n'
        case Plot():
            return figure(block)
        case Flame():
            return flame_figure(block)


def _items(lines: Iterable[str], role: Role) -> str:
    if role == "code":
        code = "\n".join(map(escaped, lines))
        return f'<pre class="mono">{code}</pre>\n'
    return f"<ul{_class(role)}>{''.join(f'<li>{escaped(line)}</li>' for line in lines)}</ul>\n"


def _section(section: Part) -> str:
    inside = _blocks(section.blocks)
    if section.folded:
        return f"<details><summary>{escaped(section.title)}</summary>{inside}</details>\n"
    if not section.title:
        return f"<div{_class('verdict', section.role)}>{inside}</div>\n"
    return f"<div class=part><h3>{escaped(section.title)}</h3>{inside}</div>\n"


def _table(table: Table) -> str:
    words = table.words
    head = "".join(
        f"<th{_class('words' if of_words else '')}>{escaped(title)}</th>"
        for title, of_words in zip(table.titles, words, strict=True)
    )
    if table.axis:
        head += f'<th class="interval"><div>{axis_labels(table.axis)}</div></th>'
    rows = "".join(_row(table, number, row, words) for number, row in enumerate(table.cells()))
    dots = table.axis and all(marks.interval is None for marks in table.marks)
    kind = _class("forest" if table.axis else "", "dots" if dots else "")
    return f"<table{kind}><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _row(table: Table, number: int, row: list[Cell], words: list[bool]) -> str:
    cells = "".join(_cells(row, words))
    if table.axis:
        cells += f'<td class="interval"><div>{row_svg(table.axis, table.marks[number])}</div></td>'
    return f"<tr>{cells}</tr>"


def _cells(row: list[Cell], words: list[bool]) -> Iterator[str]:
    for cell, of_words in zip(row, words, strict=True):
        nowrap = "nowrap" if len(cell.text) <= _UNWRAPPED else ""
        text = f'<span class="{cell.role}">{escaped(cell.text)}</span>' if cell.role else escaped(cell.text)
        note = f" <small>{escaped(cell.note)}</small>" if cell.note else ""
        yield f"<td{_class('words' if of_words else '', nowrap)}>{text}{note}</td>"


def _class(*names: str | Role) -> str:
    kept = " ".join(filter(None, names))
    return f' class="{kept}"' if kept else ""
