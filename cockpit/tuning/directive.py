"""One directive of an Apache configuration text: read it, spell a value for it, change it and no other byte. Pure.

A value, as text, is the directive's arguments as they stand in the file (`index.html index.php`, `"a b"`); quotes
around a single word that needs none are left out of it. Of several such directives Apache lets the last one win:
that one is read and changed.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from cockpit.model.text import neutral
from cockpit.tuning.reading import NOT_THERE, Reading
from cockpit.tuning.syntax import MACRO, SPACE, Block, ConfigError, Item, items, lines, word_at, words

# Sections whose content counts as that of the section around them when their condition holds.
CONDITIONAL = frozenset({"ifmodule", "ifdefine", "ifversion", "iffile", "ifdirective", "ifsection"})

# Apache reads these with atoi(): what is no number becomes 0 and passes the configuration test without a word
# (seen with `apache2 -t`, 2.4).
WHOLE_NUMBERS = frozenset(
    (
        *("startservers", "minspareservers", "maxspareservers", "maxrequestworkers", "maxclients", "serverlimit"),
        *("threadlimit", "threadsperchild", "minsparethreads", "maxsparethreads", "threadstacksize", "maxmemfree"),
        *("maxconnectionsperchild", "maxrequestsperchild", "maxkeepaliverequests", "gracefulshutdowntimeout"),
        *("listenbacklog", "listencoresbucketsratio", "sendbuffersize", "receivebuffersize"),
        *("limitrequestfields", "limitrequestfieldsize", "limitrequestline"),
    )
)
_NUMBER = re.compile(r"-?[0-9]+|\$\{\w+\}")


class _Survey(NamedTuple):
    """Where a directive stands in the asked place, and where that place ends."""

    found: list[Item]
    block: Block | None
    indent: bytes
    close: int


def read(text: bytes, directive: str, section: str | None = None) -> Reading:
    """The directive in `section` (as `IfModule mpm_prefork_module`; None: the top level, or the one IfModule or
    its like that has it).

    Raises ConfigError: no such section, an ambiguous one, or a text whose sections do not nest.
    """
    found = _survey(text, directive, section).found
    if not found:
        return NOT_THERE
    last = found[-1]
    start, end = _arguments(last)
    logical = last.line.body[start:end]
    raw = text[last.line.position(start) : last.line.position(end - 1) + 1] if logical else b""
    return Reading(shown(logical), raw, last.line.number, len(found))


def change(text: bytes, directive: str, section: str | None, raw: bytes | None) -> bytes:
    """`text` with the directive's arguments replaced by the bytes `raw`, added at the section's end where it is
    missing, or with its line taken out where `raw` is None. Raises ConfigError.
    """
    survey = _survey(text, directive, section)
    if raw is None:
        return _remove(text, directive, survey)
    if not survey.found:
        return _insert(text, directive, survey, raw)
    last = survey.found[-1]
    start, end = _arguments(last)
    if start == end:
        raise ConfigError(
            f"line {last.line.number}: {directive} stands there without a value; give it one by hand first"
        )
    return text[: last.line.position(start)] + raw + text[last.line.position(end - 1) + 1 :]


def spell(value: str, like: bytes | None = None) -> bytes:
    """`value` as it is written after a directive, in the quotes that `like`, the bytes it replaces, stands in.

    Raises ConfigError for what would not be read back as it is: control characters, an open quote, a backslash at
    the end (it would join the next line).
    """
    if not value or value != value.strip():
        raise ConfigError("a value must not be empty, nor begin or end with a space")
    if neutral(value) != value:
        raise ConfigError("a value is one line of text, at most 4096 characters, without control characters")
    raw = value.encode()
    if raw.endswith(b"\\"):
        raise ConfigError("a value must not end in a backslash: it would join the next line")
    parts = list(words(raw))
    if not all(word.closed for word in parts):
        raise ConfigError("a quote in it is not closed")
    plain = shown(raw).encode()
    old = list(words(like)) if like else []
    if _is_plain(plain) and len(old) == 1 and old[0].quote and old[0].closed and _is_plain(old[0].content):
        return old[0].quote + plain + old[0].quote
    return plain


def shown(raw: bytes) -> str:
    """The text of a directive's arguments; a single word in quotes that it does not need is shown without them."""
    word = word_at(raw, 0)
    if word and word.quote and word.closed and word.end == len(raw) and _is_plain(word.content):
        raw = word.content
    return raw.decode("utf-8", "backslashreplace")


def allowed(directive: str, value: str, values: tuple[str, ...], named: str = "") -> None:
    """Raises ConfigError when `value` is not one of `values`, or, where there are none, not one word that fits; `named`
    is the value as this error may show it."""
    raw = spell(value)
    named = named or neutral(value, 80)
    if values:
        if value not in values:
            raise ConfigError(f"{named!r} is none of {', '.join(values)}")
        return
    if len(list(words(raw))) > 1:
        raise ConfigError(f"{named!r} is more than one word; put it in quotes if it is meant as one")
    if directive.lower() in WHOLE_NUMBERS and not _NUMBER.fullmatch(shown(raw)):
        raise ConfigError(f"{named!r} is no whole number; Apache would silently take it for another one")


def _is_plain(content: bytes) -> bool:
    """A word that needs no quotes."""
    return bool(content) and content[0] not in b"\"'" and not any(byte in SPACE or byte == 0x5C for byte in content)


