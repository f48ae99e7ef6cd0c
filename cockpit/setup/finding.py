"""Findings of the doctor, one line each: passed, a note, or an error to fix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from cockpit.model.errors import EXIT_GOOD, EXIT_USAGE, CockpitError

Severity = Literal["ok", "note", "error"]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A finding. `subject`: the profile, this machine, the target or a host; `fix`: how to fix it, "" if not needed.

    `exit_code` is 2 for an error in the profile or on a host, 3 for an unreachable target or host, else 0.
    """

    subject: str
    level: Severity
    text: str
    fix: str = ""
    exit_code: int = EXIT_GOOD


def passed(subject: str, text: str) -> Finding:
    return Finding(subject=subject, level="ok", text=text)


def note(subject: str, text: str, fix: str = "") -> Finding:
    return Finding(subject=subject, level="note", text=text, fix=fix)


def problem(subject: str, text: str, fix: str = "", exit_code: int = EXIT_USAGE) -> Finding:
    return Finding(subject=subject, level="error", text=text, fix=fix, exit_code=exit_code)


def failed(subject: str, error: CockpitError, fix: str = "") -> Finding:
    """Return an error as a finding, without the error's subject if it equals `subject`."""
    code = error.exit_code if error.exit_code in (2, 3) else EXIT_USAGE
    return problem(subject, error.problem if error.subject == subject else str(error), fix, code)


def summary_line(findings: Sequence[Finding]) -> str:
    """Return the summary line: the number of errors and notes."""
    levels = [finding.level for finding in findings]
    errors, notes = levels.count("error"), levels.count("note")
    if not errors and not notes:
        return "no problems found"
    parts = [f"{errors} to fix"] if errors else ["nothing to fix"]
    return ", ".join([*parts, *([f"{notes} note{'s' * (notes > 1)}"] if notes else [])])
