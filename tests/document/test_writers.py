"""The writers of documents: each block as text, Markdown and HTML; nothing of the text acts as markup."""

import re
import struct
import zlib
from base64 import b64decode

from cockpit.document.html import to_html
from cockpit.document.markdown import to_markdown
from cockpit.document.model import (
    Cell,
    Document,
    Dot,
    Heat,
    Items,
    Marks,
    Pairs,
    Paragraph,
    Part,
    Plot,
    PlotSeries,
    Table,
)
from cockpit.document.scale import Axis, decades, from_zero
from cockpit.document.text import to_text
from tests.report.test_page import EVIL, assert_escaped, outline

ROWS = [("few", "1.2k", Cell("better", "good", "n = 2")), ("more", "–", "worse")]
TABLE = Table(("variant", "req/s", "verdict"), ROWS)
SECONDS = Axis(0.0, 4.0, ((0.0, "0 s"), (4.0, "4 s")))
TIME = Plot(
    kind="time",
    title="rate",
    x=SECONDS,
    y=from_zero(8.0),
    series=[PlotSeries("few", [(0.0, 1.0), (1.0, 8.0), (2.0, None), (3.0, 4.0)])],
)
LEVELS = Plot(
    kind="values",
    title="ms by c",
    x=Axis(1.0, 64.0, ((1.0, "1"), (64.0, "64")), log=True),
    y=decades(1.0, 100.0, "{:g}".format),
    series=[PlotSeries("few", [(1.0, 2.5), (64.0, 50.0)]), PlotSeries("", [(1.0, 2.0)], dots=True)],
)
REPORT = Document(
    "report",
    [Paragraph("Why?", "question"), Pairs([("a", "1"), ("long", "2")])],
    [
        Part("Results", [TABLE, Items(["one", "two"], title="method"), Items(["slow"], "warn")]),
        Part("Plots", [TIME, LEVELS]),
        Part("Empty", [Items([]), Part("", [Paragraph("")])]),
    ],
)


def test_text_has_aligned_columns_and_plots() -> None:
    assert to_text(REPORT) == (
        "report\n  Why?\n  a     1\n  long  2\n\n"
        "Results\n  variant  req/s  verdict\n  few       1.2k  better (n = 2)\n  more         –  worse\n"
        "    one\n    two\n  ! slow\n\n"
        "Plots\n  rate\n  few                           ▂█ ▅  1 to 8\n                                0 s 4 s\n"
        "  ms by c    1  64\n  few      2.5  50"
    )
    painted = to_text(REPORT, lambda text, role: f"<{role}>{text}</>" if role else text)
    assert "<good>better (n = 2)</>" in painted and "! <warn>slow</>" in painted
    failed = Document("x", [], alert="FAILED: no response")
    assert to_text(failed) == "FAILED: no response\nx" and to_markdown(failed).startswith(
        "**FAILED: no response**\n\n# x"
    )


def test_tables_of_a_part_have_common_widths() -> None:
    text = to_text(Document("", [], [Part("web1", [Table(("%", "user"), [("cpu", "7")]), TABLE])]))
    assert text.splitlines()[1:3] == ["  %                  user", "  cpu                   7"]


def test_markdown_leaves_out_plots_and_empty_parts() -> None:
    assert to_markdown(REPORT) == (
        "# report\n\nWhy?\n\n- a: 1\n- long: 2\n\n## Results\n\n"
        "| variant | req/s | verdict |\n|---|---:|---|\n| few | 1.2k | better (n = 2) |\n| more | – | worse |\n\n"
        "- one\n- two\n\n- warning: slow\n"
    )
    assert to_markdown(REPORT, level=3).startswith("### report\n") and "#### Results" in to_markdown(REPORT, level=3)


def test_html_has_anchors_and_drawings() -> None:
    html = to_html(REPORT)
    outline(html)
    assert re.findall(r'<a href="#(\w+)">', html) == re.findall(r'<section id="(\w+)">', html) == ["results", "plots"]
    assert '<span class="good">better</span> <small>n = 2</small>' in html
    assert "<summary>method</summary><ul><li>one</li>" in html
    assert html.count("<figure") == 2 and html.count('<div class="charts">') == 1
    marks = [Marks([Dot(1.0, "first"), Dot(3.0, pale=True)], reference=2.0), Marks()]
    drawn = to_html(Document("x", [Table(TABLE.titles, TABLE.rows, SECONDS, marks)]))
    assert re.findall(r'point( pale)?" d="M([\d.]+)', drawn) == [("", "250"), (" pale", "750")]
    assert 'class="forest dots"' in drawn and "<title>first</title>" in drawn


def test_heat_map_is_an_image_with_the_highest_bucket_on_top() -> None:
    heat = Heat([b"\x01\x02\x03", b"\x04\x05\x06"], 1.0, 100.0)
    html = to_html(Document("x", [Plot(kind="time", title="t", x=SECONDS, y=LEVELS.y, heat=heat)]))
    (image,) = re.findall(r"data:image/png;base64,([^\"]+)", html)
    content = b64decode(image)
    assert struct.unpack(">II", content[16:24]) == (3, 2)
    start = content.index(b"IDAT")
    (size,) = struct.unpack(">I", content[start - 4 : start])
    assert zlib.decompress(content[start + 4 : start + 4 + size]) == b"\0\x04\x05\x06\0\x01\x02\x03"


def test_hostile_text_is_harmless_in_each_block() -> None:
    marks = [Marks([Dot(1.0, EVIL)])]
    plot = Plot(kind="time", title=EVIL, x=SECONDS, y=TIME.y, series=[PlotSeries(EVIL, [(0.0, 1.0), (1.0, 2.0)])])
    blocks = (
        *(Paragraph(EVIL), Paragraph(EVIL, "code"), Items([EVIL], title=EVIL), Items([EVIL], "code")),
        *(Pairs([(EVIL, EVIL)]), Table((EVIL,), [(Cell(EVIL, note=EVIL),)], SECONDS, marks), plot),
    )
    report = Document(EVIL, blocks, [Part(EVIL, blocks), Part("x", [Part(EVIL, blocks, folded=True)])], alert=EVIL)
    assert_escaped(to_html(report))
    text = to_text(report)
    assert all(char.isprintable() or char == "\n" for char in text)
    markdown = re.sub(r"^`[^`\n]*`$", "", to_markdown(report), flags=re.MULTILINE)
    assert not re.search(r"(?<!\\)<|(?<!\\)\]\(", markdown)
