"""Sums that grow a group of names at a time."""

from __future__ import annotations

import msgspec
import pytest

from cockpit.model.sums import MeanGroup, Sums, Weighted

CPU = ("cpu.user", "cpu.idle")


def test_figures_are_weighed_and_added() -> None:
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


def test_what_is_there_stays_as_it_was() -> None:
    before = Sums().plus([MeanGroup(CPU, (10.0, 90.0), 2.0)])
    before.plus([MeanGroup(CPU, (1.0, 1.0), 1.0)])
    assert before == Sums().plus([MeanGroup(CPU, (10.0, 90.0), 2.0)])


def test_a_name_told_in_another_company_is_one_sum() -> None:
    sums = Sums().plus([MeanGroup(CPU, (10.0, 90.0), 2.0), MeanGroup(("cpu.idle",), (50.0,), 1.0)])
    assert sums.by_name()["cpu.idle"] == Weighted(230.0, 3.0)


def test_two_are_joined() -> None:
    one, other = Sums().plus([MeanGroup(CPU, (10.0, 90.0), 2.0)]), Sums().plus([MeanGroup(CPU, (20.0, 80.0), 1.0)])
    assert one.joined(other).by_name()["cpu.user"] == Weighted(40.0, 3.0)
    assert one.joined(Sums()) == one == Sums().joined(one)


def test_what_is_kept_reads_back() -> None:
    sums = Sums().plus([MeanGroup(CPU, (10.1, 89.9), 0.3), MeanGroup(("load.1",), (3.0,), 4.0)])
    assert Sums.from_wire(msgspec.json.decode(msgspec.json.encode(sums.wire()))) == sums


@pytest.mark.parametrize("wire", [7, [["cpu.user"]], [[["cpu.user"], [1.0, 2.0], 3.0]], {"cpu.user": 4}])
def test_nonsense_is_refused(wire: object) -> None:
    with pytest.raises((ValueError, TypeError)):
        Sums.from_wire(wire)
