"""Weighted sums of metrics, added in groups of names."""

import msgspec
import pytest

from cockpit.model.sums import MeanGroup, Sums, Weighted

CPU = ("cpu.user", "cpu.idle")


def test_metrics_are_weighted_summed_and_joined() -> None:
    sums = (
        Sums()
        .plus([MeanGroup(CPU, (10.0, 90.0), 2.0)])
        .plus([MeanGroup(CPU, (40.0, 60.0), 1.0), MeanGroup(("load.1",), (3.0,), 4.0)])
    )
    assert sums.by_name() == {
        "cpu.user": Weighted(60.0, 3.0),
        "cpu.idle": Weighted(240.0, 3.0),
        "load.1": Weighted(12.0, 4.0),
    }
    sums = Sums().plus([MeanGroup(CPU, (10.0, 90.0), 2.0), MeanGroup(("cpu.idle",), (50.0,), 1.0)])
    assert sums.by_name()["cpu.idle"] == Weighted(230.0, 3.0)
    before = Sums().plus([MeanGroup(CPU, (10.0, 90.0), 2.0)])
    before.plus([MeanGroup(CPU, (1.0, 1.0), 1.0)])
    assert before == Sums().plus([MeanGroup(CPU, (10.0, 90.0), 2.0)])
    first, other = Sums().plus([MeanGroup(CPU, (10.0, 90.0), 2.0)]), Sums().plus([MeanGroup(CPU, (20.0, 80.0), 1.0)])
    assert first.joined(other).by_name()["cpu.user"] == Weighted(40.0, 3.0)
    assert first.joined(Sums()) == first == Sums().joined(first)
    sums = Sums().plus([MeanGroup(CPU, (10.1, 89.9), 0.3), MeanGroup(("load.1",), (3.0,), 4.0)])
    assert Sums.from_wire(msgspec.json.decode(msgspec.json.encode(sums.wire()))) == sums


@pytest.mark.parametrize("wire", [7, [["cpu.user"]], [[["cpu.user"], [1.0, 2.0], 3.0]], {"cpu.user": 4}])
def test_invalid_wire_form_is_refused(wire: object) -> None:
    with pytest.raises((ValueError, TypeError)):
        Sums.from_wire(wire)
