"""The status pages in the configuration of a server, and the URLs at which its host can request them. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from fnmatch import fnmatchcase
from ipaddress import ip_address
from typing import NamedTuple

from cockpit.servers.site_logs import port_of_address

# After an address with TLS.
TLS = " ssl"
# Paths and addresses that are used as written; others need an encoding, or a variable of the running server.
_PATH = re.compile(r"/[\w/.~-]{0,200}", re.ASCII)
_ADDRESS = re.compile(r"(?:([\w.*-]+|\[[0-9a-fA-F:.]+\]):)?\d{1,5}|([\w.*-]+|\[[0-9a-fA-F:.]+\])", re.ASCII)
_ANY = frozenset({"", "*", "_default_", "0.0.0.0", "::", "localhost"})
_HTTPS = 443


class ConfiguredPage(NamedTuple):
    """A status page of a `kind` in line `line` of a `file`, at the `path` and `query` of a site with the addresses
    `listens` (with TLS: and TLS) and `names`, as written there. `problem`: why it cannot be requested, "" if it can.

    A page of a PHP-FPM `pool` is served over FastCGI at the address `fastcgi`, without a site.
    """

    kind: str
    file: str
    line: int
    path: str = ""
    query: str = ""
    listens: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    problem: str = ""
    pool: str = ""
    fastcgi: str = ""

    @property
    def obstacle(self) -> str:
        """The reason why no URL can be made; "" if one can."""
        return self.problem or ("" if _PATH.fullmatch(self.path) else f"its path {self.path[:80]!r} needs an encoding")

    def has_name(self, name: str) -> bool:
        return any(fnmatchcase(name, each.lower()) for each in self.names)

    def urls(self, name: str, ports: Collection[int], addresses: Collection[str]) -> Iterator[str]:
        """Yield the URLs on a host by `localhost` or one of its IP `addresses`, and by the target's host `name` if the
        site has it; only on `ports` (none: any)."""
        for listen in self.listens:
            written, port = listen.removesuffix(TLS), port_of_address(listen.removesuffix(TLS))
            address = _ADDRESS.fullmatch(written)
            if self.obstacle or address is None or not 0 < port < 1 << 16 or (ports and port not in ports):
                continue
            host = (address[1] or address[2] or "").strip("[]").lower()
            hosts = ["localhost"] if host in _ANY else [host] if host in addresses or _is_loopback(host) else []
            hosts += [name] if self.has_name(name) else []
            is_tls = port == _HTTPS or listen.endswith(TLS)
            suffix = "" if port == (_HTTPS if is_tls else 80) else f":{port}"
            for each in dict.fromkeys(hosts):
                shown = f"[{each}]" if ":" in each else each
                yield f"{'https' if is_tls else 'http'}://{shown}{suffix}{self.path}{self.query}"


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
