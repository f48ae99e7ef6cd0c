"""The endpoint for Prometheus, read by the parser of its own client library."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from cockpit.model.errors import UsageError
from cockpit.model.fold import fold_all
from cockpit.model.state import State
from cockpit.stream.prometheus import PrometheusStream
from tests.session.events import small_session

# Within the first run.
STATE = fold_all(event for event in small_session() if event.t < 13.5)


@pytest.fixture
async def endpoint() -> AsyncIterator[PrometheusStream]:
    stream = PrometheusStream(0)
    yield stream
    await stream.close(State())


async def scraped(stream: PrometheusStream) -> dict[tuple[str, str], float]:
    async with httpx.AsyncClient(trust_env=False) as client:
        answer = await client.get(f"http://127.0.0.1:{stream.port}/metrics")
    assert answer.status_code == 200
    samples = [sample for family in text_string_to_metric_families(answer.text) for sample in family.samples]
    return {(one.name, ",".join(one.labels.values())): one.value for one in samples}


async def test_the_newest_whole_second_and_the_counters_are_served(endpoint: PrometheusStream) -> None:
    await endpoint.take(STATE)
    found = await scraped(endpoint)
    assert found["cockpit_load_rate_per_s", ""] == pytest.approx(200, rel=0.01)
    assert found["cockpit_host_cpu_idle_percent", "web1"] == pytest.approx(50, abs=1)
    completed = sum(segment.counts.completed for segment in STATE.segments)
    assert found["cockpit_responses_total", "200"] == found["cockpit_response_seconds_count", ""] == completed > 0
    assert found["cockpit_response_seconds_bucket", "+Inf"] == completed
    ends = [value for (name, _), value in found.items() if name == "cockpit_response_seconds_bucket"]
    assert ends == sorted(ends) and 0 < found["cockpit_response_seconds_sum", ""] < completed
    assert found["cockpit_changes_total", ""] == 0


async def test_a_session_that_has_not_begun_is_no_error(endpoint: PrometheusStream) -> None:
    assert (await scraped(endpoint))["cockpit_response_seconds_count", ""] == 0


async def test_a_port_that_is_taken_is_named(endpoint: PrometheusStream) -> None:
    with pytest.raises(UsageError, match=f"--prometheus {endpoint.port}: 127.0.0.1:{endpoint.port}: Address already"):
        await asyncio.to_thread(PrometheusStream, endpoint.port)
