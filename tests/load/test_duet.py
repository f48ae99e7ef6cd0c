"""Two variants under the same load at the same time, against real servers."""

import itertools
from typing import Any

import pytest

from cockpit.load import duet
from cockpit.load.http.protocol import assignments
from cockpit.load.http.request import target_of
from cockpit.model.load.checks import Invalid, check_plan
from cockpit.model.load.plan import LoadPlan, TargetVariant
from tests.load.servers import POLLERS, SMALL, ClientConnection, Outcome, always, load, plan, run_engine, serving


def duet_of(one: str, two: str, **values: Any) -> LoadPlan:
    variants = (TargetVariant(name="A", url=one), TargetVariant(name="B", url=two))
    return plan(one, variants=variants, **{"duration": 0.4, **values})


async def duet_run(one: str, two: str, poller: str = "best", **values: Any) -> Outcome:
    """Run a duet in an engine alone."""
    planned = duet_of(one, two, **values)
    first, second = (("127.0.0.1", target_of(url).port) for url in (one, two))
    [assignment] = assignments(planned, 1, first, second)
    return await run_engine(assignment, poller)


@pytest.mark.parametrize("poller", POLLERS)
async def test_both_variants_have_the_same_connections_and_own_counts(poller: str) -> None:
    async with serving(always(SMALL)) as one, serving(always(SMALL)) as two:
        outcome = await duet_run(one.url, two.url, poller, concurrency=3)
    assert (len(one.connections), len(two.connections)) == (3, 3)
    for name, server in (("A", one), ("B", two)):
        groups = outcome.groups[name]
        completed = sum(group.completed for group in groups)
        assert server.requests - 3 <= completed <= server.requests
        assert sum(group.service.count for group in groups) == completed
    assert outcome.total("completed") == sum(g.completed for groups in outcome.groups.values() for g in groups)
    assert outcome.total("sent") == sum(g.sent for groups in outcome.groups.values() for g in groups)


async def test_open_load_arrives_at_both_at_the_same_instants() -> None:
    async with serving(always(SMALL)) as one, serving(always(SMALL)) as two:
        outcome = await duet_run(one.url, two.url, rate=500.0, arrivals="poisson", concurrency=1)
    sent = {name: [group.sent for group in groups] for name, groups in outcome.groups.items()}
    assert sent["A"] == sent["B"]
    assert sum(sent["A"]) > 50


@pytest.mark.parametrize("rate", [None, 300.0])
async def test_connections_are_renewed_after_each_slot(rate: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duet, "SLOT", 0.1)
    async with serving(always(SMALL)) as one, serving(always(SMALL)) as two:
        outcome = await duet_run(one.url, two.url, rate=rate, concurrency=2)
    assert min(len(one.connections), len(two.connections)) >= 4
    assert not outcome.errors
    assert outcome.total("reconnects") == 0


async def test_slow_variant_does_not_hold_up_the_other() -> None:
    async def silent(client: ClientConnection) -> None:
        await client.request()
        await client.reader.read()

    async with serving(always(SMALL)) as one, serving(silent) as two:
        outcome = await duet_run(one.url, two.url, rate=200.0, max_in_flight=4, duration=0.5)
    sent = {name: sum(group.sent for group in groups) for name, groups in outcome.groups.items()}
    assert sent["B"] == 4
    assert sent["A"] > 50


async def test_warmup_is_not_counted_and_ticks_end_with_it() -> None:
    async with serving(always(SMALL)) as one, serving(always(SMALL)) as two:
        outcome = await duet_run(one.url, two.url, warmup=0.2, duration=0.2)
    assert {tick.warmup for tick in outcome.ticks} == {True, False}
    assert all(one.t <= two.start + 1e-6 for one, two in itertools.pairwise(outcome.ticks))
    assert all(set(tick.groups) == {"A", "B"} for tick in outcome.ticks)


async def test_run_with_worker_processes_names_both_addresses() -> None:
    async with serving(always(SMALL)) as one, serving(always(SMALL)) as two:
        outcome = await load(duet_of(one.url, two.url.replace("127.0.0.1", "localhost"), workers=2))
    assert outcome.started.addresses == ("127.0.0.1",) or len(outcome.started.addresses) == 2
    assert outcome.ended.reason == "completed"
    assert {tick.worker for tick in outcome.ticks} == {0, 1}
    assert min(one.requests, two.requests) > 0


@pytest.mark.parametrize(
    "values",
    [{"requests": 10}, {"unix": "/run/x"}, {"connect_to": "a:1"}, {"variants": (TargetVariant(name="A", url="x"),)}],
)
def test_plans_that_are_no_duet_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(Invalid, match="variant"):
        check_plan(LoadPlan(**{**_fields(duet_of("http://a/", "http://b/")), **values}))


def _fields(of: LoadPlan) -> dict[str, Any]:
    return {name: getattr(of, name) for name in of.__struct_fields__ if name != "duration"}
