"""Parts that all HTML reports are made of: the document, tables, pairs of names and values.

Whatever comes from a recording or profile is text that others wrote: it goes through `text`. Nothing in a page is
fetched or run, and its Content-Security-Policy has browsers see to that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cockpit.analysis.outcome import DIFFERENT, Verdict
from cockpit.analysis.words import method_lines, verdict_line
from cockpit.report.charts import text

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
# Columns of text, aligned left; the others hold numbers.
_WORDS = (
    *("row", "load", "change", "host", "outcome", "warnings", "threshold", "found", "text", "metric", "verdict"),
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


def folded(title: str, inside: str) -> str:
    return f"<details><summary>{text(title)}</summary>{inside}</details>\n" if inside else ""


def _class(title: str) -> str:
    return ' class="words"' if title in _WORDS else ""


STYLE = """
:root { color-scheme: light dark;
  --page: #ffffff; --text: #1c2430; --soft: #5d6878; --rule: #d9dee6; --band: #f0f3f7; --panel: #f7f9fb;
  --c0: #1f6fb8; --c1: #c2570c; --c2: #23845a; --c3: #8e44ad; --c4: #8a6d00; --c5: #00798a;
  --c6: #b3304a; --c7: #5f6672; --good: #1f6fb8; --bad: #c2410c; --warn: #9a5b00; }
@media (prefers-color-scheme: dark) { :root {
  --page: #12161c; --text: #d9dde4; --soft: #97a1ae; --rule: #333c48; --band: #1a212b; --panel: #181e26;
  --c0: #5aa9e6; --c1: #f0934b; --c2: #56bd8d; --c3: #c58fe0; --c4: #d1b24a; --c5: #4fc1d0;
  --c6: #ef7f94; --c7: #a3abb8; --good: #5aa9e6; --bad: #ff8c42; --warn: #e6a54a; } }
* { box-sizing: border-box; }
html { background: var(--page); color: var(--text); -webkit-text-size-adjust: 100%;
  font: 15px/1.45 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", sans-serif; }
body { max-width: 76rem; margin: 0 auto; padding: 1.2rem 1.4rem 3rem; }
h1 { font-size: 1.55rem; line-height: 1.2; margin: 0 0 .2rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .7rem; padding-bottom: .25rem; border-bottom: 1px solid var(--rule); }
h3 { font-size: 1rem; margin: 1.3rem 0 .4rem; overflow-wrap: anywhere; }
p { margin: .3rem 0; overflow-wrap: anywhere; }
code, .mono { font: .87em/1.4 ui-monospace, "SFMono-Regular", Menlo, Consolas, "DejaVu Sans Mono", monospace;
  overflow-wrap: anywhere; }
pre { white-space: pre-wrap; margin: .3rem 0; }
.soft, small { color: var(--soft); }
.question { font-size: 1.05rem; }
.good { color: var(--good); font-weight: 600; } .bad { color: var(--bad); font-weight: 600; }
.warn { color: var(--warn); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(8.2rem, 1fr)); gap: .6rem; margin: 1rem 0; }
.tiles div { background: var(--panel); border: 1px solid var(--rule); border-radius: .4rem; padding: .5rem .7rem; }
.tiles b { display: block; font-size: 1.25rem; font-variant-numeric: tabular-nums; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(27rem, 100%), 1fr)); gap: .4rem 1.6rem; }
.charts > * { min-width: 0; }
figure.chart { margin: 0; padding-bottom: .7rem; break-inside: avoid; }
figcaption { font-size: .88rem; font-weight: 600; margin-bottom: .35rem; overflow-wrap: anywhere; }
.key { font-weight: 400; color: var(--soft); margin-left: .9em; white-space: nowrap; }
.key::before { content: ""; display: inline-block; width: .8em; height: .8em; margin-right: .35em; border-radius: .15em;
  background: var(--own); vertical-align: -.05em; }
.plot { position: relative; height: 9rem; margin: 0 .6rem 1.5rem 3.4rem; }
.plot.tall { height: 13rem; }
.plot.signed { margin-top: 1.25rem; }
.plot svg { position: absolute; inset: 0; width: 100%; height: 100%; overflow: visible; }
.plot span { position: absolute; font-size: .74rem; line-height: 1; color: var(--soft); white-space: nowrap;
  font-variant-numeric: tabular-nums; }
.plot .y { right: 100%; margin-right: .45rem; transform: translateY(50%); }
.plot .x { top: 100%; margin-top: .4rem; transform: translateX(-50%); }
.plot .x.first { transform: none; } .plot .x.last { transform: translateX(-100%); }
.plot .row { top: 0; margin: .2rem 0 0 .25rem; opacity: .9; }
.plot .letter { bottom: 100%; margin-bottom: .12rem; transform: translateX(-50%); font-weight: 700; color: var(--c1); }
.plot .letter.note { color: var(--c3); } .plot .letter.trouble { color: var(--c6); }
.c0 { --own: var(--c0); } .c1 { --own: var(--c1); } .c2 { --own: var(--c2); } .c3 { --own: var(--c3); }
.c4 { --own: var(--c4); } .c5 { --own: var(--c5); } .c6 { --own: var(--c6); } .c7 { --own: var(--c7); }
svg .s { fill: none; stroke: var(--own); stroke-width: 1.6px; stroke-linejoin: round; stroke-linecap: round;
  vector-effect: non-scaling-stroke; }
svg .dot { stroke-width: 5px; }
svg .f { fill: var(--own); fill-opacity: .28; stroke: none; }
svg .grid { fill: none; stroke: var(--rule); stroke-width: 1px; vector-effect: non-scaling-stroke; opacity: .8; }
svg .band { fill: var(--band); }
svg .sign { fill: none; stroke: var(--c1); stroke-width: 1.2px; stroke-dasharray: 4 3;
  vector-effect: non-scaling-stroke; }
svg .sign.note { stroke: var(--c3); } svg .sign.trouble { stroke: var(--c6); }
svg .heat { image-rendering: pixelated; }
.scroll { overflow-x: auto; max-width: 100%; }
table { border-collapse: collapse; font-size: .87rem; margin: .4rem 0 .8rem; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .22rem .7rem .22rem 0; border-bottom: 1px solid var(--rule); vertical-align: top; }
th { color: var(--soft); font-weight: 600; }
th:last-child, td:last-child { padding-right: 0; }
td:first-child, th:first-child, td.words, th.words { text-align: left; }
td.words { overflow-wrap: break-word; max-width: 34rem; } td.long { min-width: 11rem; }
td.nowrap { white-space: nowrap; }
ul { margin: .3rem 0; padding-left: 1.2rem; } li { overflow-wrap: anywhere; }
details { margin: .3rem 0 .8rem; } summary { cursor: pointer; color: var(--soft); }
.interval { width: 22rem; min-width: 12rem; } .interval, .interval:last-child { padding: 0; }
.interval div { position: relative; height: 1.9rem; margin: 0 1.2rem; } th.interval div { height: 1.2rem; }
.interval svg { position: absolute; inset: 0; width: 100%; height: 100%; overflow: visible; }
.interval span { position: absolute; bottom: .25rem; transform: translateX(-50%); font-weight: 400; font-size: .74rem;
  white-space: nowrap; }
svg .point { stroke-width: 8px; } svg .pale { opacity: .4; }
svg .zero { stroke: var(--soft); stroke-width: 1px; fill: none; vector-effect: non-scaling-stroke; }
table.forest { width: 100%; } table.forest td { vertical-align: middle; } .dots .interval { width: 70%; }
tr.control td { color: var(--soft); } .tag { border: 1px solid var(--rule); border-radius: .3rem; padding: 0 .3rem; }
.verdict { border-left: .25rem solid var(--rule); padding-left: .8rem; margin: .8rem 0; break-inside: avoid; }
.verdict.better { border-color: var(--good); } .verdict.worse { border-color: var(--bad); }
nav { display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; margin: .8rem 0 0; font-size: .9rem; }
nav a { color: var(--good); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1.2rem; margin: .4rem 0; font-size: .9rem; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
@media (max-width: 40rem) {
  html { font-size: 14px; } body { padding: .8rem .8rem 2rem; }
  .plot { margin-left: 2.9rem; margin-right: .3rem; } .plot.tall { height: 11rem; }
  dl { grid-template-columns: 1fr; gap: 0; } dd { margin-bottom: .35rem; }
  table.forest, .forest thead, .forest tbody { display: block; } .forest th:not(.interval) { display: none; }
  .forest tr { display: flex; flex-wrap: wrap; gap: 0 .8rem; padding: .3rem 0; border-bottom: 1px solid var(--rule); }
  .forest td, .forest th { border: 0; padding: 0; } .forest td.name { width: 100%; font-weight: 600; }
  .forest .interval, .dots .interval { width: 100%; }
}
@media print {
  :root { --page: #fff; --text: #000; --soft: #444; --rule: #bbb; --band: #f0f3f7; --panel: #fff; --c0: #1f6fb8;
    --c1: #c2570c; --c2: #23845a; --c3: #8e44ad; --c4: #8a6d00; --c5: #00798a; --c6: #b3304a; --c7: #5f6672;
    --good: #1f6fb8; --bad: #c2410c; --warn: #9a5b00; }
  html { font-size: 11px; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  body { max-width: none; padding: 0; } nav { display: none; } h2 { break-after: avoid; }
  .charts { grid-template-columns: 1fr 1fr; } .scroll { overflow: visible; }
}
"""
