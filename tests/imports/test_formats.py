"""Results of other load generators, as their documentation and their own runs show them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cockpit.imports.formats import FORMATS, ForeignRequest, format_of

URL = "http://web1/a"
# By tool: a file, and its requests.
FILES: dict[str, tuple[str, list[ForeignRequest]]] = {
    "ab -g": (
        "starttime\tseconds\tctime\tdtime\tttime\twait\n"
        "Mon Nov 23 21:39:26 2026\t1795469966\t0\t12\t13\t11\n",
        [ForeignRequest(1795469966.0, 0.013)],
    ),
    "hey -o csv": (
        "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset\n"
        "0.0012,0.0002,0.0000,0.0000,0.0008,0.0001,503,0.25\n",
        [ForeignRequest(0.25, 0.0012, 503)],
    ),
    "oha --output-format csv": (
        "request-start,DNS,DNS+dialup,Response-delay,request-duration,bytes,status\n"
        "0.5,0,0.0001,0.002,0.0025,612,200\n",
        [ForeignRequest(0.5, 0.0025, 200, 612)],
    ),
    "JMeter JTL (CSV)": (
        "timeStamp,elapsed,label,responseCode,responseMessage,threadName,dataType,success,failureMessage,bytes,"
        "sentBytes,grpThreads,allThreads,URL,Latency,IdleTime,Connect\n"
        f"1795469966500,120,home,200,OK,T 1-1,text,true,,1024,110,1,1,{URL},119,0,2\n"
        f"1795469966600,30,home,Non HTTP response code: java.net.SocketTimeoutException,Read timed out: timeout,T 1-1,"
        f"text,false,,0,0,1,1,{URL},0,0,2\n",
        [
            ForeignRequest(1795469966.5, 0.12, 200, 1024, "", URL),
            ForeignRequest(1795469966.6, 0.03, 0, 0, "timeout", URL),
        ],
    ),
    "k6 --out csv": (
        "metric_name,timestamp,metric_value,check,error,error_code,group,method,name,proto,scenario,status,subproto,"
        "tls_version,url,extra_tags\n"
        f"http_reqs,1795469966,1.000000,,,,,GET,{URL},HTTP/1.1,default,200,,,{URL},\n"
        f"http_req_duration,1795469966,250.000000,,,,,GET,{URL},HTTP/1.1,default,200,,,{URL},\n"
        f"http_req_duration,1795469967500,500.000000,,dial: connection refused,1212,,GET,{URL},,default,0,,,{URL},\n",
        [
            ForeignRequest(1795469965.75, 0.25, 200, 0, "", URL),
            ForeignRequest(1795469967.0, 0.5, 0, 0, "refused", URL),
        ],
    ),
    "k6 --out json": (
        '{"type":"Metric","data":{"name":"http_req_duration","type":"trend"},"metric":"http_req_duration"}\n'
        '{"type":"Point","data":{"time":"2026-11-23T21:39:26.250000000Z","value":250,"tags":{"status":"200",'
        f'"url":"{URL}"' '}},"metric":"http_req_duration"}\n'
        '{"type":"Point","data":{"time":"2026-11-23T21:39:26Z","value":1,"tags":{}},"metric":"http_reqs"}\n',
        [ForeignRequest(1795469966.0, 0.25, 200, 0, "", URL)],
    ),
    "vegeta encode --to json": (
        '{"attack":"","seq":0,"code":200,"timestamp":"2026-11-23T22:39:26.500000001+01:00","latency":2000000,'
        f'"bytes_out":0,"bytes_in":612,"error":"","body":null,"method":"GET","url":"{URL}","headers":null' "}\n"
        '{"attack":"","seq":1,"code":0,"timestamp":"2026-11-23T21:39:26.5Z","latency":30000000000,"bytes_out":0,'
        f'"bytes_in":0,"error":"context deadline exceeded","body":null,"method":"GET","url":"{URL}"' "}\n",
        [
            ForeignRequest(1795469966.500000001, 0.002, 200, 612, "", URL),
            ForeignRequest(1795469966.5, 30.0, 0, 0, "timeout", URL),
        ],
    ),
    "vegeta encode --to csv": (
        f"1795469966500000000,200,2000000,0,612,,aGk=,,0,GET,{URL},\n"
        f'1795469966600000000,0,1000,0,0,"read: connection reset by peer",,,1,GET,{URL},\n',
        [
            ForeignRequest(1795469966.5, 0.002, 200, 612, "", URL),
            ForeignRequest(1795469966.6, 1e-6, 0, 0, "reset", URL),
        ],
    ),
    "h2load --log-file": (
        "1795469966500000\t200\t595\n1795469966600000\t-1\t156\n",
        [ForeignRequest(1795469966.5, 595e-6, 200), ForeignRequest(1795469966.6, 156e-6, 0, 0, "other")],
    ),
}  # fmt: skip


def lines(text: str) -> Iterator[str]:
    return iter(text.splitlines(keepends=True))


def test_every_format_has_an_example() -> None:
    assert [each.tool for each in FORMATS] == list(FILES)


@pytest.mark.parametrize("tool", FILES)
def test_requests_of_a_tool(tool: str) -> None:
    text, expected = FILES[tool]
    form = format_of(text.splitlines()[0])
    assert form.tool == tool
    found = list(form.read(lines(text)))
    for ours, theirs in zip(found, expected, strict=True):
        assert ours[2:] == theirs[2:]
        assert ours.start == pytest.approx(theirs.start, abs=1e-6) and ours.seconds == pytest.approx(theirs.seconds)


@pytest.mark.parametrize("tool", FILES)
def test_a_line_that_does_not_fit_is_named(tool: str) -> None:
    text, _ = FILES[tool]
    form = format_of(text.splitlines()[0])
    for broken in (
        "x\n",
        "{}\n",
        "[1]\n",
        "1e999" + "\t1e999" * 20 + "\n",
        "-1" + ",-1" * 20 + "\n",
        '"\n',
        "[" * 5000 + "\n",
    ):
        rest = lines(text + broken)
        # A metric of another name is no request.
        try:
            assert len(list(form.read(rest))) == len(FILES[tool][1]), broken
        except ValueError as error:
            assert str(error).startswith("line "), broken


@pytest.mark.parametrize(
    ("first", "said"),
    [
        ("This is ApacheBench, Version 2.3", "repeat it with ab -g FILE"),
        ("starting benchmark...", "repeat it with h2load --log-file=FILE"),
        ("Summary:", "repeat it with hey -o csv, or oha"),
        ('{"metrics": {', "of k6 repeat it with --out csv=FILE"),
        (
            "Linux 6.1.0 (web1) \t11/24/26 \t_x86_64_\t(2 CPU)",
            "a file of sysstat, but not as JSON; write it with sadf -j",
        ),
        (b"\x96\xd5u!".decode(errors="replace"), "a file of sysstat, but not as JSON; write it with sadf -j"),
        ("", "unknown format; known are, one line per request: ab -g, hey"),
        ("\x00\x01", "unknown format"),
    ],
)
def test_what_is_no_list_of_requests_is_refused_with_the_way_out(first: str, said: str) -> None:
    with pytest.raises(ValueError, match=said.replace("(", r"\(")):
        format_of(first)
