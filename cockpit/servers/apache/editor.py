"""Locate, encode and check the directives of an Apache configuration text. Pure.

A value, as text, is the arguments of the directive as in the file (`index.html index.php`, `"a b"`), without
unnecessary quotes around a single word. If a directive is set several times, the last one counts.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from cockpit.servers.apache import virtual_hosts
from cockpit.servers.apache.coercions import WHOLE_NUMBERS, coerced_pair
from cockpit.servers.apache.grammar import MACRO, ConfigBlock, Item, items, lines, word_at, words
from cockpit.servers.apache.settings import SETTINGS
from cockpit.servers.editing import (
    SPACE,
    ConfigError,
    ConfigText,
    Grammar,
    Insertion,
    Location,
    Statement,
    encode_line,
    excerpt,
    last_line,
    nested_indent,
)

# Sections whose content belongs to the enclosing section if their condition is true.
CONDITIONAL = frozenset({"ifmodule", "ifdefine", "ifversion", "iffile", "ifdirective", "ifsection"})
# Old names of directives.
_RENAMED = {b"maxclients": b"maxrequestworkers", b"maxrequestsperchild": b"maxconnectionsperchild"}
# The names of an MPM in conditions: https://httpd.apache.org/docs/2.4/mod/core.html#ifmodule
MPMS = ("prefork", "worker", "event")
_MPM_NAMES = "mpm_{}_module", "{}.c"
_MPM = re.compile("|".join(re.escape(form.format(mpm)) for mpm in MPMS for form in _MPM_NAMES))
# Known directives with one argument.
_SINGLE = frozenset(map(str.lower, SETTINGS)) - {"allowoverride", "customlog", "directoryindex", "listen", "protocols"}
_NUMBER = re.compile(r"-?[0-9]+|\$\{\w+\}")


class ApacheGrammar(Grammar):
    """Directives in a `section`, e.g. `IfModule mpm_prefork_module`, or `VirtualHost *:80 (ServerName a.example)` of
    several virtual hosts. None: at the top level, or a setting of an MPM in the section of that MPM."""

    including = ("Include", "IncludeOptional")
    variable = re.compile(r"\$\{\w+\}")

    def locate(self, text: ConfigText, name: str, section: str | None) -> Location:
        survey = _Survey(text, name, section)
        return Location(
            tuple(_statement(text, item) for item in survey.matches), lambda: _insertion(text, name, survey)
        )

    def sections_of(self, text: bytes, names: Collection[str]) -> dict[str, set[str]]:
        """Return the sections except conditional sections and macros; see Grammar.sections_of."""
        sections: dict[str, set[str]] = {}
        known = {_current(name.encode()): name for name in names}
        for item in virtual_hosts.distinguished(list(items(ConfigText(text)))):
            name = known.get(_current(item.name.content))
            if not name or item.closes or not item.within or any(block.name == MACRO for block in item.within):
                continue
            if item.within[-1].name not in CONDITIONAL:
                sections.setdefault(item.within[-1].header, set()).add(name)
        return sections

    def conditions_of(self, text: bytes, name: str, section: str | None) -> tuple[str, ...]:
        survey = _Survey(ConfigText(text), name, section)
        within = survey.matches[-1].within if survey.matches else (survey.block,)
        return tuple(block.header for block in within if block and block.name in CONDITIONAL)

    def encode(self, value: str, like: bytes | None = None) -> bytes:
        raw = encode_line(value)
        if raw.endswith(b"\\"):
            raise ConfigError("a value must not end in a backslash: it would join the next line")
        if not all(word.closed for word in words(raw)):
            raise ConfigError("a value must not contain an unclosed quote")
        plain = shown(raw).encode()
        if like is not None and shown(like).encode() == plain:
            return like
        old = list(words(like)) if like else []
        if _is_plain(plain) and len(old) == 1 and old[0].quote and old[0].closed and _is_plain(old[0].content):
            return old[0].quote + plain + old[0].quote
        return plain

    def refusal(self, name: str, value: str) -> str:
        raw = self.encode(value)
        if len(list(words(raw))) > 1 and name.lower() in _SINGLE:
            return "is more than one word; put it in quotes"
        if name.lower() in WHOLE_NUMBERS and not _NUMBER.fullmatch(raw.decode()):
            return "is not a whole number; Apache would silently read another number"
        return ""

    def coerced(self, text: bytes, name: str, section: str | None) -> str:
        return coerced_pair(name, lambda other: self.number(text, other, section))


def shown(raw: bytes) -> str:
    """Return a directive's arguments as text, without unnecessary quotes around a single word."""
    word = word_at(raw, 0)
    if word and word.quote and word.closed and word.end == len(raw) and _is_plain(word.content):
        raw = word.content
    return raw.decode("utf-8", "backslashreplace")


