"""Squid's cache manager: `counters` is a line each of `name = value`, `info` an indented report for people."""

from __future__ import annotations

import re

from cockpit.hosts.status.said import NotThePageError, Said, number

_FIGURE = re.compile(r"(-?\d+(?:\.\d+)?)\s*(%|[A-Za-z/ .]*)$")
# A row of a report that gives a figure for each of two spans of time.
_SPANS = re.compile(r"5min: (-?[\d.]+)%?, 60min: (-?[\d.]+)%?$")
_TWO = re.compile(r"(-?\d+\.\d+)\s+(-?\d+\.\d+)$")
# Rows that begin with the figure, under "Internal Data Structures".
_COUNTED = re.compile(r"(\d+) ([A-Za-z].*)$")


def parse_counters(page: str) -> Said:
    values: dict[str, float] = {}
    for line in page.splitlines():
        name, equals, rest = line.partition(" = ")
        value = number(rest.split(" ")[0]) if equals else None
        if value is not None:
            values[name.strip()] = value
    if "client_http.requests" not in values:
        raise NotThePageError("no client_http.requests on it: the URL should end in /squid-internal-mgr/counters")
    return Said(values, {})


def parse_info(page: str) -> Said:
    """Figures by the names of their rows; of rows with two spans of time, `5min` or `60min` behind it."""
    values: dict[str, float] = {}
    text: dict[str, str] = {}
    for line in page.splitlines():
        name, colon, rest = line.strip().partition(":")
        rest = rest.strip()
        if line.startswith("Squid Object Cache"):
            text[name] = rest
        elif not colon and (match := _COUNTED.match(name)):
            values[match[2]] = float(match[1])
        elif colon and (match := _SPANS.match(rest) or _TWO.match(rest)):
            values |= {f"{name} 5min": float(match[1]), f"{name} 60min": float(match[2])}
        elif colon and (match := _FIGURE.match(rest)):
            values[name] = float(match[1])
    if "Squid Object Cache" not in text:
        raise NotThePageError("no Squid Object Cache on it: the URL should end in /squid-internal-mgr/info")
    return Said(values, text)
