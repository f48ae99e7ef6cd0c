"""Users as in life, on real servers: think time, reconnects, cookies, sockets and chains, by the servers' own logs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import replace

from cockpit.model.load import Extraction, LoadPlan, Request, ThinkTime
from cockpit.model.study import with_address
from cockpit.profiles.reader import read_profile
from tests.lab.cpus import generator_cpu
from tests.lab.keeper import REPOSITORY
from tests.lab.lab import Host, Lab
from tests.lab.sessions import PORT, START, STOP, Visit, visits
from tests.load.servers import DEADLINE, Outcome, load
from tests.tuning.conftest import until

TOKEN = Extraction(name="token", source="regex", expression='name="csrf" value="([0-9a-f]+)"')
ORDER = Extraction(name="id", source="json", expression="order.id")
FORM = (("Content-Type", "application/x-www-form-urlencoded"),)


async def test_think_time_and_reconnects(plain_web1: Host) -> None:
    plan = read_profile(REPOSITORY / "profiles" / "real-visitors.toml").plan
    assert plan.cookies and plan.requests_per_connection == 10 and plan.think_time is not None
    think = ThinkTime(distribution="uniform", seconds=0.02, most=0.1)
    plan = replace(plan, concurrency=15, requests=600, duration=None, think_time=think, cpus=(generator_cpu(),))
    outcome = await load(with_address(plan, {"web1": plain_web1.address}))
    assert outcome.statuses == {200: 600} and outcome.errors == {}
    # Ten requests per connection; the last connection of each visitor may have fewer.
    assert 60 <= outcome.merged("connect").count <= 60 + 15
    assert {name: sum(group.completed for group in groups) for name, groups in outcome.groups.items()} == {
        "page": 150,
        "text": 450,
    }


@pytest.fixture(scope="module")
def site(whole_lab: Lab) -> Iterator[Host]:
    """web1 with the page that has sessions."""
    try:
        whole_lab.web1.run(f"{{ set -e; {START}\n}} >/dev/null 2>&1")
        yield whole_lab.web1
    finally:
        whole_lab.web1.run(f"{{ {STOP}\n}} >/dev/null 2>&1", check=False)


async def visited(site: Host, **values: Any) -> tuple[Outcome, list[Visit]]:
    """Load the page, and return the requests that nginx logged."""
    before = len(visits(site))
    plan = LoadPlan(url=f"http://{site.address}:{PORT}/", timeout=DEADLINE, cpus=(generator_cpu(),), **values)
    outcome = await load(plan)
    await until(lambda: len(visits(site)) - before >= outcome.total("completed"), DEADLINE)
    found = visits(site)[before:]
    assert outcome.errors == {} and len(found) == outcome.total("sent") == plan.requests
    return outcome, found


def by_connection(found: list[Visit]) -> dict[int, list[Visit]]:
    connections: dict[int, list[Visit]] = {}
    for visit in found:
        connections.setdefault(visit.connection, []).append(visit)
    return connections


def chain(site: Host) -> tuple[Request, ...]:
    base = f"http://{site.address}:{PORT}"
    return (
        Request(name="form", url=f"{base}/form", extract=(TOKEN,)),
        Request(name="order", url=f"{base}/order", method="POST", headers=FORM, body="csrf={token}", extract=(ORDER,)),
        Request(name="show", url=f"{base}/orders/{{id}}"),
    )


async def test_chain_sends_token_of_form_and_shows_order_of_its_session(site: Host) -> None:
    outcome, found = await visited(site, concurrency=5, requests=300, cookies=True, mix=chain(site))
    assert outcome.unexpected == {} and set(outcome.statuses) == {200, 201}
    users = by_connection(found)
    assert len(users) == 5 == len({visit.session for visit in found})
    for user in users.values():
        steps = [visit.path.split("/")[1] for visit in user]
        assert steps == [("form", "order", "orders")[number % 3] for number in range(len(user))]
        assert [visit.path for visit in user[2::3]] == [f"/orders/{visit.order}" for visit in user[1:-1:3]]
    created = [visit.order for visit in found if visit.order != "-"]
    assert len(set(created)) == len(created) >= 300 // 3 - 5
    completed = {name: sum(group.completed for group in groups) for name, groups in outcome.groups.items()}
    assert completed == {
        "form": sum(visit.path == "/form" for visit in found),
        "order": sum(visit.path == "/order" for visit in found),
        "show": sum(visit.path.startswith("/orders/") for visit in found),
    }


async def test_token_of_a_form_is_refused_without_its_cookie(site: Host) -> None:
    outcome, found = await visited(site, concurrency=4, requests=80, mix=chain(site))
    # A user starts over after each refusal, and each form is a new session.
    paths = Counter(visit.path for visit in found)
    assert paths.keys() == {"/form", "/order"} and 0 <= paths["/form"] - paths["/order"] <= 4
    assert outcome.statuses == {200: paths["/form"], 403: paths["/order"]}
    assert len({visit.session for visit in found}) == 80 and {visit.cookie for visit in found} == {"-"}


async def test_each_user_has_a_session_over_all_its_connections(site: Host) -> None:
    _, found = await visited(site, concurrency=4, requests=100, cookies=True, requests_per_connection=7)
    connections = by_connection(found)
    assert all([visit.nth for visit in one] == list(range(1, len(one) + 1)) for one in connections.values())
    sizes = Counter(map(len, connections.values()))
    # The last connection of each user may have fewer.
    assert max(sizes) == 7 and sum(count for size, count in sizes.items() if size < 7) <= 4
    assert len({visit.session for visit in found}) == 4
    first = [visit for visit in found if visit.cookie == "-"]
    assert len(first) == 4 and {visit.nth for visit in first} == {1}
    assert all(visit.cookie in (visit.session, "-") for visit in found)


async def test_sockets_of_a_user_share_its_cookies_and_pause_between_requests(site: Host) -> None:
    think = ThinkTime(distribution="uniform", seconds=0.1, most=0.3)
    _, found = await visited(site, concurrency=6, requests=120, cookies=True, connections_per_user=3, think_time=think)
    connections = by_connection(found)
    assert len(connections) == 6
    # All begin without a cookie. The session of the last of a user's first responses remains.
    sessions = Counter(one[-1].cookie for one in connections.values())
    assert sorted(sessions.values()) == [3, 3] and "-" not in sessions
    gaps = [after.at - before.at for one in connections.values() for before, after in pairwise(one)]
    assert len(gaps) == 120 - 6 and min(gaps) > 0.1 - 0.02
