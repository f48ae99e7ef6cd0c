"""Read profile files. Errors are one line."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_args, get_type_hints

import msgspec
from msgspec.structs import replace

from cockpit.files import read_bounded
from cockpit.model.errors import ProfileError, UnknownProfile
from cockpit.model.load.checks import Invalid, allowed_values
from cockpit.profiles.files import MOST_PROFILE, FolderFiles
from cockpit.profiles.profile import Profile, ProfileSource, to_profile
from cockpit.profiles.sections import ProfileFile

_MESSAGE = re.compile(r"(?P<problem>.*?)(?: - at `(?P<path>\$.*)`)?", re.DOTALL)
_FIELD_ERROR = re.compile(r"Object (contains unknown|missing required) field `(.*)`")
_STEP = re.compile(r"\.([A-Za-z0-9_-]+)|\[(\d+)\]|\[(\.\.\.)\]")

# A token of TOML. A key consists of names, strings and blanks, separated by dots. An unclosed string is a token, too,
# so that scanning takes linear time.
_TOKEN = re.compile(
    r"""
    "{3}(?:\\.|[^\\])*?(?:"{3}|\\?\Z) | '{3}.*?(?:'{3}|\Z) | \#[^\n]*
    | (?P<of_key> "(?:\\.|[^"\\\n])*"? | '[^'\n]*'? | [\w-]+ | [ \t]+ )
    | .
    """,
    re.VERBOSE | re.DOTALL,
)
_PARTS_LIMIT = 50

# Maximum number of allowed keys in an error, if no key is similar to the unknown one.
_KEYS_SHOWN = 10


def read_profile(path: Path) -> Profile:
    """Read a profile file. Raises ProfileError."""
    try:
        content = read_bounded(path, MOST_PROFILE)
        text = content.decode("utf-8")
    except FileNotFoundError:
        raise UnknownProfile("no such profile", str(path)) from None
    except OSError as error:
        raise ProfileError(f"cannot be read: {error.strerror}", str(path)) from None
    except UnicodeDecodeError:
        raise ProfileError("is not UTF-8 text; a profile is a TOML file", str(path)) from None
    files = FolderFiles(path.parent)
    profile = _parse(text, path.stem, str(path), files)
    source = ProfileSource(str(path.absolute()), digest_of(content, files.digests), tuple(sorted(files.digests)))
    return replace(profile, source=source)


def digest_of(content: bytes, files: Mapping[str, str]) -> str:
    """Return the hash of a profile. `files`: SHA-256 of the local files named in it, by name."""
    whole = (hashlib.sha256(content).hexdigest(), sorted(files.items()))
    return hashlib.sha256(msgspec.json.encode(whole)).hexdigest()


def parse_profile(text: str, name: str, file: str, folder: Path = Path()) -> Profile:
    """Parse a profile. `file` is its name in errors, `folder` the base of relative file names. Raises ProfileError."""
    return _parse(text, name, file, FolderFiles(folder))


def _check_keys(text: str) -> None:
    """Raise ValueError for a key with too many parts: tomllib needs quadratic memory and time."""
    parts = 0
    for token in _TOKEN.finditer(text):
        if token[0] == ".":
            parts += 1
        elif token.lastgroup != "of_key":
            parts = 0
        if parts > _PARTS_LIMIT:
            line = text.count("\n", 0, token.start()) + 1
            raise ValueError(f"a key of more than {_PARTS_LIMIT} parts (at line {line})")


def _parse(text: str, name: str, file: str, files: FolderFiles) -> Profile:
    try:
        _check_keys(text)
        data = tomllib.loads(text)
    except ValueError as error:
        # From tomllib, or from int() for a number with thousands of digits.
        raise ProfileError(f"invalid TOML: {error}", file) from None
    except RecursionError:
        raise ProfileError("lists or tables are nested too deeply; a profile needs 4 levels", file) from None
    try:
        return to_profile(name, msgspec.convert(data, ProfileFile), files)
    except msgspec.ValidationError as error:
        raise ProfileError(_explain(str(error), data), file) from None
    except Invalid as error:
        raise ProfileError(str(error), file) from None


def _explain(message: str, data: dict[str, Any]) -> str:
    """Return the error text, with key, value found and values allowed, for a message of msgspec."""
    match = _MESSAGE.fullmatch(message)
    problem, path = (match["problem"], match["path"] or "$") if match else (message, "$")
    steps = _STEP.findall(path)
    key = ".".join(name or index for name, index, _ in steps)
    named = _FIELD_ERROR.fullmatch(problem)
    if named:
        prefix = "unknown key" if named[1] == "contains unknown" else "missing key"
        hint = _hint(named[2], _section_at(steps).__struct_fields__)
        return f"{key + ': ' if key else ''}{prefix} {named[2]!r}; {hint}"
    return f"{key}: found {_value_at(steps, data)!r}; allowed: {_allowed(problem, steps)}"


def _hint(name: str, allowed: Sequence[str]) -> str:
    """Return a hint with the most similar key, else with the first allowed keys."""
    near = get_close_matches(name, allowed, 1)
    if near and near[0] != name:
        return f"did you mean {near[0]}?"
    shown = allowed if len(allowed) <= _KEYS_SHOWN else (*allowed[:_KEYS_SHOWN], "… (all keys: cockpit schema profile)")
    return f"allowed: {', '.join(shown)}"


def _allowed(problem: str, steps: list[tuple[str, str, str]]) -> str:
    if problem.startswith("Invalid enum value"):
        hint = get_type_hints(_section_at(steps[:-1]))[steps[-1][0]]
        return ", ".join(str(value) for value in get_args(hint))
    return allowed_values(problem)


def _value_at(steps: list[tuple[str, str, str]], data: Any) -> Any:
    for name, index, _ in steps:
        try:
            data = data[name] if name else data[int(index)]
        except (KeyError, IndexError, TypeError, ValueError):
            break
    return data


def _section_at(steps: list[tuple[str, str, str]]) -> type[msgspec.Struct]:
    section: type[msgspec.Struct] = ProfileFile
    for name, _, _ in steps:
        if name:
            hint = get_type_hints(section).get(name)
            section = next((part for part in (hint, *get_args(hint)) if _is_section(part)), section)
    return section


def _is_section(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, msgspec.Struct)
