"""Findings of the doctor, one line each: good, a note, or an error to fix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from cockpit.model.errors import EXIT_GOOD, EXIT_USAGE, CockpitError

Level = Literal["ok", "note", "wrong"]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A finding. `about` is its subject: the profile, this machine, the target or a host. `todo` is the fix, "" if none
    is needed.

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


def problem(about: str, text: str, todo: str = "", exit_code: int = EXIT_USAGE) -> Finding:
    return Finding(about=about, level="wrong", text=text, todo=todo, exit_code=exit_code)


def failed(about: str, error: CockpitError, todo: str = "") -> Finding:
    """Return an error as a finding, without the error's subject if it equals `about`."""
    code = error.exit_code if error.exit_code in (2, 3) else EXIT_USAGE
    return problem(about, error.problem if error.subject == about else str(error), todo, code)


def summary_line(findings: Sequence[Finding]) -> str:
    """Return the summary line: the number of errors and notes."""
    levels = [finding.level for finding in findings]
    errors, notes = levels.count("wrong"), levels.count("note")
    if not errors and not notes:
        return "no problems found"
    parts = [f"{errors} to fix"] if errors else ["nothing to fix"]
    return ", ".join([*parts, *([f"{notes} note{'s' * (notes > 1)}"] if notes else [])])
