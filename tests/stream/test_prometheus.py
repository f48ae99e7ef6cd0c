"""The Prometheus endpoint, read with the parser of the Prometheus client library."""

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

# State within the first run.
STATE = fold_all(event for event in small_session() if event.t < 13.5)


@pytest.fixture
async def endpoint() -> AsyncIterator[PrometheusStream]:
    stream = PrometheusStream(0)
    yield stream
    await stream.close(State())


async def scrape(stream: PrometheusStream) -> dict[tuple[str, str], float]:
    async with httpx.AsyncClient(trust_env=False) as client:
        response = await client.get(f"http://127.0.0.1:{stream.port}/metrics")
    assert response.status_code == 200
    samples = [sample for family in text_string_to_metric_families(response.text) for sample in family.samples]
    return {(sample.name, ",".join(sample.labels.values())): sample.value for sample in samples}


async def test_latest_complete_second_and_counters_are_exported(endpoint: PrometheusStream) -> None:
    await endpoint.take(STATE)
    found = await scrape(endpoint)
    assert found["cockpit_load_rate_per_s", ""] == pytest.approx(200, rel=0.01)
    assert found["cockpit_host_cpu_idle_percent", "web1"] == pytest.approx(50, abs=1)
    completed = sum(segment.counts.completed for segment in STATE.segments)
    assert found["cockpit_responses_total", "200"] == found["cockpit_response_seconds_count", ""] == completed > 0
    assert found["cockpit_response_seconds_bucket", "+Inf"] == completed
    cumulative = [value for (name, _), value in found.items() if name == "cockpit_response_seconds_bucket"]
    assert cumulative == sorted(cumulative) and 0 < found["cockpit_response_seconds_sum", ""] < completed
    assert found["cockpit_changes_total", ""] == 0


async def test_scrape_before_session_start_returns_zeros(endpoint: PrometheusStream) -> None:
    assert (await scrape(endpoint))["cockpit_response_seconds_count", ""] == 0


async def test_port_in_use_is_reported(endpoint: PrometheusStream) -> None:
    with pytest.raises(UsageError, match=f"--prometheus {endpoint.port}: 127.0.0.1:{endpoint.port}: Address already"):
        await asyncio.to_thread(PrometheusStream, endpoint.port)
