"""The access logs of Apache's virtual hosts. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from cockpit.servers.apache.grammar import ConfigBlock, Item, items, words
from cockpit.servers.apache.virtual_hosts import KIND
from cockpit.servers.editing import ConfigError, ConfigText
from cockpit.servers.site_logs import Site, SiteLog, log_file, port_of_address

# Debian's envvars; the environment of the running server takes precedence.
LOG_DIRECTORY = "APACHE_LOG_DIR"
_DEBIAN = "/var/log/apache2"
_VARIABLE = re.compile(r"\$\{(\w{1,100})\}")
_COMMON = '%h %l %u %t "%r" %>s %b'


def sites(texts: Iterable[str], directory: str, variables: Mapping[str, str]) -> list[Site]:
    """Return the virtual hosts, and the main server as the last site."""
    directives = [directive for text in texts for directive in _directives(text)]
    known = {LOG_DIRECTORY: _DEBIAN, **{name: value for name, value in variables.items() if value}}
    formats: dict[str, str] = {}
    for _, name, arguments in directives:
        if name == "define" and len(arguments) == 2:
            known.setdefault(arguments[0], arguments[1])
        elif name == "logformat":
            formats["".join(arguments[1:2])] = arguments[0]
    sites: dict[ConfigBlock | None, Site] = {}
    for block, name, arguments in directives:
        site = sites.setdefault(block, Site(ports=_ports(block)))
        if name in ("servername", "serveralias"):
            sites[block] = site._replace(names=(*site.names, *map(_host, arguments)))
        elif name in ("customlog", "transferlog"):
            style = arguments[1] if name == "customlog" and len(arguments) > 1 else ""
            file = log_file(_VARIABLE.sub(lambda match: known.get(match[1], match[0]), arguments[0]), directory)
            log = SiteLog(file, formats.get(style, style) or _COMMON)
            sites[block] = site._replace(logs=(*site.logs, *((log,) if file else ())))
    main = sites.pop(None, Site())._replace(ports=())
    return [*(site if site.logs else site._replace(logs=main.logs) for site in sites.values()), main]


def _directives(text: str) -> Iterator[tuple[ConfigBlock | None, str, list[str]]]:
    """Yield virtual host (None: the main server), name in lower case, and arguments of the directives with any."""
    try:
        parsed: list[Item] = list(items(ConfigText(text.encode())))
    except ConfigError:
        return
    for item in parsed:
        arguments = [word.content.decode("utf-8", "replace") for word in words(item.line.body, item.name.end)]
        if item.closes is None and arguments:
            block = next((block for block in item.within if block.name == KIND), None)
            yield block, item.name.content.decode("utf-8", "replace").lower(), arguments


def _ports(block: ConfigBlock | None) -> tuple[int, ...]:
    return tuple(map(port_of_address, block.argument.split())) if block else ()


def _host(name: str) -> str:
    """Return the host of a ServerName, which may have a scheme and a port."""
    return name.rpartition("://")[2].partition(":")[0]
