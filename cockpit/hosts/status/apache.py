"""Apache's `server-status?auto`: a line each of `Name: value`."""

from __future__ import annotations

from cockpit.hosts.status.page_metrics import NotThePageError, PageMetrics, number


def parse(page: str) -> PageMetrics:
    """All its figures; as text the scoreboard, the version, the MPM and whatever else is no number."""
    values: dict[str, float] = {}
    text: dict[str, str] = {}
    for line in page.splitlines():
        name, colon, rest = line.partition(": ")
        if not colon:
            continue
        value = None if name == "Scoreboard" else number(rest)
        if value is None:
            text[name] = rest
        else:
            values[name] = value
    if "BusyWorkers" not in values:
        raise NotThePageError("no BusyWorkers on it: the URL should end in server-status?auto")
    return PageMetrics(values, text)
