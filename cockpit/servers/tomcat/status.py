"""The status page of Tomcat's manager as XML: the JVM's memory, and threads and requests per connector."""

from __future__ import annotations

from xml.etree import ElementTree

from cockpit.servers.kind import StatusPageKind
from cockpit.servers.status import NAME_CHARS, NotThePageError, PageMetrics, number

_GROUPS = ("threadInfo", "requestInfo")
_MAXIMA = ("maxTime",)


def parse(page: str) -> PageMetrics:
    """Return `memory.free`, `.total`, `.max` (bytes), and the counters over all connectors.

    With several connectors, the counters per connector are added, prefixed with its name.
    """
    status = _tree(page)
    values: dict[str, float] = {}
    for name, value in _metrics(status.find("jvm/memory")).items():
        values[f"memory.{name}"] = value
    connectors = status.findall("connector")
    if not connectors:
        raise NotThePageError("no connector on the page: the URL must end in /manager/status?XML=true")
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
    return PageMetrics(values, {})


def _tree(page: str) -> ElementTree.Element:
    # The real page has no declarations; entities in a forged page could exhaust the memory.
    if "<!DOCTYPE" in page or "<!ENTITY" in page:
        raise NotThePageError("not the XML of Tomcat's manager: the URL must end in /manager/status?XML=true")
    try:
        status = ElementTree.fromstring(page)
    except ElementTree.ParseError:
        raise NotThePageError("not the XML of Tomcat's manager: the URL must end in /manager/status?XML=true") from None
    return status


def _metrics(element: ElementTree.Element | None) -> dict[str, float]:
    found = {name: number(text) for name, text in element.attrib.items()} if element is not None else {}
    return {name: value for name, value in found.items() if value is not None}


_COUNTERS = frozenset({"requestCount", "errorCount", "bytesReceived", "bytesSent", "processingTime"})

STATUS = StatusPageKind(
    name="tomcat",
    url="/manager/status?XML=true",
    parse=parse,
    not_found="is the manager application installed? (Debian: tomcat10-admin)",
    forbidden="the user needs the role manager-status",
    # The name of the connector can precede that of the metric.
    is_counter=lambda name: name.rpartition(" ")[2] in _COUNTERS,
    means={"busy": "currentThreadsBusy", "threads": "currentThreadCount", "memory_free": "memory.free"},
    rates={"requests": "requestCount", "errors": "errorCount", "bytes_sent": "bytesSent"},
)