def _arguments(item: Item) -> tuple[int, int]:
    """The span of the arguments in the item's body; (n, n) when there are none."""
    end = len(item.line.body.rstrip(SPACE))
    first = word_at(item.line.body, item.name.end)
    return (first.start, end) if first else (end, end)


def _survey(text: bytes, directive: str, section: str | None) -> _Survey:
    kind, _, rest = (section or "").partition(" ")
    wanted = (kind.lower(), rest.strip())
    name = directive.lower().encode()
    blocks: list[Block] = []
    found: list[Item] = []
    strays: list[Item] = []
    indent, close = b"", len(text)
    for item in items(text):
        inside = item.within if section is None else _below(item.within, wanted)
        if item.closes:
            defined = any(block.name == MACRO for block in item.within)
            if section is not None and (item.closes.name, item.closes.argument) == wanted and not defined:
                blocks.append(item.closes)
                close = item.line.start
            continue
        if inside == ():
            indent = item.line.body[: item.name.start]
        if item.name.content.lower() == name:
            (found if inside == () else strays).append(item)
    if section is None and not found:
        found = _in_a_condition(directive, strays)
    _check_place(directive, section, wanted, blocks, found, strays)
    return _Survey(found, blocks[-1] if blocks else None, indent, close)


def _in_a_condition(directive: str, strays: list[Item]) -> list[Item]:
    """What the top level lacks and one section that is only a condition has, as Debian's `<IfModule mpm_…>`."""
    conditional = [item for item in strays if all(block.name in CONDITIONAL for block in item.within)]
    if len({item.within for item in conditional}) > 1:
        places = " and ".join(str(item.line.number) for item in conditional)
        raise ConfigError(f"{directive} stands in several sections (lines {places}); give the knob one of them")
    return conditional


def _below(within: tuple[Block, ...], wanted: tuple[str, str]) -> tuple[Block, ...] | None:
    """The sections between the innermost wanted one and the item; None outside of any, and where the wanted one is
    only part of a macro's definition."""
    for index in range(len(within) - 1, -1, -1):
        if (within[index].name, within[index].argument) == wanted:
            return None if any(block.name == MACRO for block in within[:index]) else within[index + 1 :]
    return None


def _check_place(
    directive: str,
    section: str | None,
    wanted: tuple[str, str],
    blocks: list[Block],
    found: list[Item],
    strays: list[Item],
) -> None:
    """Raises ConfigError when the directive could be read or written in the wrong place."""
    if section is not None and not blocks:
        where = f"; {directive} stands {_whereabouts(strays[-1])}" if strays else ""
        raise ConfigError(f"it has no section <{section}>{where}")
    if len(blocks) > 1 and wanted[0] == "virtualhost":
        raise ConfigError(f"it has {len(blocks)} sections <{section}>; which one is meant cannot be told")
    if found or section is None:
        return
    for item in strays:
        inside = _below(item.within, wanted)
        if inside and all(block.name in CONDITIONAL for block in inside):
            raise ConfigError(f"{directive} stands {_whereabouts(item)}")


def _whereabouts(item: Item) -> str:
    """Where a directive that was looked for elsewhere stands, and what to write into the profile."""
    if not item.within:
        return f"at the top level, line {item.line.number}: leave the knob's section out"
    macro = next((block for block in item.within if block.name == MACRO), None)
    if macro is not None and macro is not item.within[-1]:
        return f"within <{neutral(macro.header, 120)}>, line {item.line.number}: change it there by hand"
    header = neutral(item.within[-1].header, 120)
    return f'in <{header}>, line {item.line.number}: give the knob section = "{header}"'


def _insert(text: bytes, directive: str, survey: _Survey, raw: bytes) -> bytes:
    """A line of its own, indented like its neighbours, before the section's end or at the end of the text."""
    indent = survey.indent
    if survey.block:
        opening = survey.block.line
        ending = b"\r\n" if text[: opening.end].endswith(b"\r\n") else b"\n"
        outer = opening.body[: len(opening.body) - len(opening.body.lstrip(SPACE))]
        indent = indent or outer + (b"\t" if outer.endswith(b"\t") else b"    ")
        return text[: survey.close] + indent + directive.encode() + b" " + raw + ending + text[survey.close :]
    last = next(reversed(list(lines(text))), None)
    if last and (last.open or last.body.endswith((b"\\", b"\r"))):
        raise ConfigError("it ends in a backslash or a carriage return, so nothing can be added at its end")
    ending = b"\r\n" if b"\r\n" in text else b"\n"
    added = indent + directive.encode() + b" " + raw
    return text + added + ending if not text or text.endswith(b"\n") else text + ending + added


def _remove(text: bytes, directive: str, survey: _Survey) -> bytes:
    """Without the directive's line, and without the line end before it where it was the last one and had none."""
    if not survey.found:
        return text
    if len(survey.found) > 1:
        raise ConfigError(
            f"{directive} stands there {len(survey.found)} times; without the last one another would count"
        )
    line = survey.found[0].line
    start = line.start
    if line.end == len(text) and not text.endswith(b"\n"):
        start = len(text[:start].removesuffix(b"\n").removesuffix(b"\r"))
    return text[:start] + text[line.end :]
