"""`python -m tests.mutants COPY [COUNT [SEED]]`: measure which share of random faults in the product the tests notice.

COPY, a new directory, becomes a clone with a Python of its own. COUNT places in the bodies of functions are chosen at
random and changed; each change is inactive until the environment variable MUTANT has its number. All tests run once
without a mutant, which shows the tests that reach each place. Then a process that has collected all tests forks for
each mutant, and the fork runs the tests that reach it until one fails: first those of `make test`, then those of the
lab, quick tests and those of the package first. Tests beyond LIMIT seconds per mutant and suite are left out.
COPY/result.jsonl has a line for each mutant. A measurement that ended early goes on with the mutants that are missing.

Mutations: a comparison turned, `and` for `or`, `+` for `-` and `*` for `/`, a `not` dropped, a condition negated, a
number plus one, a truth value turned, None returned, a call left out.
"""

import ast
import builtins
import copy
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.data import data_of

DATA = data_of(__file__)

COUNT, SEED = 300, 41
LIMIT = 60.0
# Seconds for the tests of one mutant, which may hang.
HANG = 400.0
PARALLEL = 3
COMPARISONS: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
OPERATORS: Mapping[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
}
# Imported by every Python of COPY/.venv. Without MUTANT it notes (place, test), with MUTANT it activates that place.
SWITCH = DATA["switch"]


class Passed(NamedTuple):
    """A test that passed without a mutant: its seconds, its CPU seconds, and whether it belongs to the lab."""

    seconds: float
    cpu: float
    lab: bool


class Place(NamedTuple):
    """A replacement in a source file. Lines count from 1, columns are bytes."""

    file: str
    node: ast.expr
    mutation: str
    kind: str

    @property
    def start(self) -> tuple[int, int]:
        return self.node.lineno, self.node.col_offset

    @property
    def end(self) -> tuple[int, int]:
        return self.node.end_lineno or 0, self.node.end_col_offset or 0


def places(file: str, source: str) -> Iterator[Place]:
    """Yield the possible mutations in the bodies of all functions of a file."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for statement in node.body:
                yield from _in_tree(file, statement)


def _in_tree(file: str, node: ast.AST) -> Iterator[Place]:
    # Positions within f-strings are wrong before Python 3.12. A nested function is visited on its own.
    if isinstance(node, (ast.JoinedStr, ast.pattern, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return
    for expression, mutation, kind in _mutations(node):
        yield Place(file, expression, mutation, kind)
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _in_tree(file, child)


def _mutations(node: ast.AST) -> Iterator[tuple[ast.expr, str, str]]:
    """Yield (expression to replace, its replacement, kind)."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in COMPARISONS:
            yield node, _with(node, ops=[COMPARISONS[type(op)]()]), "comparison"
        case ast.BoolOp():
            yield node, _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And()), "and/or"
        case ast.BinOp() if type(node.op) in OPERATORS and not (_is_text(node.left) or _is_text(node.right)):
            yield node, _with(node, op=OPERATORS[type(node.op)]()), "operator"
        case ast.UnaryOp(op=ast.Not()):
            yield node, ast.unparse(node.operand), "not"
        case ast.Constant(value=bool(value)):
            yield node, str(not value), "truth"
        case ast.Constant(value=int(value) | float(value)):
            yield node, repr(value + 1), "number"
        case ast.Return(value=ast.expr() as value) if not (isinstance(value, ast.Constant) and value.value is None):
            yield value, "None", "return"
        case ast.If() | ast.IfExp():
            yield node.test, f"not ({ast.unparse(node.test)})", "condition"
        case ast.Expr(value=ast.Call() | ast.Await()):
            yield node.value, "None", "call"


def _with(node: ast.expr, **fields: object) -> str:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return ast.unparse(changed)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def choose(root: Path, count: int, seed: int) -> list[Place]:
    """Choose mutations at random that do not overlap."""
    every: list[Place] = []
    for path in sorted((root / "cockpit").rglob("*.py")):
        every += places(str(path.relative_to(root)), path.read_text())
    random.Random(seed).shuffle(every)
    chosen: list[Place] = []
    for place in every:
        if not any(p.file == place.file and p.start < place.end and place.start < p.end for p in chosen):
            chosen.append(place)
        if len(chosen) == count:
            break
    return chosen


def clone(root: Path, count: int, seed: int) -> None:
    """Make the copy, write the mutations into it, and the switch into its Python."""
    subprocess.run(("git", "clone", "--quiet", ".", root), check=True)
    subprocess.run(("make", "-C", root, "setup"), check=True)
    chosen = choose(root, count, seed)
    by_file: dict[str, list[tuple[int, Place]]] = defaultdict(list)
    for number, place in enumerate(chosen):
        by_file[place.file].append((number, place))
    for file, numbered in by_file.items():
        lines = (root / file).read_bytes().splitlines(keepends=True)
        for number, place in sorted(numbered, key=lambda row: row[1].start, reverse=True):
            (first, column), (last, end) = place.start, place.end
            text = b"".join(lines[first - 1 : last])
            tail = len(lines[last - 1]) - end
            old = text[column : len(text) - tail]
            new = f"(({place.mutation}) if __mutant__({number}) else (".encode() + old + b"))"
            lines[first - 1 : last] = [text[:column] + new + text[len(text) - tail :]]
        (root / file).write_bytes(b"".join(lines))
        ast.parse((root / file).read_bytes())
    (site,) = (root / ".venv").glob("lib/python*/site-packages")
    (site / "_mutant_switch.py").write_text(SWITCH.format(notes=str(root / "reached")))
    (site / "mutants.pth").write_text("import _mutant_switch\n")
    rows = [
        {"number": n, "file": p.file, "line": p.start[0], "kind": p.kind, "new": p.mutation}
        for n, p in enumerate(chosen)
    ]
    (root / "mutants.json").write_text(json.dumps(rows, indent=1))


