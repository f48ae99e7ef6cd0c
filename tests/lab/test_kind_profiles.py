"""Shipped profiles of single kinds of servers: their knob makes the difference that they expect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from cockpit.model.metrics import RunResult, run_result
from cockpit.model.study import located
from cockpit.profiles.reader import read_profile
from cockpit.session.live_session import LiveSession
from tests.lab.cpus import generator_cpu
from tests.lab.kinds import KindCase, caddy, gunicorn, haproxy, lighttpd, php_fpm, varnish
from tests.lab.lab import Lab
from tests.lab.test_knobs import config
from tests.lab.test_screen_profiles import PROFILES

SECONDS = 1.0


class ProfileCase(NamedTuple):
    """A knob's values for few and many requests at the same time, and how many a second the few can serve."""

    name: str
    kind: KindCase
    few: dict[str, str]
    many: dict[str, str]
    limit: float


CASES = (
    ProfileCase("php-fpm", php_fpm.CASE, {"pm": "static", "pm.max_children": "2"}, {"pm.max_children": "10"}, 2 / 0.05),
    ProfileCase("haproxy", haproxy.CASE, {"maxconn": "2"}, {"maxconn": "20"}, 2 / 0.05),
    ProfileCase("gunicorn", gunicorn.CASE, {"workers": "1"}, {"workers": "8"}, 1 / 0.02),
    # A few of the 40 URLs are cached by the requests before the first change.
    ProfileCase("varnish", varnish.CASE, {"default_ttl": "0"}, {"default_ttl": "120"}, 8 / 0.05),
)
KEPT = "max-keep-alive-requests"


async def measured(lab: Lab, name: str, kind: KindCase, changes: Sequence[Mapping[str, str | None]]) -> list[RunResult]:
    """The run of a shipped profile with each of the values; they are undone."""
    profile = read_profile(PROFILES / f"{name}.toml")
    plan = located(profile.plan, {"web1": lab.web1.address})
    profile = replace(profile, plan=replace(plan, cpus=(generator_cpu(),), duration=SECONDS))
    lab.web1.run(f"{{ set -e; {kind.start}\n}} >/tmp/{name}.out 2>&1")
    try:
        before, results = config(lab.web1, kind.places), []
        async with LiveSession(profile, ssh_config=lab.ssh_config) as live:
            await live.hosts_read()
            await live.knobs_read()
            for values in changes:
                await live.tuning.apply(values)
                result = run_result(await live.run_once(), live.load.runs)
                assert result is not None and result.counts.failed == 0
                results.append(result)
            for change in reversed(live.state.changes):
                await live.tuning.undo(change.letter)
        assert config(lab.web1, kind.places) == before
    finally:
        lab.web1.run(f"{{ {kind.stop}\n}} >/dev/null 2>&1", check=False)
    return results


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_more_requests_at_the_same_time_are_more_responses(lab: Lab, case: ProfileCase) -> None:
    few, many = await measured(lab, case.name, case.kind, (case.few, case.many))
    assert few.rate <= 1.1 * case.limit, "each request takes as long as the profile says"
    assert many.rate > 2.5 * few.rate


async def test_lighttpd_keeps_connections_as_long_as_the_knob_says(lab: Lab) -> None:
    new, kept = await measured(lab, "lighttpd", lighttpd.CASE, ({KEPT: "0"}, {KEPT: "1000"}))
    assert new.counts.connect.count >= new.counts.completed > 0, "each request is a new connection"
    assert kept.counts.connect.count < kept.counts.completed / 10


async def test_caddy_sends_a_text_in_fewer_bytes_with_gzip(lab: Lab) -> None:
    compressed, plain = await measured(lab, "caddy", caddy.CASE, ({"encode": "gzip"}, {"encode": None}))
    sizes = [one.counts.body_bytes / one.counts.completed for one in (compressed, plain)]
    assert sizes[0] < sizes[1] / 2
