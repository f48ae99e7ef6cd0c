"""Metrics of each second as Prometheus gauges: names in base units (seconds, bytes, ratios), and their help.

https://prometheus.io/docs/practices/naming/
"""

from __future__ import annotations

from typing import NamedTuple

from cockpit.metrics.catalogue import Metric

# Units of OpenMetrics at the end of a gauge's name.
_UNITS = ("seconds", "bytes", "ratio")


class Gauge(NamedTuple):
    """The gauge of a column (export.series), whose cells are multiplied by `scale`. `unit`: "" for a number or rate."""

    name: str
    help: str
    unit: str
    scale: float

    def value(self, cell: float) -> float:
        # A quotient is rounded once, a product with 0.01 twice, because 0.01 is not a binary fraction.
        return cell / round(1 / self.scale) if self.scale < 1 else cell * self.scale


def gauge_of(metric: Metric) -> Gauge:
    """Return the gauge of a metric of seconds or samples: `cockpit_host_cpu_idle_ratio`."""
    end = metric.unit.gauge
    name = "_".join(filter(None, ("cockpit", "load" if metric.second else "host", metric.gauge, end)))
    return Gauge(name, metric.help, end if end in _UNITS else "", metric.unit.per_gauge)
