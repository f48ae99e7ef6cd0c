"""Parts of all HTML reports: the document, tables, pairs of names and values.

Text from recordings and profiles is untrusted: it goes through `text`. Pages fetch nothing and run nothing, which their
Content-Security-Policy enforces.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files

from cockpit.analysis.verdicts.outcome import DIFFERENT, Verdict
from cockpit.analysis.words.verdicts import method_lines, verdict_line
from cockpit.report.charts import text

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
# Columns of text, aligned left; the others hold numbers.
_WORDS = (
    *("segment", "load", "change", "host", "outcome", "warnings", "threshold", "found", "text", "metric", "verdict"),
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
        f'<title>{text(title)} · cockpit</title>\n<link rel="icon" href="data:,">\n'
        f"<style>\n{_style()}</style>\n</head>\n"
        f"<body>\n<header>{header}<nav>{links}</nav></header>\n<main>\n{body}</main>\n</body>\n</html>\n"
    )


@cache
def _style() -> str:
    return (files("cockpit.report") / "page.css").read_text(encoding="utf-8")


def verdict_block(verdict: Verdict, inside: str) -> str:
    """Return the verdict in one line, the HTML `inside`, and the method, folded."""
    colour = verdict.outcome if verdict.outcome in DIFFERENT else ""
    how = details_element("method", items(method_lines(verdict)))
    return f'<div class="verdict {colour}"><p>{text(verdict_line(verdict))}</p>{inside}{how}</div>\n'


def pairs(values: Iterable[tuple[str, str]], warnings: Iterable[str] = ()) -> str:
    """Return names with their values, then warnings."""
    lines = [f"<dt>{text(name)}</dt><dd>{text(value)}</dd>" for name, value in values]
    lines += [f"<dt>warning</dt><dd class=warn>{text(warning)}</dd>" for warning in warnings]
    return f"<dl>{''.join(lines)}</dl>\n"


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = []
    for row in rows:
        cells = (f"<td{_class(title)}>{text(cell)}</td>" for title, cell in zip(titles, row, strict=True))
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return f'<div class="scroll"><table>{head(titles)}<tbody>{"".join(lines)}</tbody></table></div>\n'


def head(titles: Sequence[str]) -> str:
    return f"<thead><tr>{''.join(f'<th{_class(title)}>{text(title)}</th>' for title in titles)}</tr></thead>"


def items(lines: Iterable[str], role: str = "") -> str:
    inside = "".join(f"<li>{text(line)}</li>" for line in lines)
    return f"<ul{f' class={role}' if role else ''}>{inside}</ul>\n" if inside else ""


def details_element(title: str, inside: str) -> str:
    return f"<details><summary>{text(title)}</summary>{inside}</details>\n" if inside else ""


def _class(title: str) -> str:
    return ' class="words"' if title in _WORDS else ""
