"""CPU profiles in reports: flame graphs of segments, their differences, the hottest functions, kernel counters."""

from __future__ import annotations

from collections.abc import Sequence

from cockpit.analysis.comparison import kernel_counters
from cockpit.analysis.stacks.call_tree import Box, CallTree
from cockpit.analysis.stacks.merging import segment_slices
from cockpit.analysis.stacks.profiles import FunctionShare, StackProfile, stack_profile
from cockpit.analysis.verdicts.outcome import Verdict
from cockpit.analysis.verdicts.segments import baseline_of
from cockpit.analysis.words.comparison import rows_of
from cockpit.analysis.words.stacks import cpu_words, native_words, sampling_words
from cockpit.analysis.words.timeline import segment_label
from cockpit.document.model import Block, Cell, Flame, FlameBox, Paragraph, Part, Role, Table
from cockpit.model.stacks import KERNEL
from cockpit.model.state import Segment, State
from cockpit.model.text import share_words

# Maximum number of segments of all hosts, of functions per table and of boxes per drawing; the narrowest box (share).
_MOST_SEGMENTS, _MOST_FUNCTIONS, _MOST_BOXES, _NARROWEST = 6, 15, 1_000, 0.003
# Colours of series: user and kernel functions; less and more CPU/request. Opacities: of unchanged and of new functions.
_USER, _KERNEL, _LESS, _MORE = 4, 0, 2, 6
_FAINT, _STRONG = 0.3, 0.65
_TITLES = ("function", "self", "total")


def stack_blocks(state: State, segments: Sequence[Segment]) -> list[Block | Part]:
    """Return the last profiled segments of each host."""
    hosts = [name for name, host in state.hosts.items() if host.slices]
    most = max(1, _MOST_SEGMENTS // max(1, len(hosts)))
    blocks: list[Block | Part] = []
    for name in hosts:
        profiled = [segment for segment in segments if segment_slices(state, name, segment)]
        left = f"{name}: the last {most} of {len(profiled)} profiled segments" if len(profiled) > most else ""
        blocks += [Paragraph(left, "soft"), Paragraph(native_words(state.hosts[name].profiler), "soft")]
        blocks += [part for segment in profiled[-most:] for part in _parts(state, name, segment)]
    return blocks


def counter_parts(state: State, verdict: Verdict) -> list[Part]:
    """Return the kernel counters of each host on both sides of a verdict on two segments."""
    segments = {segment.number: segment for segment in state.segments}
    sides = [segments[side[0]] for side in (verdict.before, verdict.after) if len(side) == 1 and side[0] in segments]
    if len(sides) < 2:
        return []
    rows = {name: rows_of(kernel_counters(name, *sides)) for name in state.hosts}
    titles = ("kernel counters", "before", "after", "differs by")
    return [
        Part(f"Kernel counters of {name}", [Table(titles, each)], folded=True) for name, each in rows.items() if each
    ]


def _parts(state: State, host: str, segment: Segment) -> list[Part]:
    """Return the profile of a segment, with the difference to its baseline if both have one."""
    profile = stack_profile(state, host, segment)
    if profile is None:
        return []
    before = baseline_of(state, segment)
    difference = stack_profile(state, host, segment, before)
    time = cpu_words(profile.source)
    title = f"{host}, segment {segment.number}: {segment_label(segment)}"
    sampling = sampling_words(profile.source, profile.hz)
    facts = f"{profile.samples:,} samples at {sampling}, profiler {share_words(profile.cost)} of a core"
    alone: list[Block | Part] = [_flame(f"{time} by call stack", profile.tree), _table(profile)]
    if before is None or difference is None or difference.before is None:
        return [Part(title, [Paragraph(facts, "soft"), *alone])]
    words = f"Difference to segment {before.number} in points of its {time}/request; widths are means of both"
    words += "" if difference.tested else "; not tested: too few slices that count"
    compared: list[Block | Part] = [_flame(words, difference.tree), _table(difference)]
    return [Part(title, [Paragraph(facts, "soft"), *compared, Part("This segment alone", alone, folded=True)])]


def _flame(title: str, tree: CallTree) -> Flame:
    boxes = tree.boxes(tree.root, _NARROWEST)
    shown = f"; the first {_MOST_BOXES} of {len(boxes)} functions" if len(boxes) > _MOST_BOXES else ""
    return Flame(title + shown, [_box(tree, box) for box in boxes[:_MOST_BOXES]])


def _box(tree: CallTree, box: Box) -> FlameBox:
    node, change = box.node, tree.change(box.node)
    words = f"{node.frame}: {tree.percent(node):.1f}%, itself {tree.own_percent(node):.1f}%"
    text, colour, opacity = node.frame, _KERNEL if node.frame.endswith(KERNEL) else _USER, _FAINT
    if change.clear:
        text, words = f"{change} {node.frame}", f"{words}, {change} points"
        # Twice the mean of both sides is the change of a function that only one of them has.
        share = min(1.0, abs(change.points) / (2 * tree.weight(node)))
        colour, opacity = _LESS if change.points < 0 else _MORE, _FAINT + (_STRONG - _FAINT) * share
    return FlameBox(box.depth, box.start, box.end, text, words, colour, opacity)


def _table(profile: StackProfile) -> Table:
    differs = profile.before is not None
    titles = (*_TITLES, "self, points", "total, points") if differs else _TITLES
    return Table(titles, [_row(row, differs) for row in profile.functions[:_MOST_FUNCTIONS]])


def _row(row: FunctionShare, differs: bool) -> list[str | Cell]:
    changes = (row.own_change, row.total_change) if differs else ()
    roles: list[Role] = ["soft" if not each.clear else "good" if each.points < 0 else "bad" for each in changes]
    cells = [Cell(str(change), role) for change, role in zip(changes, roles, strict=True)]
    return [row.frame, f"{row.own:.1f}%", f"{row.total:.1f}%", *cells]
