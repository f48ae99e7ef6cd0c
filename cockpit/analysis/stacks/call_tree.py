"""Sampled call stacks as a tree of frames: of one segment, or of a segment and its baseline side by side. Pure.

Values are percent of the CPU. Beside a baseline they are percent of the baseline's CPU/request, so that all changes
(percentage points) add up to the change of CPU/request.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from cockpit.model.stacks import OTHER, SEPARATOR

ROOT = "all"
# A change is clear from this many points and standard errors of the counted samples on.
_LEAST, _ERRORS = 0.5, 3.0
# Maximum number of frames of a tree; the samples of further stacks are those of OTHER.
_MOST_NODES = 50_000


@dataclass(eq=False, slots=True)
class CallNode:
    """A frame below its callers; `total` and `before` are the samples in it and its callees, here and in the
    baseline; `own` those in it alone."""

    frame: str
    parent: CallNode | None = None
    total: int = 0
    own: int = 0
    before: int = 0
    children: dict[str, CallNode] = field(default_factory=dict)

    @property
    def path(self) -> tuple[str, ...]:
        """The frames from the outermost to this one, without the root."""
        return () if self.parent is None else (*self.parent.path, self.frame)


class Box(NamedTuple):
    """A node in a drawing: its depth below the top, and its ends as shares of the width."""

    depth: int
    start: float
    end: float
    node: CallNode


class StackChange(NamedTuple):
    """A difference in percentage points; `clear`: chance hardly explains it."""

    points: float = 0.0
    clear: bool = False

    def __str__(self) -> str:
        return f"{self.points:+.1f}".replace("-", "−") if abs(self.points) >= 0.05 else "0.0"


class StackScale(NamedTuple):
    """Percent per sample of a segment, and of its baseline; None without one."""

    percent: float
    before: float | None

    def change(self, samples: int, before: int) -> StackChange:
        """Return the change, which is clear if it is, for independent samples."""
        if self.before is None:
            return StackChange()
        points = samples * self.percent - before * self.before
        error = math.sqrt(samples * self.percent**2 + before * self.before**2)
        return StackChange(points, abs(points) > max(_LEAST, _ERRORS * error))


class CallTree:
    """The tree of folded stacks (see StackSlice) with their samples, beside those of a baseline if there is one.

    `ratio`: CPU/request divided by that of the baseline. `significant`: functions that differ significantly; None: not
    tested. Changes of other functions are not clear in any stack.
    """

    def __init__(
        self,
        stacks: Mapping[str, int],
        before: Mapping[str, int] | None = None,
        ratio: float = 1.0,
        significant: Collection[str] | None = None,
    ) -> None:
        percent_before = None if before is None else 100 / (sum(before.values()) or 1)
        self.scale, before = StackScale(100 * ratio / (sum(stacks.values()) or 1), percent_before), before or {}
        self.significant, self.root = significant, CallNode(ROOT)
        nodes = 0
        # The most frequent first, so that the rest is small.
        for stack in sorted({**stacks, **before}, key=lambda each: (-stacks.get(each, 0) - before.get(each, 0), each)):
            frames = stack.split(SEPARATOR) if nodes < _MOST_NODES else [OTHER]
            nodes += self._add(frames, stacks.get(stack, 0), before.get(stack, 0))

    def _add(self, frames: list[str], samples: int, before: int) -> int:
        """Add the samples of a stack; return the number of new nodes."""
        added, callers = 0, [self.root]
        for frame in frames:
            node = callers[-1].children.get(frame)
            if node is None:
                node = callers[-1].children[frame] = CallNode(frame, callers[-1])
                added += 1
            callers.append(node)
        for node in callers:
            node.total, node.before = node.total + samples, node.before + before
        callers[-1].own += samples
        return added

    def percent(self, node: CallNode) -> float:
        return node.total * self.scale.percent

    def own_percent(self, node: CallNode) -> float:
        return node.own * self.scale.percent

    def change(self, node: CallNode) -> StackChange:
        change = self.scale.change(node.total, node.before)
        is_function = node.parent is not None and node.parent is not self.root
        if is_function and self.significant is not None and node.frame not in self.significant:
            return change._replace(clear=False)
        return change

    def weight(self, node: CallNode) -> float:
        """Return the width of a node's box in percent; beside a baseline the mean of both, as either may be 0."""
        after, before = self.percent(node), self.scale.before
        return after if before is None else (after + node.before * before) / 2

    def callees(self, node: CallNode) -> list[CallNode]:
        """Return the callees, the widest first."""
        return sorted(node.children.values(), key=lambda child: (-self.weight(child), child.frame))

    def at(self, path: tuple[str, ...]) -> CallNode:
        """Return the node of a path, or the innermost of its callers in this tree."""
        node = self.root
        for frame in path:
            if frame not in node.children:
                break
            node = node.children[frame]
        return node

    def matching(self, matches: Callable[[str], bool]) -> tuple[float, StackChange]:
        """Return the percentage with a matching function, each sample counted once, and its change."""
        outermost: list[CallNode] = []
        pending = [self.root]
        while pending:
            for node in pending.pop().children.values():
                (outermost if matches(node.frame) else pending).append(node)
        samples, before = sum(node.total for node in outermost), sum(node.before for node in outermost)
        return samples * self.scale.percent, self.scale.change(samples, before)

    def boxes(self, top: CallNode, least: float) -> list[Box]:
        """Return the boxes of `top` and below it, row by row, without those narrower than `least` of the width."""
        whole = self.weight(top)
        boxes = [Box(0, 0.0, 1.0, top)]
        for box in boxes:
            start = box.start
            for child in self.callees(box.node) if whole else ():
                end = start + self.weight(child) / whole
                if end - start < least:
                    break
                boxes.append(Box(box.depth + 1, start, end, child))
                start = end
        return boxes
