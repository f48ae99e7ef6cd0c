"""Results as people have them: other delimiters, titles and encodings, and lines before the results."""

import re
from pathlib import Path

import pytest

from tests.commands import cockpit
from tests.data import data_of

DATA = data_of(__file__)

TITLES = "timeStamp,elapsed,label,responseCode,responseMessage,threadName,dataType,success,bytes,URL"
ROWS = "".join(f"17663622851{n}5,{100 + n},GET /a,200,OK,T 1-1,text,true,468,http://web1/a\n" for n in range(5))
JTL = f"{TITLES}\n{ROWS}"
WRK = DATA["wrk"]


SAMPLE = '<httpSample t="1{n}" lt="9" ts="17663622851{n}5" s="true" lb="GET /a" rc="200" rm="OK" tn="T 1-1" by="468"'
# Five requests: two in a transaction, one with a redirect, and two alone; the file is cut off.
XML = "".join(
    (
        '<?xml version="1.0" encoding="UTF-8"?>\n<testResults version="1.2">\n',
        '<sample t="9" ts="1766362285105" s="true" lb="visit" rc="" tn="T 1-1"',
        ' rm="Number of samples in transaction : 2, number of failing samples : 0">\n',
        *(f"{SAMPLE.format(n=n)}>\n<java.net.URL>http://web1/a</java.net.URL>\n</httpSample>\n" for n in (1, 2)),
        "</sample>\n",
        f"{SAMPLE.format(n=3)}>\n  {SAMPLE.format(n=3)}/>\n  <responseData>&lt;a&gt;</responseData></httpSample>\n",
        *(f"{SAMPLE.format(n=n)}/>\n" for n in (5, 7)),
        f"{SAMPLE.format(n=9)}>\n",
    )
)


def swapped(text: str) -> str:
    """The first two columns the other way round."""
    return "".join(",".join((b, a, rest)) for a, b, rest in (line.split(",", 2) for line in text.splitlines(True)))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (JTL.replace(",", ";"), "JMeter JTL (CSV)"),
        (JTL.replace(",", "\t"), "JMeter JTL (CSV)"),
        (swapped(JTL), "JMeter JTL (CSV)"),
        (ROWS, "JMeter JTL (CSV)"),
        (XML, "JMeter JTL (XML)"),
        (JTL.replace("17663622851", "2025/12/22 00:11:25."), "JMeter JTL (CSV)"),
        (re.sub(r"17663622851(\d)5", r"2025-12-22T01:11:25.1\1+01:00", JTL), "JMeter JTL (CSV)"),
        (f"\ufeff{JTL}", "JMeter JTL (CSV)"),
        (f"\n$ cat results.jtl\n{JTL}", "JMeter JTL (CSV)"),
        (f"# wrk -t12 -c400 -d30s http://127.0.0.1:8080/index.html\n\nset up by a script\n{WRK}", "summary of wrk"),
        (f"\ufeff{WRK}", "summary of wrk"),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_the_content_decides(content: str, said: str, encoding: str, tmp_path: Path) -> None:
    (tmp_path / "results").write_text(content.removeprefix("\ufeff") if encoding == "utf-16" else content, encoding)
    done = cockpit("import", "results", "-o", "x.cockpit", cwd=tmp_path)
    assert (done.returncode, done.stderr.splitlines()[0]) == (0, f"results: {said}")
    requests = "22464657" if "wrk" in said else "5"
    assert f"completed{requests}" in cockpit("report", "x.cockpit", cwd=tmp_path).stdout.replace(" ", "")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        *DATA["what_is_missing_is_named"],
        (JTL.replace("17663622851", "22.12.2025 00:11:25."), "set jmeter.save.saveservice.timestamp_format=ms"),
        ("<testResults>\n" + "<sample>\n" * 65, "line 66: samples are nested too deeply"),
        (f"a prompt\n{JTL}x\n", "after 1 other lines: line 7: "),
    ],
)
def test_what_is_missing_is_named(content: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "results").write_text(content)
    done = cockpit("import", "results", "-o", "x.cockpit", cwd=tmp_path)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
