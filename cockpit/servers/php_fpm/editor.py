"""Settings of PHP-FPM's pools (`[www]`), and of php.ini, whose sections have no effect. Pure."""

from __future__ import annotations

import re

from cockpit.servers.editing import AmbiguousValue, ConfigText, Location
from cockpit.servers.ini import IniGrammar, IniText

# The rest of php.ini applies to a single host or directory from such a section on, also below other sections.
_SCOPED = re.compile(rb"(?mi)^[ \t]*\[(?:HOST|PATH)=")
_SOME_REQUESTS = "for some requests"
# Lines of a pool or of the main file, not of php.ini.
_POOLS = re.compile(
    rb"(?m)^[ \t]*(?:\[global\]|(?:pm|listen)(?:\.\w+)?[ \t]*=|include[ \t]*=|request_\w+[ \t]*=|"
    rb"(?:php_(?:admin_)?(?:value|flag)|env)\[)"
)


class PhpFpmGrammar(IniGrammar):
    including = ("include",)
    variable = re.compile(r"\$\{\w+(?::-[^{}\"']{0,200})?\}|\$pool")
    several_lines = True

    def locate(self, text: ConfigText, name: str, section: str | None) -> Location:
        return super().locate(text, name, section if _POOLS.search(text) else "")

    def parse(self, text: ConfigText) -> IniText:
        parsed = super().parse(text)
        if _POOLS.search(text):
            return parsed
        headers = [match.start() for match in _SCOPED.finditer(text)]
        quoted = {header for header in headers for line in parsed.lines if line.start < header < line.end}
        end = next((header for header in headers if header not in quoted), len(text))
        lines = [line._replace(section=_SOME_REQUESTS if line.start > end else "") for line in parsed.lines]
        return IniText(lines, {"": end})

    def counts(self, section: str, key: str, wanted: str) -> bool:
        if section == _SOME_REQUESTS:
            raise AmbiguousValue(f"{key} is set below [HOST=…] or [PATH=…] {section} only; change it by hand")
        return section == wanted
