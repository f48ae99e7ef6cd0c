"""Findings of an examination, one line each: good, a note, or an error to fix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from cockpit.model.errors import EXIT_GOOD, EXIT_USAGE, CockpitError

Level = Literal["ok", "note", "wrong"]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """`about` is the profile, this machine, the target or a host; `todo` is the fix, "" if all is good.

    `exit_code` is 2 for an error in the profile or on a host, 3 for an unreachable target or host, else 0.
    """

    about: str
    level: Level
    text: str
    todo: str = ""
    exit_code: int = EXIT_GOOD


def good(about: str, text: str) -> Finding:
    return Finding(about=about, level="ok", text=text)


def note(about: str, text: str, todo: str = "") -> Finding:
    return Finding(about=about, level="note", text=text, todo=todo)


def wrong(about: str, text: str, todo: str = "", exit_code: int = EXIT_USAGE) -> Finding:
    return Finding(about=about, level="wrong", text=text, todo=todo, exit_code=exit_code)


def failed(about: str, error: CockpitError, todo: str = "") -> Finding:
    """An error as a finding, without its subject if that is `about`."""
    code = error.exit_code if error.exit_code in (2, 3) else EXIT_USAGE
    return wrong(about, error.problem if error.subject == about else str(error), todo, code)


def summed(findings: Sequence[Finding]) -> str:
    levels = [finding.level for finding in findings]
    bad, notes = levels.count("wrong"), levels.count("note")
    if not bad and not notes:
        return "all well"
    parts = [f"{bad} to fix"] if bad else ["nothing to fix"]
    return ", ".join([*parts, *([f"{notes} note{'s' * (notes > 1)}"] if notes else [])])
