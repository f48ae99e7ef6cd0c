"""Prometheus endpoint on loopback: gauges of the last complete second, counters of the session's responses.

Metrics are in base units: seconds, bytes, ratios. The gauges are the metrics of the CSV (export.gauges).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from socketserver import ThreadingMixIn
from threading import Thread
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from cockpit.export.gauges import gauge_of
from cockpit.export.ndjson import delay
from cockpit.export.series import host_metrics_at, load_metrics_at
from cockpit.metrics.catalogue import SAMPLE_METRICS, SECOND_METRICS
from cockpit.model.counts import Counts, add
from cockpit.model.errors import ExtraRequired, UsageError
from cockpit.model.histogram import Histogram
from cockpit.model.state import State

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    from prometheus_client import Metric

ADDRESS = "127.0.0.1"
# Names for that address in the Host header, without the port.
_NAMES = (ADDRESS, "localhost")
_PORT = re.compile(r":\d{1,5}$")
# Upper bounds of the histogram's buckets (s).
_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _QuietHandler(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


def _of_loopback(application: WSGIApplication) -> WSGIApplication:
    """Refuse requests for other names than loopback: a page in a browser could resolve its own name to it."""

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if _PORT.sub("", environ.get("HTTP_HOST", "").lower()) in _NAMES:
            return application(environ, start_response)
        start_response("421 Misdirected Request", [("Content-Type", "text/plain")])
        return [b"only for 127.0.0.1 and localhost\n"]

    return answer


class PrometheusStream:
    """A stream that serves the newest state to scrapes, in a thread. Raises UsageError if the port is in use,
    ExtraRequired without prometheus_client."""

    trouble = ""

    def __init__(self, port: int) -> None:
        try:
            from prometheus_client import CollectorRegistry, make_wsgi_app
        except ImportError:
            raise ExtraRequired("--prometheus", "prometheus_client", "prometheus") from None
        self._state = State()
        registry = CollectorRegistry()
        registry.register(self)
        try:
            self._server = make_server(ADDRESS, port, _of_loopback(make_wsgi_app(registry)), _Server, _QuietHandler)
        except OSError as error:
            raise UsageError(
                f"--prometheus {port}: {ADDRESS}:{port}: {error.strerror}; choose another port, or 0 for any free port"
            ) from None
        self._thread = Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._server.server_port)

    async def send_new(self, state: State) -> None:
        self._state = state

    async def close(self, state: State) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def describe(self) -> Iterable[Metric]:
        """Return no metrics: they are known only at a scrape, and registration must not depend on them."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Yield the metrics; called by the server's thread at each scrape."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        state = self._state
        second = int(state.t) - delay(state) - 1
        load = load_metrics_at(state, second)
        for metric in SECOND_METRICS:
            gauge = gauge_of(metric)
            if metric.column in load:
                yield GaugeMetricFamily(gauge.name, gauge.help, value=gauge.value(load[metric.column]))
        readings = {host: host_metrics_at(known, second) for host, known in state.hosts.items()}
        for metric in SAMPLE_METRICS:
            gauge = gauge_of(metric)
            by_host = {host: each[metric.column] for host, each in readings.items() if metric.column in each}
            family = GaugeMetricFamily(gauge.name, gauge.help, labels=["host"])
            for host, value in by_host.items():
                family.add_metric([host], gauge.value(value))
            if by_host:
                yield family
        counts = _counts(state)
        responses = CounterMetricFamily("cockpit_responses", "complete responses by status", labels=["status"])
        for status, number in sorted(counts.statuses.items()):
            responses.add_metric([str(status)], number)
        yield responses
        errors = CounterMetricFamily("cockpit_errors", "requests without a complete response", labels=["kind"])
        for kind, number in sorted(counts.errors.items()):
            errors.add_metric([str(kind)], number)
        yield errors
        changes = sum(change.outcome == "applied" and not change.trial for change in state.changes)
        yield CounterMetricFamily("cockpit_changes", "changes that were applied", value=changes)
        # Closed load has service times only: the latency of each segment is that of its load.
        latency = Histogram.merged(segment.counts.latency for segment in state.segments)
        edges = [0, *(round(1e9 * end) for end in _BUCKETS)]
        cumulative, buckets = 0, []
        for end, number in zip(_BUCKETS, latency.between(edges), strict=True):
            cumulative += number
            buckets.append((str(end), float(cumulative)))
        buckets.append(("+Inf", float(latency.count)))
        yield HistogramMetricFamily(
            "cockpit_response_seconds", "response time", buckets=buckets, sum_value=latency.mean * latency.count
        )


def _counts(state: State) -> Counts:
    total = Counts()
    for segment in state.segments:
        total = add(total, segment.counts)
    return total
