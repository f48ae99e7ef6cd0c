"""Formats of access logs: requests of lines, and awk's counts of the same lines."""

import subprocess
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.model.errors import UsageError
from cockpit.traffic import program
from cockpit.traffic.counts import TrafficCounts
from cockpit.traffic.log_format import PRESETS, LogFormat, likely_format, match_line, parse_format
from tests.data import data_of
from tests.waiting import programs

DATA = data_of(__file__)
_MARK = "\001mark "
_AWKS = programs("awk", "mawk -W interactive", "gawk", "busybox awk")


@pytest.mark.parametrize("case", DATA["match"], ids=lambda case: case["format"][:20])
def test_request_of_line(case: dict[str, Any]) -> None:
    status, method, target, us = case["request"]
    assert match_line(parse_format(case["format"]), case["line"]) == (status, method, target, None if us < 0 else us)


@pytest.mark.parametrize("case", DATA["mismatch"], ids=lambda case: case["line"][:20])
def test_line_of_another_format(case: dict[str, Any]) -> None:
    assert match_line(parse_format(case["format"]), case["line"]) is None


@pytest.mark.parametrize("case", DATA["refused"], ids=lambda case: case["problem"])
def test_format_refused(case: dict[str, str]) -> None:
    with pytest.raises(UsageError, match=case["problem"]):
        parse_format(case["format"])


def test_format_recognized() -> None:
    timed = '1.2.3.4 - - [x] "GET / HTTP/1.1" 200 17 "-" "agent" 0.001'
    assert [likely_format([line]) for line in (timed, timed[:-6], "x")] == ["nginx", "combined", None]
    assert likely_format([timed.replace("0.001", "812"), "garbage"]) == "apache"
    assert likely_format([timed.replace("0.001", seconds) for seconds in ("0", "12")]) == "combined"


def counted(awk: str, log: LogFormat, lines: list[str]) -> TrafficCounts:
    """Return the counts of lines by awk."""
    text = "".join(f"{line}\n" for line in lines) + f"{_MARK}1.00\n"
    command = [*awk.split(), program.counter(_MARK, log)]
    run = subprocess.run(command, input=text.encode(), capture_output=True, check=True, env={"LC_ALL": "C"})
    counts = TrafficCounts()
    complete = [counts.feed(line) for line in run.stdout.decode().splitlines()]
    assert complete[-1:] == [True]
    return counts


def assert_counted_alike(awk: str, log: LogFormat, lines: list[str]) -> None:
    requests = [match_line(log, line) for line in lines]
    counts = counted(awk, log, lines)
    tick = counts.tick(1, 0, 0.0, 1.0)
    assert counts.invalid == requests.count(None)
    assert tick.statuses == Counter(request.status for request in requests if request)
    durations = sorted(request.us / 1e6 for request in requests if request and request.us is not None)
    assert tick.service.count == len(durations)
    for percent in (0, 50, 100) if durations else ():
        exact = durations[max(0, -(-len(durations) * percent // 100) - 1)]
        assert tick.service.percentile(percent) == pytest.approx(exact, rel=0.011, abs=1e-6)


@pytest.mark.parametrize("awk", _AWKS)
def test_awk_counts_the_same_requests(awk: str) -> None:
    for case in (*DATA["match"], *DATA["mismatch"]):
        assert_counted_alike(awk, parse_format(case["format"]), [case["line"]] * 3)


@given(st.lists(st.text(st.sampled_from('"\\ /:[]{},-.%12aGET\t\x01é'), max_size=60), max_size=20), st.data())
def test_awk_counts_random_lines_the_same(lines: list[str], data: st.DataObject) -> None:
    log = PRESETS[data.draw(st.sampled_from(sorted(PRESETS)))]
    start = '1.2.3.4 - - [x] "GET '
    tails = [f'{start}{line}" 200 1 "-" "{line}" 12' for line in lines]
    assert_counted_alike("awk", log, [*lines, *tails])


@pytest.mark.parametrize("awk", _AWKS)
def test_routes_are_grouped_and_bounded(awk: str) -> None:
    paths = {
        "/": "/",
        "/item/17?q=1": "/item/*",
        "/u/3f2504e0-4f89-11d3-9a0c-0305e82c3301/x": "/u/*/x",
        "/static/app.3fa9c.js": "/static/app.3fa9c.js",
        "/" + "x" * 41: "/*",
        "/a%20b": "/*",
        "/1/2/3/4/5/6/7/8/9": "/*/...",
        "*": "*",
    }
    log = parse_format("%m %U %>s.")
    tick = counted(awk, log, [f"GET {path} 200." for path in paths]).tick(1, 0, 0.0, 1.0)
    assert set(tick.groups) == {f"GET {route}" for route in paths.values()}
    lines = [
        f"{method} /{'x' * (number // 26)}{chr(97 + number % 26)} 200."
        for number in range(400)
        for method in ("GET", "FOO")
    ]
    tick = counted(awk, log, lines).tick(1, 0, 0.0, 1.0)
    assert len(tick.groups) == program.MOST_GROUPS + 1
    assert tick.completed == len(lines)


def test_unreadable_log_is_reported() -> None:
    marks = "".join(f"{_MARK}{word}\n" for word in ("rotated", "unreadable", "1.00", "2.00"))
    command = ["awk", program.counter(_MARK, PRESETS["common"])]
    run = subprocess.run(command, input=marks, capture_output=True, check=True, text=True)
    assert run.stdout.splitlines() == ["+ 1.00 0 1 1", ".", "+ 2.00 0 0 0", "."]
