"""Cells of CSV files (RFC 4180) that programs read back exactly and spreadsheets do not run."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable

from cockpit.model.text import neutral

Value = str | int | float | bool | None
# A spreadsheet takes a cell that begins so for a formula: https://owasp.org/www-community/attacks/CSV_Injection
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def csv_text(head: Iterable[str], lines: Iterable[Iterable[Value]]) -> str:
    """Return the lines below their head: numbers in full, true and false, nothing for an unknown value."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(head)
    writer.writerows([_cell(value) for value in line] for line in lines)
    return out.getvalue()


def no_formula(said: str) -> str:
    """Return text of whatever origin, harmless in a terminal, as a cell that no spreadsheet takes for a formula."""
    shown = neutral(said)
    return f"'{shown}" if said.startswith(_FORMULA) or shown.startswith(_FORMULA) else shown


def _cell(value: Value) -> str:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return no_formula(value) if isinstance(value, str) else repr(value)
