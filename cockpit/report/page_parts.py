"""Parts that all HTML reports are made of: the document, tables, pairs of names and values.

Whatever comes from a recording or profile is text that others wrote: it goes through `text`. Nothing in a page is
fetched or run, and its Content-Security-Policy has browsers see to that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cockpit.analysis.outcome import DIFFERENT, Verdict
from cockpit.analysis.words import method_lines, verdict_line
from cockpit.report.charts import text
from cockpit.report.page_style import STYLE

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
# Columns of text, aligned left; the others hold numbers.
_WORDS = (
    *("row", "load", "change", "host", "outcome", "warnings", "threshold", "found", "text", "figure", "verdict"),
    *("comparison", "variant", "pass", "settings", "target", "actions"),
)

# (anchor, title, inside)
Section = tuple[str, str, str]


def document(title: str, header: str, sections: Sequence[Section]) -> str:
    """Return the whole page; empty sections are left out."""
    kept = [section for section in sections if section[2]]
    links = "".join(f'<a href="#{name}">{title}</a>' for name, title, _ in kept)
    body = "".join(f'<section id="{name}"><h2>{title}</h2>\n{inside}</section>\n' for name, title, inside in kept)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f'<title>{text(title)} · cockpit</title>\n<link rel="icon" href="data:,">\n<style>{STYLE}</style>\n</head>\n'
        f"<body>\n<header>{header}<nav>{links}</nav></header>\n<main>\n{body}</main>\n</body>\n</html>\n"
    )


def verdict_block(verdict: Verdict, inside: str) -> str:
    """Return the verdict in one line, the HTML `inside`, and folded below it how the verdict was found."""
    colour = verdict.outcome if verdict.outcome in DIFFERENT else ""
    how = folded("how it was found", items(method_lines(verdict)))
    return f'<div class="verdict {colour}"><p>{text(verdict_line(verdict))}</p>{inside}{how}</div>\n'


def pairs(names: Iterable[tuple[str, str]]) -> str:
    """Return names with their values; a name of `doubt` marks its value as a warning."""
    lines = []
    for name, value in names:
        role = " class=warn" if name == "warning" else ""
        lines.append(f"<dt>{text(name)}</dt><dd{role}>{text(value)}</dd>")
    return f"<dl>{''.join(lines)}</dl>\n"


def many(number: int, what: str) -> str:
    """Return `1 run`, `2 runs`."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of plain text."""
    lines = []
    for row in rows:
        cells = (f"<td{_class(title)}>{text(cell)}</td>" for title, cell in zip(titles, row, strict=True))
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return f'<div class="scroll"><table>{head(titles)}<tbody>{"".join(lines)}</tbody></table></div>\n'


def head(titles: Sequence[str]) -> str:
    """Return the head of a table."""
    return f"<thead><tr>{''.join(f'<th{_class(title)}>{text(title)}</th>' for title in titles)}</tr></thead>"


def items(lines: Iterable[str], role: str = "") -> str:
    """Return a list of lines of text, empty when there are none."""
    inside = "".join(f"<li>{text(line)}</li>" for line in lines)
    return f"<ul{f' class={role}' if role else ''}>{inside}</ul>\n" if inside else ""


def folded(title: str, inside: str) -> str:
    """Return HTML that a click shows; empty when there is nothing inside."""
    return f"<details><summary>{text(title)}</summary>{inside}</details>\n" if inside else ""


def _class(title: str) -> str:
    return ' class="words"' if title in _WORDS else ""
