"""The catalogue of metrics against their other definitions."""

import pytest

from cockpit.analysis.words.thresholds import metric_text
from cockpit.metrics.catalogue import SAMPLE_METRICS, entry, host_entry
from cockpit.metrics.units import BYTES, COUNT, KIBIBYTES, LATENCY, NUMBER, PERCENT, RATE, SPAN, value_text
from cockpit.metrics.values import HOST_METRICS, is_metric
from cockpit.model.host import sar
from cockpit.model.status_metrics import PAGE_METRICS

# Metrics without a unit, besides those of status pages.
PLAIN = {"load.1", "load.5", "load.15", "speed.cpu", "processes.mean"}


def test_every_metric_of_hosts_has_an_entry() -> None:
    for name in HOST_METRICS:
        metric = host_entry(name)
        assert metric.title, name
        group = name.partition(".")[0]
        if name not in (*PLAIN, *PAGE_METRICS) and group not in ("queue", "sockets", "tcp_sockets", "request"):
            assert metric.unit is not NUMBER, name
    assert {metric.name for metric in SAMPLE_METRICS} - {"probe.round_trip"} <= set(HOST_METRICS)


@pytest.mark.parametrize(
    ("name", "unit", "text"),
    [
        ("rate", RATE, "1.23k/s"),
        ("duration", SPAN, "1234.0 s"),
        ("failed", COUNT, "1.23k"),
        ("p99.9", LATENCY, "1234000 ms"),
        ("connect.p50", LATENCY, "1234000 ms"),
        ("web1.cpu.user", PERCENT, "1234.0%"),
        ("cpu.cpu.before.user", PERCENT, "1234.0%"),
        ("web1.memory.start.used", BYTES, "1.2 KiB"),
        ("web1.processes.before.rss", BYTES, "1.2 KiB"),
        ("web1.ram.kbdirty", KIBIBYTES, "1.2 MiB"),
        ("web1.disk.sda.util", PERCENT, "1234.0%"),
        ("web1.net.eth0.errors", RATE, "1.23k/s"),
        ("web1.access.errors", RATE, "1.23k/s"),
        ("web1.accept.80", NUMBER, "1.23k"),
    ],
)
def test_a_name_has_the_unit_of_its_metric(name: str, unit: object, text: str) -> None:
    assert is_metric(name)
    metric = entry(name)
    assert metric.unit is unit
    assert value_text(metric.unit, 1234.0) == text


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("failed.share", 0.04, "0.04%"),
        ("duration", 10.023, "10.023 s"),
        ("web1.cpu.idle", 20.03, "20.03%"),
        ("web1.memory.used", 2.2e9, "2098.1 MiB"),
    ],
)
def test_a_threshold_shows_by_how_much_it_failed(name: str, value: float, text: str) -> None:
    assert metric_text(name, value) == text


def test_sar_metrics_have_its_columns_as_titles() -> None:
    for group in sar.GROUPS:
        for name, column in group.metrics.items():
            assert host_entry(f"{group.name}.{name}").title == column
