"""The Prometheus endpoint, read with the parser of the Prometheus client library."""

import asyncio
from typing import Any

import httpx
import pytest
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from cockpit.export.gauges import gauge_of
from cockpit.export.prometheus import PrometheusStream
from cockpit.export.series import host_metrics_at, load_metrics_at, series_columns
from cockpit.metrics.catalogue import SAMPLE_METRICS, SECOND_METRICS
from cockpit.model.errors import UsageError
from cockpit.model.events import RunStarted, SessionEnded
from cockpit.model.fold.fold import fold_all
from cockpit.model.load.plan import LoadPlan
from cockpit.model.state import State
from cockpit.model.tick import Tick
from tests.data import data_of
from tests.session.events import small_session

DATA = data_of(__file__)

# State within the first run.
METRICS = {metric.column: metric for metric in (*SECOND_METRICS, *SAMPLE_METRICS)}
STATE = fold_all(event for event in small_session() if event.t < 13.5)


async def scrape(stream: PrometheusStream) -> tuple[list[Any], dict[tuple[str, str], float]]:
    """Return the metric families, and the samples by name and label values."""
    async with httpx.AsyncClient(trust_env=False) as client:
        response = await client.get(f"http://127.0.0.1:{stream.port}/metrics")
    assert response.status_code == 200
    families = list(text_string_to_metric_families(response.text))
    samples = [sample for family in families for sample in family.samples]
    return families, {(sample.name, ",".join(sample.labels.values())): sample.value for sample in samples}


async def test_latencies_of_closed_and_open_load_are_counted() -> None:
    closed = [event for event in small_session() if not isinstance(event, SessionEnded)]
    opened = [
        replace(event, run=3, t=event.t + 60, start=event.start + 60, response=event.service)
        for event in closed
        if isinstance(event, Tick) and event.run == 1
    ]
    run = RunStarted(t=60.0, run=3, plan=LoadPlan(url="http://web1/", rate=200.0, duration=10.0))
    stream = PrometheusStream(0)
    await stream.send_new(state := fold_all([*closed, run, *opened]))
    found = (await scrape(stream))[1]
    await stream.close(state)
    assert found["cockpit_response_seconds_count", ""] == found["cockpit_responses_total", "200"] == 12000


async def test_latest_complete_second_and_counters_are_exported() -> None:
    stream = PrometheusStream(0)
    assert (await scrape(stream))[1]["cockpit_response_seconds_count", ""] == 0, "before the start of the session"
    await stream.send_new(STATE)
    families, found = await scrape(stream)
    with pytest.raises(UsageError, match=f"--prometheus {stream.port}: 127.0.0.1:{stream.port}: Address already"):
        await asyncio.to_thread(PrometheusStream, stream.port)
    await stream.close(State())
    assert found["cockpit_load_responses_per_second", ""] == pytest.approx(200, rel=0.01)
    assert found["cockpit_host_cpu_idle_ratio", "web1"] == pytest.approx(0.5, abs=0.01)
    completed = sum(segment.counts.completed for segment in STATE.segments)
    assert found["cockpit_responses_total", "200"] == found["cockpit_response_seconds_count", ""] == completed > 0
    assert found["cockpit_response_seconds_bucket", "+Inf"] == completed
    cumulative = [value for (name, _), value in found.items() if name == "cockpit_response_seconds_bucket"]
    assert cumulative == sorted(cumulative) and 0 < found["cockpit_response_seconds_sum", ""] < completed
    assert found["cockpit_changes_total", ""] == 0

    # Names have base units, types and help.
    assert {family.type for family in families} == {"gauge", "counter", "histogram"}
    assert all(family.documentation for family in families)
    for family in families:
        words = family.name.split("_")
        assert not {"ms", "s", "percent", "kib", "kb", "mib", "blocks"} & set(words), family.name
        assert all(sample.name.endswith("_total") == (family.type == "counter") for sample in family.samples)
        assert family.type == "histogram" or words[-1] not in ("count", "sum", "bucket"), family.name
    exported = {family.name for family in families}
    for metrics in (load_metrics_at(STATE, 10), host_metrics_at(STATE.hosts["web1"], 10)):
        assert metrics and {gauge_of(METRICS[column]).name for column in metrics} <= exported


def test_every_column_of_the_csv_has_a_gauge_of_its_own() -> None:
    columns = [column for column in series_columns(STATE) if column.name not in ("t_s", "utc", "run", "segment")]
    gauges = [gauge_of(column.metric) for column in columns if column.metric]
    assert len({gauge.name for gauge in gauges}) == len(gauges) == len(columns)
    assert all(gauge.help for gauge in gauges)


@pytest.mark.parametrize(("column", "cell", "name", "value"), DATA["values_are_in_base_units"])
def test_values_are_in_base_units(column: str, cell: float, name: str, value: float) -> None:
    gauge = gauge_of(METRICS[column])
    assert (gauge.name, gauge.value(cell)) == (name, value)


@pytest.mark.parametrize(
    ("host", "status"),
    [("127.0.0.1", 200), ("localhost:1", 200), ("evil.example", 421), ("127.0.0.1.evil.example", 421)],
)
async def test_host_header_of_another_name_is_refused(host: str, status: int) -> None:
    """A page in a browser can resolve its own name to 127.0.0.1 and would read the metrics."""
    stream = PrometheusStream(0)
    assert stream._server.server_address[0] == "127.0.0.1"
    async with httpx.AsyncClient(trust_env=False) as client:
        response = await client.get(f"http://127.0.0.1:{stream.port}/metrics", headers={"Host": host})
    await stream.close(State())
    assert response.status_code == status and ("cockpit_" in response.text) == (status == 200)
