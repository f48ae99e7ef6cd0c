"""All tests in the index of defects exist."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", Path(__file__).with_name("README.md").read_text())


@pytest.mark.parametrize("file", sorted({file for file, _ in NAMED}))
def test_tests_in_index_exist(file: str) -> None:
    tree = ast.parse((ROOT / file).read_text())
    known = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    assert {name for path, name in NAMED if path == file} <= known
