"""The call tree of folded stacks, and its difference to that of a baseline."""

import numpy as np
import pytest

from cockpit.analysis.stacks.call_tree import CallNode, CallTree, StackChange, StackScale
from cockpit.analysis.stacks.profiles import stack_profile
from cockpit.model import events as ev
from cockpit.model.fold.fold import fold_all
from cockpit.model.stacks import StackSlice
from tests.analysis.profiled import FORKING, SERVING, profiled, slice_of

STACKS = {"a;main;f": 6, "a;main;g": 2, "a;main": 1, "b": 1}
BEFORE = {"a;main;f": 5, "a;main;fork": 15}


def nodes(tree: CallTree) -> list[CallNode]:
    kept = [tree.root]
    for node in kept:
        kept += node.children.values()
    return kept


def test_samples_of_a_tree_add_up_exactly() -> None:
    tree = CallTree({**SERVING, **FORKING, "[other]": 7})
    total = sum(SERVING.values()) + sum(FORKING.values()) + 7
    assert tree.root.total == total == sum(node.own for node in nodes(tree))
    assert all(node.total == node.own + sum(child.total for child in node.children.values()) for node in nodes(tree))
    assert tree.percent(tree.root) == 100 and not any(tree.change(node).points for node in nodes(tree))


def test_points_of_a_difference_add_up_to_the_change_of_cpu_per_request() -> None:
    tree = CallTree(STACKS, BEFORE, ratio=0.5)
    shown = {node.path: (tree.percent(node), tree.change(node).points) for node in nodes(tree)}
    # Of the CPU/request before: 25% in f and 75% in fork; half of it is left, six tenths of that in f.
    assert shown[()] == (50, -50)
    assert shown["a", "main", "f"] == pytest.approx((30, 5))
    assert shown["a", "main", "fork"] == pytest.approx((0, -75))
    own = sum(tree.own_percent(node) for node in nodes(tree))
    assert own == pytest.approx(tree.percent(tree.root))
    for node in nodes(tree):
        if not node.own and node.children:
            changes = [tree.change(child).points for child in node.children.values()]
            assert tree.change(node).points == pytest.approx(sum(changes))


def test_equal_profiles_have_no_difference() -> None:
    tree = CallTree(SERVING, {stack: 3 * samples for stack, samples in SERVING.items()})
    assert max(abs(tree.change(node).points) for node in nodes(tree)) < 1e-9


@pytest.mark.parametrize("before", [None, BEFORE])
def test_boxes_are_within_their_callers_and_do_not_overlap(before: dict[str, int] | None) -> None:
    tree = CallTree(STACKS, before)
    boxes = {box.node: box for box in tree.boxes(tree.root, 0.001)}
    assert set(boxes) == set(nodes(tree)), "also functions that only one side has"
    for node, box in boxes.items():
        ends = [box.start]
        for child in tree.callees(node):
            inner = boxes[child]
            assert inner.depth == box.depth + 1 and inner.start == pytest.approx(ends[-1])
            ends.append(inner.end)
        assert ends[-1] <= box.end + 1e-9
    assert [box.node.frame for box in tree.boxes(tree.root, 0.2)][:2] == ["all", "a"]
    assert tree.boxes(tree.at(("a", "main")), 0.001)[0].node.frame == "main"


def test_a_path_leads_to_the_innermost_known_caller() -> None:
    tree = CallTree(STACKS)
    assert tree.at(("a", "main", "f")).path == ("a", "main", "f")
    assert tree.at(("a", "main", "gone", "f")).path == ("a", "main")
    assert tree.at(("gone",)) is tree.root


def test_matching_counts_each_sample_once() -> None:
    tree = CallTree({"a;f;g;f": 3, "a;h": 1})
    assert tree.matching(lambda frame: frame in "fg") == (75, StackChange())
    assert CallTree({"a;f": 1, "a": 3}, {"f": 1}).matching(lambda frame: frame == "f")[1].points == -75


def test_size_is_bounded_and_keeps_all_samples() -> None:
    stacks = {";".join(f"f{at}.{depth}" for depth in range(120)): 1 for at in range(600)}
    tree = CallTree(stacks | {"hot": 100})
    assert len(nodes(tree)) <= 50_130
    assert tree.root.total == sum(node.own for node in nodes(tree)) == 700
    assert tree.root.children["hot"].own == 100 and tree.root.children["[other]"].own > 0
    assert [node.path for node in nodes(CallTree(dict(reversed(stacks.items())) | {"hot": 100}))] == [
        node.path for node in nodes(tree)
    ], "the order of the stacks does not matter"


def test_profile_of_a_segment_beside_its_baseline() -> None:
    state = fold_all(profiled())
    first, second = state.segments
    profile = stack_profile(state, "web1", second, first)
    assert profile is not None and profile.before is not None
    assert (profile.hz, profile.samples, profile.seconds) == (
        49,
        6 * sum(1.3 * n // 1 for n in SERVING.values()) + 18,
        60,
    )
    # The same CPU for serving a request, and none for the forks: 102 of 272 samples.
    assert profile.tree.change(profile.tree.root).points == pytest.approx(-37.8, abs=1.5)
    changes = {row.frame: row.total_change for row in profile.functions}
    assert changes["fork"].points == pytest.approx(-100 * 55 / 272, abs=0.1) and changes["fork"].clear
    assert abs(changes["writev"].points) < 1 and not changes["writev"].clear
    same = stack_profile(fold_all(alike()), "web1", second, first)
    assert same is not None and same.before is not None
    assert not any(row.own_change.clear or row.total_change.clear for row in same.functions)
    assert not any(same.tree.change(node).clear for node in nodes(same.tree) if node.path[1:])
    alone = stack_profile(state, "web1", first)
    assert alone is not None and alone.before is None and alone.functions[0].frame == "tcp_sendmsg_[k]"
    assert stack_profile(state, "unknown", second, first) is None


def alike() -> list[ev.AnyEvent]:
    """Return the profiled session without forks before the change: 30% more requests in 30% more samples."""
    return [
        slice_of(event.t, SERVING, other=3) if isinstance(event, StackSlice) and event.t <= 60 else event
        for event in profiled()
    ]


def test_only_significant_functions_have_clear_changes() -> None:
    tree = CallTree(SERVING, {**SERVING, **FORKING}, 0.62, significant={"fork"})
    clear = {node.frame for node in nodes(tree) if tree.change(node).clear}
    assert clear == {"all", "apache2", "fork"}, "the process and the whole are no functions"


def test_points_have_a_sign() -> None:
    assert [str(StackChange(value)) for value in (-8.66, 0.44, -0.04, 0.0)] == ["−8.7", "+0.4", "0.0", "0.0"]


def test_chance_hardly_makes_a_clear_change() -> None:
    random = np.random.default_rng(1)
    scale = StackScale(100 / 2000, 100 / 2000)
    equal = [scale.change(*map(int, random.poisson(mean, 2))) for mean in (2, 20, 200, 1000) for _ in range(2000)]
    assert sum(change.clear for change in equal) / len(equal) < 0.005
    less = [scale.change(int(random.poisson(100)), int(random.poisson(200))) for _ in range(500)]
    assert sum(change.clear for change in less) / len(less) > 0.95
    assert not scale.change(9, 0).clear and scale.change(20, 0).clear
