"""Clock offset of another machine, estimated from pings."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cockpit.cluster.clocks import WINDOW, MachineClock, Ping

one_way_delays = st.floats(0.0001, 0.5)


@given(st.floats(-1e6, 1e6), st.lists(st.tuples(one_way_delays, one_way_delays), min_size=1, max_size=30))
def test_offset_error_is_within_uncertainty(offset: float, pings: list[tuple[float, float]]) -> None:
    clock = MachineClock()
    for at, (forth, back) in enumerate(pings):
        sent = 100.0 + at
        clock.add(Ping(sent, sent + forth - offset, sent + forth + back))
    assert abs(clock.best.offset - offset) <= clock.best.uncertainty + 1e-6
    assert clock.here(clock.there(123.0)) == pytest.approx(123.0)


def test_fastest_recent_ping_is_used() -> None:
    clock = MachineClock()
    clock.add(Ping(0.0, 0.001, 0.002))
    clock.add(Ping(1.0, 1.4, 1.5))
    assert clock.best.received == 0.002
    clock.add(Ping(WINDOW + 1, WINDOW + 1.2, WINDOW + 1.4))
    assert clock.best.uncertainty == pytest.approx(0.2)


@pytest.mark.parametrize("rate", [0.0, 50e-6, -200e-6])
def test_slow_or_fast_clock_has_drift(rate: float) -> None:
    clock = MachineClock()
    for second in range(120):
        sent = float(second)
        middle = sent + 0.0005
        clock.add(Ping(sent, middle * (1 - rate), sent + 0.001))
    assert clock.drift == pytest.approx(rate, rel=0.1, abs=1e-6)
    # Within the window the clocks drift apart by less than a millisecond more than the uncertainty.
    assert clock.here(119.0 * (1 - rate)) == pytest.approx(119.0, abs=0.0005 + abs(rate) * WINDOW)


def test_difference_within_uncertainty_is_no_drift() -> None:
    clock = MachineClock()
    for second in range(90):
        sent = float(second)
        clock.add(Ping(sent, sent + (0.004 if second % 2 else 0.006), sent + 0.01))
    assert clock.drift == 0.0
