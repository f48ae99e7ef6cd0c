"""Lines that other load generators wrote, with another URL: ab 2.3, hey 0.1.4, oha 1.16.0, JMeter 5.6.3, k6 1.8.1,
vegeta 12.13.0 and h2load 1.52.0."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cockpit.imports.formats import FORMATS, ForeignRequest, format_of

URL = "http://web1/a"
# By tool: a file, and its requests.
FILES: dict[str, tuple[str, list[ForeignRequest]]] = {
    "ab -g": (
        "starttime\tseconds\tctime\tdtime\tttime\twait\n"
        "Thu Nov 26 06:15:08 2026\t1795673708\t0\t5\t6\t5\n",
        [ForeignRequest(1795673708.0, 0.006)],
    ),
    "hey -o csv": (
        "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset\n"
        "0.0326,0.0003,0.0000,0.0003,0.0320,0.0000,503,0.0451",
        [ForeignRequest(0.0451, 0.0326, 503)],
    ),
    "oha --output-format csv": (
        "request-start,DNS,DNS+dialup,Response-delay,request-duration,bytes,status\n"
        "0.037003036,0.000255709,0.000583944,0.010344397,0.010350007,22,503\n",
        [ForeignRequest(0.037003036, 0.010350007, 503, 22)],
    ),
    "JMeter JTL (CSV)": (
        "timeStamp,elapsed,label,responseCode,responseMessage,threadName,dataType,success,failureMessage,bytes,"
        "sentBytes,grpThreads,allThreads,URL,Latency,IdleTime,Connect\n"
        f"1795644948727,297,mixed,200,OK,users 1-4,text,true,,237,241,1,1,{URL},84,0,0\n"
        f"1795644948727,84,mixed-0,302,Found,users 1-4,text,true,,80,123,1,1,{URL},84,0,0\n"
        f"1795644948813,211,mixed-1,200,OK,users 1-4,text,true,,157,118,1,1,{URL},211,0,0\n"
        "1795644949025,51,checked,200,OK,users 1-4,text,false,Test failed: text expected to contain /y/,157,118,1,1,"
        f"{URL},51,0,0\n"
        "1795644949077,27,refused,Non HTTP response code: org.apache.http.conn.HttpHostConnectException,Non HTTP "
        "response message: Connect to 127.0.0.1:18077 [/127.0.0.1] failed: Connection refused,users 1-4,text,false,,"
        f"2546,0,1,1,{URL},0,0,27\n"
        '1795644949025,78,visit,,"Number of samples in transaction : 2, number of failing samples : 2",users 1-4,,'
        "false,,2703,118,1,1,null,51,0,27\n"
        "1795644949117,29,mixed,Non HTTP response code: org.apache.http.NoHttpResponseException,Non HTTP response "
        f"message: 127.0.0.1:18080 failed to respond,users 1-4,text,false,,2068,0,1,1,{URL},0,0,0\n",
        [
            ForeignRequest(1795644948.727, 0.297, 200, 237, "", URL, True),
            ForeignRequest(1795644949.025, 0.051, 200, 157, "", URL, False),
            ForeignRequest(1795644949.077, 0.027, 0, 0, "refused", URL, False),
            ForeignRequest(1795644949.117, 0.029, 0, 0, "closed_before_response", URL, False),
        ],
    ),
    "k6 --out csv": (
        "metric_name,timestamp,metric_value,check,error,error_code,expected_response,group,method,name,proto,scenario,"
        "service,status,subproto,tls_version,url,extra_tags,metadata\n"
        f"http_reqs,1795645718,1.000000,,,,true,,GET,{URL},HTTP/1.1,default,,200,,,{URL},,\n"
        f"http_req_duration,1795645718,24.552229,,,,true,,GET,{URL},HTTP/1.1,default,,200,,,{URL},,\n"
        f"http_req_duration,1795645718,35.114033,,,1503,false,,GET,{URL},HTTP/1.1,default,,503,,,{URL},,\n"
        "http_req_duration,1795645719500,1000.242557,,request timeout,1050,false,,"
        f"GET,{URL},,default,,0,,,{URL},,\n",
        [
            ForeignRequest(1795645717.975448, 0.024552229, 200, 0, "", URL, True),
            ForeignRequest(1795645717.964886, 0.035114033, 503, 0, "", URL, False),
            ForeignRequest(1795645718.499757, 1.000242557, 0, 0, "timeout", URL, False),
        ],
    ),
    "k6 --out json": (
        '{"type":"Metric","data":{"name":"http_req_duration","type":"trend","contains":"time","thresholds":[],'
        '"submetrics":[]},"metric":"http_req_duration"}\n'
        '{"metric":"http_req_duration","type":"Point","data":{"time":"2026-11-25T22:28:38.417723737Z","value":24.552229,'
        f'"tags":{{"expected_response":"true","group":"","method":"GET","name":"{URL}","status":"200","url":"{URL}"'
        "}}}\n"
        '{"metric":"http_req_duration","type":"Point","data":{"time":"2026-11-25T22:28:38.5Z","value":0,"tags":{'
        f'"error":"dial: connection refused","error_code":"1212","expected_response":"false","status":"0","url":"{URL}"'
        "}}}\n"
        '{"metric":"http_reqs","type":"Point","data":{"time":"2026-11-25T22:28:38.417723737Z","value":1,"tags":{}}}\n',
        [
            ForeignRequest(1795645718.393171508, 0.024552229, 200, 0, "", URL, True),
            ForeignRequest(1795645718.5, 0.0, 0, 0, "refused", URL, False),
        ],
    ),
    "vegeta encode --to json": (
        '{"attack":"","seq":2,"code":503,"timestamp":"2026-11-26T06:15:05.890554788Z","latency":23703247,"bytes_out":0,'
        '"bytes_in":22,"error":"503 Service Unavailable","body":"eHh4eHh4eHh4eHh4eHh4eHh4eHh4eA==","method":"GET",'
        f'"url":"{URL}","headers":{{"Content-Length":["22"],"Content-Type":["text/plain"]}}}}\n'
        '{"attack":"","seq":36,"code":0,"timestamp":"2026-11-26T06:15:06.740804259Z","latency":1001325257,"bytes_out":0,'
        f'"bytes_in":0,"error":"Get \\"{URL}\\": context deadline exceeded (Client.Timeout exceeded while awaiting '
        f'headers)","body":null,"method":"GET","url":"{URL}","headers":null}}\n',
        [
            ForeignRequest(1795673705.890554788, 0.023703247, 503, 22, "", URL),
            ForeignRequest(1795673706.740804259, 1.001325257, 0, 0, "timeout", URL),
        ],
    ),
    "vegeta encode --to csv": (
        "1795673705890554788,503,23703247,0,22,503 Service Unavailable,eHh4eHh4eHh4eHh4eHh4eHh4eHh4eA==,,2,GET,"
        f"{URL},Q29udGVudC1MZW5ndGg6IDIyDQpDb250ZW50LVR5cGU6IHRleHQvcGxhaW4NCg0K\n"
        f'1795673706740804259,0,1001325257,0,0,"Get ""{URL}"": context deadline exceeded (Client.Timeout exceeded '
        f'while awaiting headers)",,,36,GET,{URL},\n',
        [
            ForeignRequest(1795673705.890554788, 0.023703247, 503, 22, "", URL),
            ForeignRequest(1795673706.740804259, 1.001325257, 0, 0, "timeout", URL),
        ],
    ),
    "h2load --log-file": (
        "1795673693971529\t200\t11641\n1795673694066768\t-1\t28443\n",
        [ForeignRequest(1795673693.971529, 0.011641, 200), ForeignRequest(1795673694.066768, 0.028443, 0, 0, "other")],
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
        rest = lines(f"{text.rstrip()}\n{broken}")
        # A metric of another name is no request.
        try:
            assert len(list(form.read(rest))) == len(FILES[tool][1]), broken
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


@pytest.mark.parametrize(
    ("first", "said"),
    [
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
    ],
)
def test_what_is_no_list_of_requests_is_refused_with_the_way_out(first: str, said: str) -> None:
    with pytest.raises(ValueError, match=said.replace("(", r"\(")):
        format_of(first)
