"""The access logs of nginx's `server` blocks. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from cockpit.servers.blocks import BlockPath, path_of
from cockpit.servers.editing import ConfigError, ConfigText, values_of
from cockpit.servers.nginx.editor import NginxGrammar, block_items
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

_ESCAPED = re.compile(r"\\(.)")
_COMBINED = (
    '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent"'
)


def sites(texts: Iterable[str], directory: str, variables: Mapping[str, str]) -> list[Site]:
    """Return the servers, and the logs of the block `http` as the last site."""
    formats, servers, main = {"combined": _COMBINED}, [], list[tuple[str, str]]()
    for text in texts:
        logs, names, ports = list[tuple[str, str]](), list[str](), list[int]()
        for within, name, arguments, _ in directives(text):
            if name == "log_format" and arguments:
                formats[arguments[0]] = "".join(word for word in arguments[1:] if _is_text(word))
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


def timed(texts: Mapping[str, str], directory: str, variables: Mapping[str, str], log: SiteLog) -> TimedLog | None:
    """Return a new `log_format` with `$request_time`, before the `access_log` that uses it; see ServerKind."""
    if "request_time" in log.format:
        return None
    formats = {
        arguments[0]: arguments[1:]
        for text in texts.values()
        for _, name, arguments, _ in directives(text)
        if name == "log_format" and arguments
    }
    grammar, changed, matches = NginxGrammar(), f"{log.format} $request_time", []
    for file, text in texts.items():
        for section, value in values_of(grammar, text, "access_log"):
            path, *others = map(unquoted, value.split())
            if log_file(path, directory) != log.file:
                continue
            style = next((word for word in others if "=" not in word), "combined")
            name = f"{style}_timed"
            written = "".join(word for word in formats.get(style, [_COMBINED]) if _is_text(word))
            if name in formats or written != log.format:
                return None
            options = [word for word in formats.get(style, []) if not _is_text(word)]
            http = "http {" if path_of(section)[:1] == ("http",) else None
            rest = [word for word in others if word != style]
            settings = (
                LogSetting(file, http, f"log_format {name}", " ".join((*options, quoted(changed, "'")))),
                LogSetting(file, section, "access_log", " ".join((value.split()[0], name, *rest))),
            )
            matches.append(TimedLog(settings, changed))
    return only_timed(matches)


def _is_text(word: str) -> bool:
    return not word.startswith("escape=")


def directives(text: str) -> Iterator[tuple[BlockPath, str, list[str], int]]:
    """Yield blocks, name, arguments and line of the directives of `http`; at the end of a block, the block and `}`."""
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
        words = [unquoted(raw.shown(*span)) for span in spans]
        yield path, item.name.decode("utf-8", "replace"), words, raw.line_number(item.begin)


def unquoted(word: str) -> str:
    if word[:1] in ("'", '"') and word[-1:] == word[:1]:
        return _ESCAPED.sub(lambda match: match[1] if match[1] in "\"'\\" else match[0], word[1:-1])
    return word
