"""Every imported package is declared, and private parts of packages are used only where nothing public does it."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import pkgutil
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import packages_distributions
from pathlib import Path
from types import ModuleType

import cockpit

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "cockpit").rglob("*.py"))

_UPDATES = "the only place where Textual says which cells of a frame are new; public drivers get finished text"
_NOTICES = "notify() cannot replace a notice in place, and clear_notifications() takes all of them away"
_DRIVER = "LinuxDriver has no public hook for its file, its input thread, and SIGCONT"
_PICTURE = "a picture of what is shown, modal screens included; export_screenshot() gives SVG only"
# Private parts that are used: module and name, and why nothing public does it. All their packages have an upper bound.
PRIVATE: dict[tuple[str, str], str] = {
    ("cockpit.tui.terminal.base_app", "textual._compositor.ChopsUpdate"): _UPDATES,
    ("cockpit.tui.terminal.base_app", "textual._compositor.LayoutUpdate"): _UPDATES,
    ("cockpit.tui.terminal.base_app", "_batch_count"): _UPDATES,
    ("cockpit.tui.terminal.base_app", "_closed"): _UPDATES,
    ("cockpit.tui.terminal.base_app", "_display"): _UPDATES,
    ("cockpit.tui.terminal.base_app", "_filters"): "the list of line filters has no public way in",
    ("cockpit.tui.terminal.base_app", "_notifications"): _NOTICES,
    ("cockpit.tui.terminal.base_app", "_refresh_notifications"): _NOTICES,
    ("cockpit.tui.terminal.picture", "textual._compositor.LayoutUpdate"): _PICTURE,
    ("cockpit.tui.terminal.picture", "_background_screens"): _PICTURE,
    ("cockpit.tui.terminal.picture", "_compositor"): _PICTURE,
    ("cockpit.tui.terminal.driver", "_file"): _DRIVER,
    ("cockpit.tui.terminal.driver", "_must_signal_resume"): _DRIVER,
    ("cockpit.tui.terminal.driver", "_run_input_thread"): _DRIVER,
    ("cockpit.tui.terminal.driver", "_sigcont_application"): _DRIVER,
    ("cockpit.tui.terminal.screen_diff", "textual._compositor.ChopsUpdate"): _UPDATES,
    ("cockpit.tui.terminal.screen_diff", "textual._compositor.CompositorUpdate"): _UPDATES,
    ("cockpit.tui.terminal.screen_diff", "textual._compositor.LayoutUpdate"): _UPDATES,
}
# Of the standard library: `os._exit` and `NamedTuple._asdict` are documented, argparse has no public type for these.
STANDARD = {"_exit", "_asdict", "_replace", "_ArgumentGroup", "_SubParsersAction"}


def declared() -> dict[str, str]:
    """Distribution, in lower case, to its range of versions."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    texts = [*project["dependencies"], *(text for name, found in extras.items() if name != "dev" for text in found)]
    found = [re.match(r"([A-Za-z0-9_-]+)(?:\[[^]]*\])?(.*)", text) for text in texts]
    return {match[1].lower(): match[2] for match in found if match}


@functools.cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """The syntax of a file, each node of it."""
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def imports(path: Path) -> Iterator[tuple[str, str]]:
    """Modules that a file imports, with what it takes from each."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((node.module, alias.name) for alias in node.names)


def foreign(module: str) -> bool:
    top = module.partition(".")[0]
    return top not in sys.stdlib_module_names and top != "cockpit"


def test_every_imported_package_is_declared_and_every_declared_one_imported() -> None:
    by_package = packages_distributions()
    tops = {module.partition(".")[0] for path in SOURCES for module, _ in imports(path) if foreign(module)}
    wanted = {by_package[top][0].lower() for top in tops}
    assert wanted == set(declared())


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def modules() -> list[ModuleType]:
    found = [info.name for info in pkgutil.walk_packages(cockpit.__path__, "cockpit.")]
    return [importlib.import_module(name) for name in found if not name.endswith("__main__")]


@functools.cache
def classes(module: str) -> dict[str, tuple[ast.AST, ...]]:
    """The syntax of each class of a module by its name; none of a module without source."""
    file = inspect.getfile(sys.modules[module]) if hasattr(sys.modules[module], "__file__") else ""
    if not file.endswith(".py"):
        return {}
    return {node.name: tuple(ast.walk(node)) for node in nodes(Path(file)) if isinstance(node, ast.ClassDef)}


@functools.cache
def private_names_of(base: type) -> set[str]:
    """Private attributes and methods that a class of another package has."""
    names = names_of_self(classes(base.__module__).get(base.__name__, ()))
    return {name for name in (*names, *vars(base)) if is_private(name)}


def names_of_self(found: Iterable[ast.AST]) -> set[str]:
    return {node.attr for node in found if isinstance(node, ast.Attribute) and of_self(node)}


def of_self(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name | ast.Call) and ast.unparse(node.value) in ("self", "cls", "super()")


def used_privately() -> set[tuple[str, str]]:
    """Private parts of other packages: imported, inherited and used or replaced, or taken from an object whose private
    names are not cockpit's own."""
    own = {name for path in SOURCES for name in names_made(nodes(path)) if is_private(name)}
    found: set[tuple[str, str]] = set()
    for path in SOURCES:
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for source, name in imports(path):
            if foreign(source) and any(is_private(part) for part in (*source.split("."), name)):
                found.add((module, f"{source}.{name}"))
        for node in nodes(path):
            if isinstance(node, ast.Attribute) and is_private(node.attr) and node.attr not in own | STANDARD:
                found.add((module, node.attr))
    for name, members in ((module.__name__, vars(module)) for module in modules()):
        for cls in (one for one in members.values() if inspect.isclass(one) and one.__module__ == name):
            theirs = {part for base in cls.__mro__ if foreign(base.__module__) for part in private_names_of(base)}
            if theirs:
                body = classes(name)[cls.__name__]
                found |= {(name, part) for part in {*names_of_self(body), *names_made(body)} & theirs}
    return found


def names_made(found: Iterable[ast.AST]) -> Iterator[str]:
    """Names that this syntax defines."""
    for node in found:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and of_self(node):
            yield node.attr
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_private_parts_of_packages_are_those_listed_and_their_packages_have_an_upper_bound() -> None:
    assert used_privately() == set(PRIVATE)
    assert "<" in declared()["textual"]