class _Survey:
    """The occurrences of a directive in the requested section (`matches`) and elsewhere (`strays`), the section's last
    `block`, its indent, and the end where the directive would be inserted. Raises ConfigError if it is unclear which
    line counts."""

    def __init__(self, text: ConfigText, directive: str, section: str | None) -> None:
        kind, _, rest = (section or "").partition(" ")
        self._directive, self._section, self._header = directive, section, (kind.lower(), rest.strip())
        name = _current(directive.encode())
        blocks: list[ConfigBlock] = []
        self.matches: list[Item] = []
        self._strays: list[Item] = []
        self._closing: Item | None = None
        self.indent = b""
        for item in virtual_hosts.addressed(list(items(text)), self._header[1]):
            inside = self._inside(item)
            if item.closes:
                defined = any(block.name == MACRO for block in item.within)
                if section is not None and (item.closes.name, item.closes.argument) == self._header and not defined:
                    blocks.append(item.closes)
                    self._closing = item._replace(within=(*item.within, item.closes))
                continue
            if inside == ():
                self.indent = item.line.body[: item.name.start]
            if _current(item.name.content) == name:
                (self.matches if inside == () else self._strays).append(item)
        if section is None:
            self.matches = self.matches or _of_mpm(name, self._strays)
        if len(blocks) > 1 and self._header[0] == virtual_hosts.KIND:
            raise ConfigError(_several(text, section or "", blocks))
        self.block = blocks[-1] if blocks else None
        self.close = self._closing.line.start if self._closing else len(text)
        self._check_place()
        self._check_conditions()

    def _inside(self, item: Item) -> tuple[ConfigBlock, ...] | None:
        return item.within if self._section is None else _below(item.within, self._header)

    def _check_place(self) -> None:
        """Raise ConfigError if the directive could be read or written in the wrong section."""
        if self._section is not None and self.block is None:
            hint = f"; {self._directive} is {_place(self._strays[-1])}" if self._strays else ""
            raise ConfigError(f"no section <{self._section}>{hint}")
        if self.matches or self._section is None:
            return
        for item in self._strays:
            if _is_conditional(_below(item.within, self._header)):
                raise ConfigError(f"{self._directive} is {_place(item)}")

    def _check_conditions(self) -> None:
        """Raise ConfigError if a condition decides whether another line than the last match counts, or if a later line
        outside of a conditional section counts instead of it, or of one that is inserted at its end."""
        last = self.matches[-1] if self.matches else None
        place = last or self._closing
        for item in self._strays:
            inside = self._inside(item)
            is_later = last is None or item.line.start > last.line.start
            if is_later and _is_conditional(inside):
                lines = f"lines {last.line.number} and {item.line.number}" if last else f"line {item.line.number}"
                header = excerpt(item.within[-1].header, 120)
                hint = "change it by hand"
                if self._section is None:
                    hint = f'set section = "{header}" in the knob if it is true'
                raise ConfigError(f"{self._directive} depends on <{header}> ({lines}); {hint}", item.line.number)
            if (
                place
                and item.line.start > place.line.start
                and item.within == place.within[: len(item.within)]
                and _is_conditional(place.within[len(item.within) :])
            ):
                raise ConfigError(
                    f"{self._directive} is set again outside of <{self._section}>; change it by hand", item.line.number
                )


def _is_plain(content: bytes) -> bool:
    """Return whether a word needs no quotes."""
    return bool(content) and content[0] not in b"\"'" and not any(byte in SPACE or byte == 0x5C for byte in content)


