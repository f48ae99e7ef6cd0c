"""Settings of PHP-FPM's pools (`[www]`), and of php.ini, whose sections have no effect. Pure."""

from __future__ import annotations

import re

from cockpit.servers.editing import AmbiguousValue
from cockpit.servers.ini import IniGrammar

# Sections of php.ini that apply to a single host or directory.
_SCOPED = ("HOST=", "PATH=")


class PhpFpmGrammar(IniGrammar):
    including = ("include",)
    variable = re.compile(r"\$\{\w+(?::-[^{}\"']{0,200})?\}|\$pool")

    def counts(self, section: str, key: str, wanted: str) -> bool:
        if section.upper().startswith(_SCOPED):
            raise AmbiguousValue(f"{key} is set in [{section[:80]}] for some requests only; change it by hand")
        return section == wanted
