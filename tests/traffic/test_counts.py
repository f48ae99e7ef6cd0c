"""Counts that a host sends are validated."""

import pytest

from cockpit.traffic.counts import InvalidCounts, TrafficCounts


@pytest.mark.parametrize(
    "lines",
    [
        ["c 1 200 5 1"],
        ["."],
        ["+ 1.00 0 0 0", "c 1 200 5 1"],
        ["+ 1.00 0 0 0", "g 1 GET /", "c 1 600 5 1"],
        ["+ 1.00 0 0 0", "g 1 GET /", "c 2 200 5 1"],
        ["+ 1.00 0 0 0", "g 1 GET /", "c 1 200 -1 1"],
        ["+ 1.00 0 0 0", "g 1 GET /", "c 1 200 99999999999999 1"],
        ["+ 1.00 0 0 0", "g 1 GET /a b"],
        ["+ 1.00 0 0 0", "g 1 GET /", "c 1 200 10 1" + "0" * 400],
        ["+ 1.00 0 0 0", *(f"g {number} GET /{number}" for number in range(200))],
        ["sh: 1: cannot open /var/log/x: Permission denied"],
    ],
)
def test_invalid_line(lines: list[str]) -> None:
    counts = TrafficCounts()
    with pytest.raises(InvalidCounts):
        for line in lines:
            counts.feed(line)


def test_number_of_requests_is_bounded() -> None:
    counts = TrafficCounts()
    for line in ("+ 1.00 0 0 0", "g 1 GET /", "c 1 200 10 999999999"):
        counts.feed(line)
    with pytest.raises(InvalidCounts, match="too many requests"):
        counts.tick(1, 0, 0.0, 1.0)


@pytest.mark.parametrize(("invalid", "unreadable", "unread"), [(0, 0, 0.0), (0, 1, 2.0), (4, 0, 2.0)])
def test_lines_that_are_not_counted(invalid: int, unreadable: int, unread: float) -> None:
    counts = TrafficCounts()
    assert [counts.feed(line) for line in (f"+ 1.00 {invalid} 2 {unreadable}", ".")] == [False, True]
    tick = counts.tick(1, 0, 1.0, 3.0)
    assert (tick.invalid_lines, tick.rotations, tick.unread) == (invalid, 2, unread)


@pytest.mark.parametrize(
    ("durations", "fine", "shortest"),
    [((5000,), True, 5000.5), ((5000,), False, 5500), ((5000, 7001), False, 5000.5)],
)
def test_durations_are_in_the_middle_of_their_range(durations: tuple[int, ...], fine: bool, shortest: float) -> None:
    counts = TrafficCounts()
    for line in ("+ 1.00 0 0 0", "g 1 GET /", *(f"c 1 200 {us} 1" for us in durations)):
        counts.feed(line)
    tick = counts.tick(1, 0, 0.0, 1.0, fine)
    assert tick.service.percentile(0) == pytest.approx(shortest / 1e6, rel=0.001)
