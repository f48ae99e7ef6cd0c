"""Configuration of the demo web server: a subset of Apache's directives, in Apache's grammar."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from cockpit.servers.apache.grammar import ConfigBlock, Item, items, words
from cockpit.servers.editing import ConfigError, ConfigText

# Apache's ServerLimit: maximum number of children, whatever the MaxClients.
SERVER_LIMIT = 256

# Names of this server's process model in `<IfModule>`.
_MODULES = ("prefork", "prefork.c", "mpm_prefork_module")


class WebConfigError(Exception):
    """An invalid configuration, in one line: file, line number if known, problem, allowed values."""


class WebSettings(NamedTuple):
    """Settings, with times in seconds and absolute paths. Without `document_root` the built-in page is served."""

    listen: tuple[str, int]
    document_root: Path | None = None
    pid_file: Path | None = None
    error_log: Path | None = None
    page_cost: int = 0  # kilobytes of text compressed for each page
    keep_alive: bool = True
    keep_alive_timeout: int = 5
    start_servers: int = 5
    min_spare: int = 5
    max_spare: int = 10
    max_clients: int = 150
    max_requests_per_child: int = 0


class _Directive(NamedTuple):
    field: str
    read: Callable[[str, Path], object]


def _number(low: int, high: int | None = None) -> Callable[[str, Path], int]:
    allowed = f"from {low} to {high}" if high is not None else f"of at least {low}"

    def read(text: str, _base: Path) -> int:
        if not (text.isascii() and text.isdigit()) or int(text) < low or (high is not None and int(text) > high):
            raise ValueError(f"takes a whole number {allowed}")
        return int(text)

    return read


def _on_off(text: str, _base: Path) -> bool:
    if text.lower() not in ("on", "off"):
        raise ValueError("takes On or Off")
    return text.lower() == "on"


def _path(text: str, base: Path) -> Path:
    return base / text


def _directory(text: str, base: Path) -> Path:
    path = base / text
    if not path.is_dir():
        raise ValueError("takes a directory that exists")
    return path


def _address(text: str, _base: Path) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise ValueError("takes a port or address:port, the port from 0 (any free one) to 65535")
    return host or "127.0.0.1", int(port)


_DIRECTIVES = {
    "listen": _Directive("listen", _address),
    "documentroot": _Directive("document_root", _directory),
    "pidfile": _Directive("pid_file", _path),
    "errorlog": _Directive("error_log", _path),
    "pagecost": _Directive("page_cost", _number(0, 100_000)),
    "keepalive": _Directive("keep_alive", _on_off),
    "keepalivetimeout": _Directive("keep_alive_timeout", _number(1, 3600)),
    "startservers": _Directive("start_servers", _number(1, SERVER_LIMIT)),
    "minspareservers": _Directive("min_spare", _number(1, SERVER_LIMIT)),
    "maxspareservers": _Directive("max_spare", _number(1)),
    "maxclients": _Directive("max_clients", _number(1, SERVER_LIMIT)),
    "maxrequestsperchild": _Directive("max_requests_per_child", _number(0)),
    # Names of the last two since Apache 2.4.
    "maxrequestworkers": _Directive("max_clients", _number(1, SERVER_LIMIT)),
    "maxconnectionsperchild": _Directive("max_requests_per_child", _number(0)),
}


def load(file: Path) -> WebSettings:
    """Read `file`. Later lines win; relative paths start at the file's directory.

    `MaxSpareServers` is raised to `MinSpareServers` + 1 if it is lower, as Apache does. Raises WebConfigError.
    """
    try:
        text = file.read_bytes()
    except OSError as error:
        raise WebConfigError(f"{file}: cannot be read: {error.strerror}") from None
    try:
        values = dict(_values(text, file.absolute().parent))
    except ConfigError as error:
        raise WebConfigError(f"{file}:{error.line}: {error.reason}") from None
    if "listen" not in values:
        raise WebConfigError(f"{file}: no Listen directive; add one, e.g. `Listen 127.0.0.1:8080`")
    settings = WebSettings(**values)  # type: ignore[arg-type]  # each value went through its directive's reader
    return settings._replace(max_spare=max(settings.max_spare, settings.min_spare + 1))


def _values(text: bytes, base: Path) -> Iterator[tuple[str, object]]:
    """Yield the fields set outside of sections of other modules."""
    for item in items(ConfigText(text)):
        if item.closes:
            _check_section(item.closes)
        elif all(_applies(block) for block in item.within):
            yield _field(item, base)


def _check_section(block: ConfigBlock) -> None:
    if block.name != "ifmodule" or len(block.argument.split()) != 1:
        raise ConfigError(f"unknown section <{block.header}>; use <IfModule NAME>", block.line.number)


def _applies(block: ConfigBlock) -> bool:
    _check_section(block)
    name = block.argument.lower()
    return (name.lstrip("!") in _MODULES) != name.startswith("!")


def _field(item: Item, base: Path) -> tuple[str, object]:
    body, line = item.line.body, item.line.number
    name = item.name.content.decode("utf-8", "replace")
    directive = _DIRECTIVES.get(name.lower())
    if directive is None:
        raise ConfigError(f"unknown directive {name}, perhaps misspelled", line)
    value = body[item.name.end :].strip().decode("utf-8", "replace")
    arguments = list(words(body, item.name.end))
    if len(arguments) != 1 or not arguments[0].closed or not arguments[0].content:
        raise ConfigError(f"{name} takes one value, found {value or 'none'}", line)
    try:
        return directive.field, directive.read(os.fsdecode(arguments[0].content), base)
    except ValueError as error:
        raise ConfigError(f"{name} {error}, found {value}", line) from None
