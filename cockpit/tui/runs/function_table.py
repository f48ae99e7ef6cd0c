"""The hottest functions of a CPU profile as lines, and the values of the selected frame. Pure."""

from __future__ import annotations

from cockpit.analysis.stacks.profiles import FunctionShare, StackProfile
from cockpit.analysis.words.stacks import cpu_words, sampling_words
from cockpit.model.text import sanitize, share_words
from cockpit.tui.runs.icicle import StacksView, change_role, is_match
from cockpit.tui.terminal.styled_line import DrawnList, Line, Piece, Spot, fit, left_and_right

# Cells of a column.
_COLUMN = 9


def function_table(profile: StackProfile, view: StacksView, width: int, height: int) -> DrawnList:
    """Return a header and the functions from `view.above` on; a click on a function runs `function(INDEX)`."""
    differs, rows, page = profile.before is not None, profile.functions, max(1, height - 1)
    most = max(0, len(rows) - page)
    first = min(view.above, most)
    titles = ("self", "total", *(("self ±", "total ±") if differs else ()))
    time = cpu_words(profile.source)
    unit = f"% of the baseline's {time}/request" if differs else f"% of the {time}"
    name = f"functions {first + 1}–{min(first + page, len(rows))} of {len(rows)}, {unit}"
    columns = "".join(f"{title:>{_COLUMN}}" for title in titles)
    lines: list[Line] = [((fit(name, width - len(columns)) + columns, "dim"),)]
    lines += [_row(row, view.search, differs, width) for row in rows[first : first + page]]
    spots = tuple(Spot(y, 0, width, "function", (first + y - 1,)) for y in range(1, len(lines)))
    return DrawnList(lines, page, most, spots)


def _row(row: FunctionShare, search: str, differs: bool, width: int) -> Line:
    cells: list[Piece] = [(f"{f'{value:.1f}%':>{_COLUMN}}", "") for value in (row.own, row.total)]
    for change in (row.own_change, row.total_change) if differs else ():
        cells.append((f"{change!s:>{_COLUMN}}", change_role(change, "better_value", "worse_value", "dim")))
    role = "match" if is_match(row.frame, search) else ""
    return ((fit(sanitize(row.frame), width - _COLUMN * len(cells)), role), *cells)


def selection_line(profile: StackProfile, view: StacksView, width: int) -> Line:
    """Return the CPU of the selected frame, and of all frames with the searched text."""
    tree = profile.tree
    node = tree.at(view.selected)
    values = f"  {tree.percent(node):.1f}%, itself {tree.own_percent(node):.1f}%"
    line: list[Piece] = [(sanitize(node.frame), "strong"), (values, "")]
    if profile.before is not None:
        change = tree.change(node)
        line.append((f"  {change} points", change_role(change, "better_value", "worse_value", "dim")))
    facts = f"{sampling_words(profile.source, profile.hz)}, profiler {share_words(profile.cost)} of a core"
    if profile.before is not None and not profile.tested:
        facts = "changes not tested: too few slices that count"
    if not view.search:
        return left_and_right(tuple(line), ((facts, "dim"),), width)
    percent, change = tree.matching(lambda frame: is_match(frame, view.search))
    words = f"{percent:.1f}%{f' {change}' if profile.before is not None else ''}"
    return left_and_right(tuple(line), ((f"/{sanitize(view.search, 20)} ", "dim"), (words, "warn")), width)
