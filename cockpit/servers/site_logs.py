"""The access logs in the configuration of a server, by site: an Apache virtual host, an nginx `server`. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

_PORT = re.compile(r"(?:^|:)(\d{1,5})$")


class SiteLog(NamedTuple):
    """An access log and its `format`: that of the configuration, or the name of a preset of log formats."""

    file: str
    format: str


class LogSetting(NamedTuple):
    """A directive of a server in a file and section, and its new value."""

    file: str
    section: str | None
    directive: str
    value: str


class TimedLog(NamedTuple):
    """The settings with which a server logs the duration of each request, and the format of the log then."""

    settings: tuple[LogSetting, ...]
    format: str


def only_timed(logs: Sequence[TimedLog]) -> TimedLog | None:
    """Return the log if it is written by a single directive; other lines would keep their format."""
    return logs[0] if len(logs) == 1 else None


def quoted(format: str, quote: str) -> str:
    """Return a format in quotes as in a configuration file."""
    escaped = format.replace("\\", "\\\\").replace(quote, f"\\{quote}")
    return f"{quote}{escaped}{quote}"


class Site(NamedTuple):
    """A site by `names` (with wildcards) and `ports`, and its access logs; no ports: the server without sites, which
    gets the requests for no other site."""

    names: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    logs: tuple[SiteLog, ...] = ()


def logs_for(sites: Sequence[Site], name: str, port: int | None) -> tuple[SiteLog, ...]:
    """Return the logs of the requests for a name and port (None: unknown); several if the site is not certain."""
    at_port = [site for site in sites if site.ports and (port is None or port in site.ports)]
    named = [site for site in at_port if any(fnmatchcase(name.lower(), each.lower()) for each in site.names)]
    chosen = named or at_port or [site for site in sites if not site.ports]
    return tuple(dict.fromkeys(log for site in chosen for log in site.logs))


def port_of_address(address: str, default: int = 80) -> int:
    """Return the port of an address to listen on, e.g. `[::]:443`, `*:80`, `8080`, `localhost`."""
    match = _PORT.search(address)
    return int(match[1]) if match else default


def log_file(written: str, directory: str) -> str:
    """Return the absolute path of a log; "": a program, syslog, a path with variables, or no log."""
    if not written or written[0] == "|" or "$" in written or ":" in written or written in ("off", "stdout", "stderr"):
        return ""
    return written if written.startswith("/") else f"{directory.rstrip('/')}/{written}" if directory else ""