def _statement(text: ConfigText, item: Item) -> Statement:
    body = item.line.body
    end = len(body.rstrip(SPACE))
    first = word_at(body, item.name.end)
    start = first.start if first else end
    return item.line.statement(text, start, end, shown(body[start:end]))


def _several(text: ConfigText, section: str, blocks: list[ConfigBlock]) -> str:
    """Return the message about several virtual hosts, with the name of one of them."""
    starts = {block.line.start for block in blocks}
    every = [item.closes for item in virtual_hosts.distinguished(list(items(text))) if item.closes]
    header = next((block.header for block in every if block.line.start in starts and block.argument.endswith(")")), "")
    fix = f"set section in the knob, e.g. section = '{header}'" if header else "edit the file by hand"
    return f"{len(blocks)} sections <{section}>: cannot tell which; {fix}"


def _current(name: bytes) -> bytes:
    """Return the name of a directive in lower case, the present one for an old one."""
    return _RENAMED.get(name.lower(), name.lower())


def _of_mpm(name: bytes, strays: list[Item]) -> list[Item]:
    """Return the occurrences in the section of a single MPM, e.g. Debian's `<IfModule mpm_prefork_module>`, if the
    directive is a setting of MPMs: discovery offers the file of the MPM that runs."""
    within = {item.within for item in strays if _is_conditional(item.within)}
    is_single = len(within) == 1 and all(_MPM.fullmatch(block.argument) for block in next(iter(within)))
    return [item for item in strays if item.within in within] if is_single and name.decode() in WHOLE_NUMBERS else []


def known_conditions(mpm: str, libraries: Iterable[str], defined: Iterable[str]) -> tuple[tuple[str, bool], ...]:
    """Return the conditions that are known by section: about MPMs if the loaded `mpm` is known, about modules with a
    loaded library such as `mod_deflate`, and about names defined on the command line. Modules without a library may be
    built in, and names may be defined in a file."""
    holds = {f"IfModule {form.format(each)}": each == mpm for each in MPMS for form in _MPM_NAMES if mpm in MPMS}
    for library in libraries:
        holds |= {f"IfModule {name}": True for name in (f"{library.removeprefix('mod_')}_module", f"{library}.c")}
    holds |= {f"IfDefine {name}": True for name in defined}
    return (*holds.items(), *((header.replace(" ", " !", 1), not known) for header, known in holds.items()))


def _is_conditional(inside: tuple[ConfigBlock, ...] | None) -> bool:
    return inside is not None and inside != () and all(block.name in CONDITIONAL for block in inside)


def _below(within: tuple[ConfigBlock, ...], wanted: tuple[str, str]) -> tuple[ConfigBlock, ...] | None:
    """Return the sections between the innermost section `wanted` and the item. None: the item is outside of such a
    section, or the section is in the definition of a macro."""
    for index in range(len(within) - 1, -1, -1):
        if (within[index].name, within[index].argument) == wanted:
            return None if any(block.name == MACRO for block in within[:index]) else within[index + 1 :]
    return None


def _place(item: Item) -> str:
    """Return the place of a directive outside of the requested section, and the fix of the profile."""
    if not item.within:
        return f"at the top level, line {item.line.number}: remove section from the knob"
    macro = next((block for block in item.within if block.name == MACRO), None)
    if macro is not None and macro is not item.within[-1]:
        return f"in <{excerpt(macro.header, 120)}>, line {item.line.number}: change it there by hand"
    header = excerpt(item.within[-1].header, 120)
    return f'in <{header}>, line {item.line.number}: set section = "{header}" in the knob'


def _insertion(text: ConfigText, directive: str, survey: _Survey) -> Insertion:
    """Return the insertion of a separate line, indented like its neighbours, at the end of the section or text."""
    name = directive.encode() + b" "
    if survey.block is None:
        return last_line(text, next(reversed(list(lines(text))), None), survey.indent + name)
    opening = survey.block.line
    outer = opening.body[: len(opening.body) - len(opening.body.lstrip(SPACE))]
    ending = b"\r\n" if text[: opening.end].endswith(b"\r\n") else b"\n"
    return Insertion(survey.close, (survey.indent or nested_indent(outer)) + name, ending)
