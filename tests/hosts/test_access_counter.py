"""Requests of an access log are counted per second; of other output only the lines of a busy one."""

from __future__ import annotations

from cockpit.hosts.access_counter import AccessCounter

MISS = b'1.1.1.1 - - [x] "GET / HTTP/1.1" 200 5 "-" "x" 0.010 MISS\n'
HIT = b'1.1.1.1 - - [x] "GET / HTTP/1.1" 200 5 "-" "x" 0.001 HIT\n'
ERROR = b'1.1.1.1 - - [x] "GET / HTTP/1.1" 502 5 "-" "x" 0.030 -\n'
LEAST = 50


def counter() -> AccessCounter:
    """A counter whose tail printed one line of before."""
    made = AccessCounter("web1", 0, 0.0)
    made.take(ERROR)
    return made


def test_requests_are_counted_by_status_with_hits_and_durations() -> None:
    made = counter()
    made.take(HIT * 3 + MISS[:20])
    assert made.counts(0.5, LEAST) is None
    made.take(MISS[20:] + ERROR)
    counts = made.counts(2.0, LEAST)
    assert counts is not None
    assert (counts.seconds, counts.lines, counts.statuses) == (2.0, 5, {200: 4, 502: 1})
    assert (counts.hits, counts.lookups, counts.latency.count) == (3, 4, 5)
    assert 0.0299 < counts.latency.percentile(99) < 0.0301


def test_counts_of_a_reader_that_never_waits_are_late() -> None:
    made = counter()
    made.take(HIT * 1000)
    made.rested += 0.3
    counts = made.counts(1.0, LEAST)
    assert counts is not None and not counts.late
    made.take(HIT * 1000)
    made.rested += 0.01
    counts = made.counts(2.0, LEAST)
    assert counts is not None and counts.late


def test_a_silent_access_log_has_no_requests() -> None:
    made = counter()
    counts = made.counts(1.0, LEAST)
    assert counts is not None and (counts.lines, counts.statuses) == (0, {})


def test_an_unknown_format_has_lines_per_second_if_it_is_busy() -> None:
    made = AccessCounter("web1", 0, 0.0)
    made.take(b"started\n")
    made.take(b"line\n" * 10)
    assert made.counts(1.0, LEAST) is None
    made.take(b"line\n" * 1000)
    counts = made.counts(2.0, LEAST)
    assert counts is not None and (counts.lines, counts.statuses, made.is_access_log) == (1000, {}, False)


def test_an_access_log_is_found_behind_other_lines() -> None:
    made = AccessCounter("web1", 0, 0.0)
    made.take(b"")
    made.take(b"header\n" * 300 + HIT * 100)
    counts = made.counts(1.0, LEAST)
    assert made.is_access_log and counts is not None and counts.statuses[200] >= 50
