"""The pools with `pm.status_path` in the configuration of PHP-FPM. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cockpit.servers.configured_pages import ConfiguredPage
from cockpit.servers.editing import ConfigError, ConfigText
from cockpit.servers.php_fpm.editor import PhpFpmGrammar
from cockpit.servers.php_fpm.status import STATUS

_PATH, _LISTENS = "pm.status_path", ("pm.status_listen", "listen")


def pages(texts: Mapping[str, str], ports: Sequence[int]) -> Iterator[ConfiguredPage]:
    """Yield the pages; see ServerKind."""
    pools: dict[str, dict[str, tuple[str, str, int]]] = {}
    for file, text in texts.items():
        raw = ConfigText(text.encode())
        try:
            parsed = PhpFpmGrammar().parse(raw)
        except ConfigError:
            continue
        for line in parsed.lines:
            value = raw.shown(*line.value).strip("\"'").replace("$pool", line.section)
            pools.setdefault(line.section, {})[line.key] = (value, file, raw.line_number(line.start))
    for pool, settings in pools.items():
        if _PATH in settings:
            path, file, number = settings[_PATH]
            address = next((settings[key][0] for key in _LISTENS if key in settings), "")
            address = f"127.0.0.1:{address}" if address.isdecimal() else address
            yield ConfiguredPage(STATUS.name, file, number, path, "?json", pool=pool, fastcgi=address)
