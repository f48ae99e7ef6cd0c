"""Lines of other load generators as requests, by the examples in `formats.toml`."""

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from cockpit.imports.formats import FORMATS, ForeignRequest
from cockpit.imports.known_formats import format_of

FILES: dict[str, tuple[str, list[ForeignRequest]]] = {
    one["tool"]: (one["text"], [ForeignRequest(*fields) for fields in one["requests"]])
    for one in tomllib.loads(Path(__file__).with_name("formats.toml").read_text())["format"]
}
BROKEN = ("x", "{}", "[1]", "1e999" + "\t1e999" * 20, "-1" + ",-1" * 20, '"', "[" * 5000)


def lines(text: str) -> Iterator[str]:
    return iter(text.splitlines(keepends=True))


def test_every_format_has_an_example() -> None:
    assert [each.tool for each in FORMATS] == list(FILES)


@pytest.mark.parametrize("tool", FILES)
def test_requests_of_a_tool_are_read_and_a_line_that_does_not_fit_is_named(tool: str) -> None:
    text, expected = FILES[tool]
    form = format_of(text.splitlines()[0])
    assert form.tool == tool
    found = list(form.read(lines(text)))
    for ours, theirs in zip(found, expected, strict=True):
        assert ours[2:] == theirs[2:]
        assert ours.start == pytest.approx(theirs.start, abs=1e-6) and ours.seconds == pytest.approx(theirs.seconds)
    for broken in BROKEN:
        # A metric of another name is no request.
        try:
            assert len(list(form.read(lines(f"{text}{broken}\n")))) == len(expected), broken
        except ValueError as error:
            assert str(error).startswith("line "), broken


@pytest.mark.parametrize(
    ("columns", "parts"),
    [
        ("timeStamp,elapsed,label,responseCode", ("100,50,a-0,302", "150,80,a-1,200", "150,80,a-1-0,200")),
        # With subresults.disable_renaming.
        ("timeStamp,elapsed,label,responseCode,threadName", ("100,50,http://b/,302,T 1", "150,80,http://c/,200,T 1")),
    ],
)
def test_parts_of_a_sample_of_jmeter_are_no_requests(columns: str, parts: tuple[str, ...]) -> None:
    thread = ",T 1" if "threadName" in columns else ""
    rows = (f"100,130,a,200{thread}", *parts, f"230,5,a-b,200{thread}", f"230,0,a,200{thread.replace('1', '2')}")
    text = "\n".join((columns, *rows))
    found = format_of(columns).read(lines(text))
    assert [(round(1000 * one.start), round(1000 * one.seconds)) for one in found] == [(100, 130), (230, 5), (230, 0)]


def test_what_is_no_list_of_requests_is_refused_with_the_way_out() -> None:
    for first, said in (
        ("This is ApacheBench, Version 2.3", "rerun it with ab -g FILE"),
        ("starting benchmark...", "rerun it with h2load --log-file=FILE"),
        ("Summary:", "rerun it with hey -o csv, or oha"),
        ('{"metrics": {', "rerun k6 with --out csv=FILE"),
        (
            "Linux 6.1.0 (web1) \t11/24/26 \t_x86_64_\t(2 CPU)",
            "a sysstat file that is not JSON; convert it with sadf -j",
        ),
        (b"\x96\xd5u!".decode(errors="replace"), "a sysstat file that is not JSON; convert it with sadf -j"),
        ("", "unknown format; supported with one line per request: ab -g, hey"),
        ("\x00\x01", "unknown format"),
    ):
        with pytest.raises(ValueError, match=said.replace("(", r"\(")):
            format_of(first)
