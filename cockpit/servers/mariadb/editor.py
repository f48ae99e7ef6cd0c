"""Settings of MariaDB's option files. The server treats `[mysqld]`, `[mariadb]`, … as one section. Pure."""

from __future__ import annotations

import re

from cockpit.servers.editing import AmbiguousValue, ConfigText
from cockpit.servers.ini import IniGrammar

# Groups that all versions of the server read: https://mariadb.com/kb/en/configuring-mariadb-with-option-files/
GROUPS = frozenset({"mysqld", "server", "mariadb", "mariadbd", "client-server", "galera"})
_VERSIONED = re.compile(r"(?:mysqld|server|mariadb|mariadbd)-\d{1,2}(?:\.\d{1,2})?")
_INCLUDE = re.compile(rb"(?m)^[ \t]*!include(dir)?[ \t]+([^\s][^\n]*)$")


class MariadbGrammar(IniGrammar):
    comments = b"#"

    def same_key(self, key: str, name: str) -> bool:
        return _plain(key) == _plain(name)

    def counts(self, section: str, key: str, wanted: str) -> bool:
        if _VERSIONED.fullmatch(section):
            raise AmbiguousValue(f"{key} is in [{section}], which only this version reads; change it by hand")
        return section in GROUPS if wanted in GROUPS else section == wanted

    def includes(self, text: bytes, section: str | None) -> list[tuple[str, int]]:
        plain = ConfigText(text)
        included = []
        for match in _INCLUDE.finditer(plain):
            path = match[2].decode("utf-8", "replace").strip().rstrip("/")
            included.append((path + "/*.cnf" * bool(match[1]), plain.line_number(match.start())))
        return included


def _plain(name: str) -> str:
    """Remove the prefix loose_, which makes an unknown option a warning instead of an error."""
    return name.replace("-", "_").removeprefix("loose_")
