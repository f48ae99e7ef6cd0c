"""The status page of Tomcat's manager as XML: the JVM's memory, and threads and requests per connector."""

from __future__ import annotations

from xml.etree import ElementTree

from cockpit.servers.kind import StatusPageKind
from cockpit.servers.status import NAME_CHARS, number

_GROUPS = ("threadInfo", "requestInfo")
_MAXIMA = ("maxTime",)


def _rows(page: str) -> dict[str, float]:
    """Return `memory.free`, `.total`, `.max` (bytes), and the counters over all connectors.

    With several connectors, the counters per connector are added, prefixed with its name.
    """
    # The real page has no declarations; entities in a forged page could exhaust the memory.
    if "<!DOCTYPE" in page or "<!ENTITY" in page:
        return {}
    status = ElementTree.fromstring(page)
    values: dict[str, float] = {}
    for name, value in _metrics(status.find("jvm/memory")).items():
        values[f"memory.{name}"] = value
    connectors = status.findall("connector")
    for connector in connectors:
        metrics: dict[str, float] = {}
        for group in _GROUPS:
            metrics |= _metrics(connector.find(group))
        for name, value in metrics.items():
            before = values.get(name, 0.0)
            values[name] = max(before, value) if name in _MAXIMA else before + value
        if len(connectors) > 1:
            label = connector.get("name", "").strip('"')[:NAME_CHARS]
            values |= {f"{label} {name}": value for name, value in metrics.items()}
    return values


def _metrics(element: ElementTree.Element | None) -> dict[str, float]:
    metrics = {name: number(text) for name, text in element.attrib.items()} if element is not None else {}
    return {name: value for name, value in metrics.items() if value is not None}


_COUNTERS = frozenset({"requestCount", "errorCount", "bytesReceived", "bytesSent", "processingTime"})

STATUS = StatusPageKind(
    name="tomcat",
    url="/manager/status?XML=true",
    rows=_rows,
    required="requestCount",
    hint="the URL must end in /manager/status?XML=true",
    not_found="is the manager application installed? (Debian: tomcat10-admin)",
    forbidden="the user needs the role manager-status",
    # The name of the connector can precede that of the metric.
    is_counter=lambda name: name.rpartition(" ")[2] in _COUNTERS,
    means={"busy": "currentThreadsBusy", "threads": "currentThreadCount", "memory_free": "memory.free"},
    rates={"requests": "requestCount", "errors": "errorCount", "bytes_sent": "bytesSent"},
)