def reach(root: Path) -> None:
    """Run both suites without a mutant; keep the seconds of the tests that passed."""
    environment = {**os.environ, "COCKPIT_DURATIONS": str(root / "durations.json")}
    command = (".venv/bin/python", "-m", "pytest", "-q", "-p", "tests.durations", "--dist", "loadgroup", "-n", "4")
    subprocess.run(command, cwd=root, env=environment)


def run(root: Path) -> None:
    """Run the tests of each mutant without a result, and print the sums."""
    environment = {**os.environ, "COCKPIT_MUTANTS": str(root)}
    command = (
        ".venv/bin/python",
        "-m",
        "pytest",
        "-q",
        "--capture=sys",
        "-p",
        "no:cacheprovider",
        "-p",
        "tests.mutants",
    )
    subprocess.run(command, cwd=root, env=environment, stdin=subprocess.DEVNULL, check=True)
    results = Counter(row["result"] for row in _rows(root / "result.jsonl"))
    print(", ".join(f"{number} {result}" for result, number in results.most_common()))


def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """As a plugin: run the tests of each mutant in a fork instead of all tests."""
    root = Path(os.environ["COCKPIT_MUTANTS"])
    finished = {row["number"] for row in _rows(root / "result.jsonl")}
    rows = [row for row in json.loads((root / "mutants.json").read_text()) if row["number"] not in finished]
    passed = {_plain(test): Passed(*row) for test, row in json.loads((root / "durations.json").read_text()).items()}
    items = {item.nodeid: item for item in session.items}
    tests: dict[int, set[str]] = defaultdict(set)
    for line in (root / "reached").read_text().splitlines():
        number, _, test = line.partition("\t")
        if (test := _plain(test)) in passed and test in items:
            tests[int(number)].add(test)
    running: dict[int, tuple[float, dict[str, object]]] = {}
    while rows or running:
        while rows and len(running) < PARALLEL:
            row = rows.pop(0)
            suites = [
                [items[test] for test in suite] for suite in _order(str(row["file"]), tests[row["number"]], passed)
            ]
            if (child := os.fork()) == 0:
                _in_fork(root, row, suites)
            running[child] = time.monotonic(), row
        time.sleep(0.05)
        for child, (began, row) in list(running.items()):
            if late := time.monotonic() - began > HANG:
                os.killpg(child, signal.SIGKILL)
            if os.waitpid(child, 0 if late else os.WNOHANG)[0]:
                del running[child]
                if row["number"] not in {found["number"] for found in _rows(root / "result.jsonl")}:
                    _write(root, row, "noticed by make test", f"hung for {HANG:g} s" if late else "ended the tests")
    return True


def _rows(file: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def _write(root: Path, row: Mapping[str, object], result: str, by: str) -> None:
    with (root / "result.jsonl").open("a") as file:
        file.write(json.dumps({**row, "result": result, "by": by}) + "\n")


def _plain(test: str) -> str:
    """Return the test without the group that xdist appends."""
    head, sign, tail = test.rpartition("@")
    return head if sign and "]" not in tail and "::" in head else test


def _order(file: str, tests: set[str], passed: Mapping[str, Passed]) -> tuple[list[str], list[str]]:
    """Return the tests of `make test` and of the lab: quick ones first, of these the ones of the package."""
    package = "/" + file.split("/")[1].removesuffix(".py")
    suites: tuple[list[str], list[str]] = [], []
    total = [0.0, 0.0]
    for test in sorted(tests, key=lambda test: (passed[test].seconds > 2, package not in test, passed[test].seconds)):
        lab = passed[test].lab
        total[lab] += passed[test].seconds
        if total[lab] <= LIMIT:
            suites[lab].append(test)
    return suites


def _in_fork(root: Path, row: dict[str, object], suites: Sequence[Sequence[pytest.Item]]) -> None:
    """Run the tests with the mutant until one fails, and write the result."""
    os.setsid()
    number = row["number"]
    os.environ["MUTANT"] = str(number)
    builtins.__dict__["__mutant__"] = number.__eq__
    (folder := Path(f"/tmp/mutant{number}")).mkdir(exist_ok=True)
    os.environ["TMPDIR"], tempfile.tempdir = str(folder), None
    result, by = "survived" if any(suites) else "not reached", ""
    try:
        for suite, name in zip(suites, ("make test", "the lab"), strict=True):
            if by := _failed(suite):
                result = f"noticed by {name}"
                break
        _write(root, row, result, by)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)


def _failed(items: Sequence[pytest.Item]) -> str:
    """Run tests in this order; return the first that fails, or else ""."""
    failed: list[str] = []

    class Reports:
        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            if report.failed:
                failed.append(report.nodeid)

    if not items:
        return ""
    items[0].config.pluginmanager.register(Reports())
    for item, following in zip(items, [*items[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if failed:
            # A skipped test without a following one ends the fixtures.
            items[-1].add_marker("skip")
            items[-1].config.hook.pytest_runtest_protocol(item=items[-1], nextitem=None)
            break
    return (failed or [""])[0]


def main(copy: str, count: int = COUNT, seed: int = SEED) -> None:
    root = Path(copy).resolve()
    if not (root / "mutants.json").exists():
        clone(root, count, seed)
    if not (root / "durations.json").exists():
        reach(root)
    run(root)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
