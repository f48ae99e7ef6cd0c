"""The access logs of Apache's virtual hosts. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from cockpit.servers.apache.editor import ApacheGrammar
from cockpit.servers.apache.grammar import ConfigBlock, Item, items, words
from cockpit.servers.apache.virtual_hosts import KIND
from cockpit.servers.editing import ConfigError, ConfigText, values_of
from cockpit.servers.site_logs import (
    LogSetting,
    Site,
    SiteLog,
    TimedLog,
    log_file,
    only_timed,
    port_of_address,
    quoted,
)

# Debian's envvars; the environment of the running server takes precedence.
LOG_DIRECTORY = "APACHE_LOG_DIR"
_DEBIAN = "/var/log/apache2"
_VARIABLE = re.compile(r"\$\{(\w{1,100})\}")
# A duration in a format, unless it is in whole seconds.
_DURATION = re.compile(r"%[^A-Za-z%]*(?:D|\{(?:ms|us)\}T)")
# A format with request and status. Others are left out, such as cPanel's bytes_log and the ssl_request_log of RHEL.
_REQUEST = re.compile(r"(?=.*%[<>!0-9,]*[rU])(?=.*%[<>!0-9,]*s)", re.DOTALL)
# Sections of the module that writes these logs: their condition is true.
_LOGGING = ("IfModule log_config_module", "IfModule mod_log_config.c")
# Enclosing sections, name in lower case, arguments and line.
_Directive = tuple[tuple[ConfigBlock, ...], str, list[str], int]
_COMMON = '%h %l %u %t "%r" %>s %b'


def sites(texts: Iterable[str], directory: str, variables: Mapping[str, str]) -> list[Site]:
    """Return the virtual hosts, and the main server as the last site."""
    written = [directive for text in texts for directive in directives(text)]
    logs = _Logs(written, directory, variables)
    sites: dict[ConfigBlock | None, Site] = {}
    for within, name, arguments, _ in written:
        block = next((block for block in within if block.name == KIND), None)
        site = sites.setdefault(block, Site(ports=_ports(block)))
        if name in ("servername", "serveralias"):
            sites[block] = site._replace(names=(*site.names, *map(host_of, arguments)))
        elif name in ("customlog", "transferlog"):
            log = logs.of(arguments if name == "customlog" else arguments[:1])
            sites[block] = site._replace(logs=(*site.logs, log))
    main = sites.pop(None, Site())._replace(ports=())
    every = [*(site if site.logs else site._replace(logs=main.logs) for site in sites.values()), main]
    return [site._replace(logs=tuple(filter(_has_requests, site.logs))) for site in every]


def _has_requests(log: SiteLog) -> bool:
    # A name is that of a format which was not read.
    return bool(log.file) and ("%" not in log.format or _REQUEST.match(log.format) is not None)


def timed(texts: Mapping[str, str], directory: str, variables: Mapping[str, str], log: SiteLog) -> TimedLog | None:
    """Return the `CustomLog` with the log's format and `%D`; see ServerKind."""
    if _DURATION.search(log.format):
        return None
    known = _Logs([directive for text in texts.values() for directive in directives(text)], directory, variables)
    grammar, changed, matches = ApacheGrammar(), f"{log.format} %D", []
    for file, text in texts.items():
        for section, value in values_of(grammar, text, "CustomLog", _LOGGING):
            row = list(words(value.encode()))
            if known.of([word.content.decode("utf-8", "replace") for word in row]) == log:
                raw, style = value.encode(), row[:2][-1]
                written = " ".join((raw[: row[0].end].decode(), quoted(changed, '"'))) + raw[style.end :].decode()
                matches.append(TimedLog((LogSetting(file, section, "CustomLog", written),), changed))
    return only_timed(matches)


class _Logs:
    """Access logs by the arguments of `CustomLog`."""

    def __init__(self, written: Iterable[_Directive], directory: str, variables: Mapping[str, str]) -> None:
        self._directory = directory
        self._known = {LOG_DIRECTORY: _DEBIAN, **{name: value for name, value in variables.items() if value}}
        self._formats: dict[str, str] = {}
        for _, name, arguments, _ in written:
            if name == "define" and len(arguments) == 2:
                self._known.setdefault(arguments[0], arguments[1])
            elif name == "logformat":
                self._formats["".join(arguments[1:2])] = arguments[0]

    def of(self, arguments: Sequence[str]) -> SiteLog:
        style = "".join(arguments[1:2])
        written = _VARIABLE.sub(lambda match: self._known.get(match[1], match[0]), arguments[0])
        return SiteLog(log_file(written, self._directory), self._formats.get(style, style) or _COMMON)


def directives(text: str) -> Iterator[_Directive]:
    """Yield sections, name in lower case, arguments and line of the directives with arguments."""
    try:
        parsed: list[Item] = list(items(ConfigText(text.encode())))
    except ConfigError:
        return
    for item in parsed:
        arguments = [word.content.decode("utf-8", "replace") for word in words(item.line.body, item.name.end)]
        if item.closes is None and arguments:
            name = item.name.content.decode("utf-8", "replace").lower()
            yield item.within, name, arguments, item.line.number


def _ports(block: ConfigBlock | None) -> tuple[int, ...]:
    return tuple(map(port_of_address, block.argument.split())) if block else ()


def host_of(name: str) -> str:
    """Return the host of a ServerName, which may have a scheme and a port."""
    return name.rpartition("://")[2].partition(":")[0]
