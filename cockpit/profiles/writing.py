"""Write a new profile, as text and as a file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from cockpit.files import atomic_write
from cockpit.model.errors import UsageError, naming
from cockpit.model.host.samples import HostConfig
from cockpit.model.knobs import SECRET, Knob
from cockpit.model.text import sanitize
from cockpit.profiles.reader import parse_profile


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a new profile. `duration` is as in a profile, e.g. "30s"; `notes` are comments above a host;
    `others` are further knobs with their values (None: not set), commented out."""

    url: str
    question: str = ""
    concurrency: int = 20
    duration: str = "30s"
    keepalive: bool = True
    hosts: tuple[HostConfig, ...] = ()
    knobs: tuple[Knob, ...] = ()
    others: tuple[tuple[Knob, str | None], ...] = ()
    notes: dict[str, tuple[str, ...]] = {}


def profile_text(draft: Draft) -> str:
    """Return the text of a profile. Raises ProfileError if it is invalid."""
    blocks = [
        f"question = {toml_string(draft.question)}\n" if draft.question else "",
        f"[target]\nurl = {toml_string(draft.url)}\n",
        "\n".join(("[load]", *_load(draft), "")),
        *("\n".join((*_comments(draft, host), "[[host]]", *_fields(host, _HOST), "")) for host in draft.hosts),
        *("\n".join((*_help(knob), "[[knob]]", *_fields(knob, _KNOB), "")) for knob in draft.knobs),
        *("\n".join(_commented_out(knob, value)) for knob, value in draft.others),
        '[check]\nthresholds = ["failed == 0"]\n',
    ]
    text = "\n".join(block for block in blocks if block)
    parse_profile(text, "new", "new profile")
    return text


def write_profile(path: Path, text: str, *, replace: bool = False) -> None:
    """Write a profile. Raises UsageError if the file exists (unless `replace`), or cannot be written."""
    with naming(path.parent, "be created"):
        path.parent.mkdir(parents=True, exist_ok=True)
    try:
        if replace:
            with atomic_write(path.resolve()) as file:
                file.write(text.encode())
        else:
            _write_new(path, text)
    except FileExistsError:
        raise UsageError(f"{path}: exists already") from None
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None


def _write_new(path: Path, text: str) -> None:
    with path.open("xb") as file:
        try:
            file.write(text.encode())
            file.flush()
        except OSError:
            path.unlink()
            raise


_HOST = ("name", "ssh", "via", "processes", "upstreams", "tail", "status", "sudo", "changes_outside")
_KNOB = (
    *("name", "host", "kind", "file", "section", "directive", "key", "mount", "get", "set", "test", "reload"),
    *("values", "min", "max", "unit", "cost", "workers", "log", "action", "option"),
)


def _load(draft: Draft) -> Iterator[str]:
    yield f"concurrency = {draft.concurrency}"
    yield f"duration = {toml_string(draft.duration)}"
    if not draft.keepalive:
        yield "keepalive = false"


def _comments(draft: Draft, host: HostConfig) -> Iterator[str]:
    for note in draft.notes.get(host.name, ()):
        yield f"# {sanitize(' '.join(note.split()))}"


def _commented_out(knob: Knob, value: str | None) -> Iterator[str]:
    """Yield a knob as comments, which take effect without their `# `."""
    now = "not set" if value is None else SECRET if knob.secret else sanitize(value)
    yield f"# {sanitize(knob.name)}, now {now}{f': {knob.help}' if knob.help else ''}"
    for line in ("[[knob]]", *_fields(knob, _KNOB)):
        yield f"# {line}"
    yield ""


def _help(knob: Knob) -> Iterator[str]:
    if knob.help:
        yield f"# {knob.help}"


def _fields(of: msgspec.Struct, names: Sequence[str]) -> Iterator[str]:
    """Yield `name = value` of the fields that are set: not None, "", () or False."""
    for name in names:
        value = getattr(of, name)
        if value not in (None, "", (), False):
            yield f"{name} = {_value(value)}"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"{value:g}"
    if isinstance(value, str):
        return toml_string(value)
    if isinstance(value, msgspec.Struct):
        return f"{{ {', '.join(_fields(value, value.__struct_fields__))} }}"
    return f"[{', '.join(_value(item) for item in value)}]"


def toml_string(value: str) -> str:
    """Return a TOML string on one line."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
