"""The access logs of nginx's `server` blocks. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from cockpit.servers.blocks import BlockPath
from cockpit.servers.editing import ConfigError, ConfigText
from cockpit.servers.nginx.editor import NginxGrammar, block_items
from cockpit.servers.site_logs import Site, SiteLog, log_file, port_of_address

_ESCAPED = re.compile(r"\\(.)")
_COMBINED = (
    '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent"'
)


def sites(texts: Iterable[str], directory: str, variables: Mapping[str, str]) -> list[Site]:
    """Return the servers, and the logs of the block `http` as the last site."""
    formats, servers, main = {"combined": _COMBINED}, [], list[tuple[str, str]]()
    for text in texts:
        logs, names, ports = list[tuple[str, str]](), list[str](), list[int]()
        for within, name, arguments in _directives(text):
            if name == "log_format" and arguments:
                formats[arguments[0]] = "".join(word for word in arguments[1:] if not word.startswith("escape="))
            elif name == "access_log" and within[-1:] in ((), ("http",), ("server",)) and arguments:
                style = next((word for word in arguments[1:] if "=" not in word), "combined")
                (logs if within[-1:] == ("server",) else main).append((arguments[0], style))
            elif name == "server_name":
                names += arguments
            elif name == "listen" and arguments:
                ports.append(port_of_address(arguments[0]))
            elif name == "}" and within[-1:] == ("server",):
                servers.append((tuple(names), tuple(ports or [80]), logs or main))
                logs, names, ports = [], [], []

    def known(logs: Iterable[tuple[str, str]]) -> tuple[SiteLog, ...]:
        named = ((log_file(file, directory), formats.get(style, "")) for file, style in logs)
        return tuple(SiteLog(file, style) for file, style in named if file and style)

    # The list of the block `http` is complete only now.
    return [*(Site(names, ports, known(logs)) for names, ports, logs in servers), Site(logs=known(main))]


def _directives(text: str) -> Iterator[tuple[BlockPath, str, list[str]]]:
    """Yield blocks, name and arguments of the directives of `http`; at the end of a block, the block and `}`."""
    raw = ConfigText(text.encode())
    try:
        parsed = list(block_items(raw))
    except ConfigError:
        return
    for item in parsed:
        path = item.closes or item.within
        if path[:1] == ("stream",):
            continue
        spans = NginxGrammar().words(raw, item.value) if item.closes is None else []
        yield path, item.name.decode("utf-8", "replace"), [_unquoted(raw.shown(*span)) for span in spans]


def _unquoted(word: str) -> str:
    if word[:1] in ("'", '"') and word[-1:] == word[:1]:
        return _ESCAPED.sub(lambda match: match[1] if match[1] in "\"'\\" else match[0], word[1:-1])
    return word
