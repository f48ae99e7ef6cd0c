"""A report as Markdown, for a wiki or a merge request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from cockpit.document.model import Block, Document, Items, Pairs, Paragraph, Part, Table, non_empty
from cockpit.model.text import sanitize

# Characters that Markdown, or HTML in it, would interpret as markup.
_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~&!@$])")


def to_markdown(document: Document, level: int = 1) -> str:
    """Return the report with a line end, without plots and code; `level` is that of its heading."""
    alert = [f"**{md(document.alert)}**", ""] if document.alert else []
    lines = [
        *alert,
        f"{'#' * level} {md(document.title)}",
        *_blocks(document.lead, level),
        *_blocks(document.sections, level),
    ]
    return "\n".join(lines) + "\n"


def md(value: str) -> str:
    """Return text of any origin, escaped as literal Markdown without links."""
    escaped = _MARKUP.sub(r"\\\1", sanitize(value))
    # Some renderers link bare addresses; the scheme is separated to prevent it.
    return re.sub(r"(?i)\b(https?|ftp|www)([:.])", r"\1\\\2", escaped)


def code(value: str) -> str:
    return f"`{sanitize(value).replace('`', '%60').replace('<', '%3C')}`"


def _blocks(blocks: Iterable[Block | Part], level: int) -> Iterator[str]:
    for block in non_empty(blocks):
        match block:
            case Part(title):
                inside = list(_blocks(block.blocks, level + 1))
                head = f"{md(title)}:" if block.folded else f"{'#' * (level + 1)} {md(title)}"
                yield from ("", head) if title and inside else ()
                yield from inside
            case Paragraph(text, role):
                yield from ("", code(text) if role == "code" else md(text))
            case Items(lines, role) if role != "code":
                yield from ("", *(f"- {'warning: ' if role == 'warn' else ''}{md(line)}" for line in lines))
            case Pairs(values):
                yield from ("", *(f"- {md(name)}: {md(value)}" for name, value in values))
            case Table():
                yield from ("", *_table(block))


def _table(table: Table) -> Iterator[str]:
    yield _row(table.titles)
    yield f"|{'|'.join('---' if words else '---:' for words in table.words)}|"
    for row in table.cells():
        yield _row([f"{cell.text} ({cell.note})" if cell.note else cell.text for cell in row])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(md, cells))} |"
