"""Access logs: requests counted per interval; other busy output: only its lines."""

from __future__ import annotations

from cockpit.hosts.access_counter import AccessCounter

MISS = b'1.1.1.1 - - [x] "GET / HTTP/1.1" 200 5 "-" "x" 0.010 MISS\n'
HIT = b'1.1.1.1 - - [x] "GET / HTTP/1.1" 200 5 "-" "x" 0.001 HIT\n'
ERROR = b'1.1.1.1 - - [x] "GET / HTTP/1.1" 502 5 "-" "x" 0.030 -\n'
MIN_LINES = 50


def started_counter() -> AccessCounter:
    """A counter after its tail printed one old line."""
    counter = AccessCounter("web1", 0, 0.0)
    counter.take(ERROR)
    return counter


def test_requests_are_counted_by_status_with_hits_and_durations() -> None:
    counter = started_counter()
    counter.take(HIT * 3 + MISS[:20])
    assert counter.counts(0.5, MIN_LINES) is None
    counter.take(MISS[20:] + ERROR)
    counts = counter.counts(2.0, MIN_LINES)
    assert counts is not None
    assert (counts.seconds, counts.lines, counts.statuses) == (2.0, 5, {200: 4, 502: 1})
    assert (counts.hits, counts.lookups, counts.latency.count) == (3, 4, 5)
    assert 0.0299 < counts.latency.percentile(99) < 0.0301
    counts = counter.counts(3.0, MIN_LINES)
    assert counts is not None and (counts.seconds, counts.lines, counts.statuses) == (1.0, 0, {}), "a silent log"


def test_counts_are_late_if_reader_never_waits() -> None:
    counter = started_counter()
    counter.take(HIT * 1000)
    counter.waited += 0.3
    counts = counter.counts(1.0, MIN_LINES)
    assert counts is not None and not counts.late
    counter.take(HIT * 1000)
    counter.waited += 0.01
    counts = counter.counts(2.0, MIN_LINES)
    assert counts is not None and counts.late


def test_busy_log_of_unknown_format_counts_lines() -> None:
    counter = AccessCounter("web1", 0, 0.0)
    counter.take(b"started\n")
    counter.take(b"line\n" * 10)
    assert counter.counts(1.0, MIN_LINES) is None
    counter.take(b"line\n" * 1000)
    counts = counter.counts(2.0, MIN_LINES)
    assert counts is not None and (counts.lines, counts.statuses, counter.is_access_log) == (1000, {}, False)


def test_access_log_after_other_lines_is_detected() -> None:
    counter = AccessCounter("web1", 0, 0.0)
    counter.take(b"")
    counter.take(b"header\n" * 300 + HIT * 100)
    counts = counter.counts(1.0, MIN_LINES)
    assert counter.is_access_log and counts is not None and counts.statuses[200] >= 50
