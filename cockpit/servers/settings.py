"""Known settings of servers: a line of help, the form of the value, and the step that activates a change. Pure.

The tables use the names of the servers' manuals. A value's form is checked before the server tests its configuration.
Settings without an entry are not checked.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

from cockpit.servers.evidence import Evidence

_QUANTITY = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?) ?([A-Za-z%]{0,9})")
_WHOLE = re.compile(r"[0-9]{1,18}")
_FIRST = re.compile(r"[\w-]*")
_LIMIT = 10**18


class Impact(StrEnum):
    """The step that activates a written value; live: a command sets it in the running server."""

    LIVE = "live"
    RELOAD = "reload"
    RESTART = "restart"


class ValueForm(NamedTuple):
    """The form of a value. `words` describes it for the user, e.g. `a time such as 65s`; `matches` checks a value;
    `choices` are all values, () if they cannot be listed; `bounds` of numbers, None: unlimited or no numbers."""

    words: str
    matches: Callable[[str], bool]
    choices: tuple[str, ...] = ()
    bounds: tuple[int, int] | None = None

    def or_word(self, *words: str) -> ValueForm:
        """Return a form that also accepts these words."""
        either = f"{self.words}, or {' or '.join(words)}"
        return ValueForm(either, lambda value: value in words or self.matches(value), bounds=self.bounds)


class KnownSetting(NamedTuple):
    """A known setting. `help` is one line: the effect of the setting, and when it matters.

    `as_printed` converts a value to the form that the running server prints, e.g. `256M` to `268435456`. `shown`: where
    a running server shows the active value; None: nowhere.
    """

    help: str
    form: ValueForm
    impact: Impact = Impact.RELOAD
    as_printed: Callable[[str], str] = str
    shown: Evidence | None = None

    def accepts(self, value: str) -> bool:
        """Return whether the value, quoted or not, has the right form."""
        quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
        return self.form.matches(value[1:-1] if quoted else value)


def integer(least: int = 0, most: int | None = None) -> ValueForm:
    words = f"a whole number of at least {least}" if most is None else f"a whole number from {least} to {most}"
    limit = _LIMIT if most is None else most
    bounds = None if most is None else (least, most)
    return ValueForm(words, lambda value: bool(_WHOLE.fullmatch(value)) and least <= int(value) <= limit, bounds=bounds)


def quantity(what: str, example: str, units: str = "") -> ValueForm:
    """Accept numbers with an optional unit; several are separated by spaces, e.g. `1h 30m` of nginx."""
    known = frozenset(("", *units.lower().split()))

    def takes(value: str) -> bool:
        parts = _QUANTITY.findall(value)
        return bool(parts) and not _QUANTITY.sub("", value).strip() and all(unit.lower() in known for _, unit in parts)

    return ValueForm(f"{what} such as {example}", takes)


def word(what: str, pattern: str = r"\S+") -> ValueForm:
    """Accept a value that matches the pattern, by default any value without spaces."""
    known = re.compile(pattern)
    return ValueForm(what, lambda value: known.fullmatch(value) is not None)


def choice(*values: str) -> ValueForm:
    known = frozenset(map(str.lower, values))
    return ValueForm(" or ".join(values), lambda value: value.lower() in known, values)


def names(known: str, separator: str = " ") -> ValueForm:
    """Accept one or more of the known words, separated in a value by `separator`, each once."""
    words = known.split(separator)

    def takes(value: str) -> bool:
        given = value.split(separator)
        return 0 < len(given) == len(set(given)) and set(given) <= set(words)

    return ValueForm(f"one or more of {separator.join(words)}", takes)


def leading(*names: str) -> ValueForm:
    """Accept one of these words with optional arguments, e.g. `hdr(host)` of HAProxy."""
    known = frozenset(map(str.lower, names))
    return ValueForm(f"one of {', '.join(names)}", lambda value: (_FIRST.match(value) or [""])[0].lower() in known)


def parameters(words: str, *, others: bool = False, **forms: ValueForm) -> ValueForm:
    """Accept words NAME=VALUE, each value in the form of its name. `others`: also other words."""

    def takes(value: str) -> bool:
        pairs = [word.partition("=") for word in value.split()]
        return all(forms[name].matches(rest) if name in forms else others for name, _, rest in pairs)

    return ValueForm(words, takes)


ON_OFF = choice("on", "off")
