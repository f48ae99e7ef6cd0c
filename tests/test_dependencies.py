"""Every imported package is declared, few are, and private parts of packages are not used."""

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

# Of the standard library, and documented.
STANDARD = {"_exit", "_asdict", "_replace", "_field_defaults"}


def declared() -> dict[str, str]:
    """Return the version range of each distribution (in lower case)."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    texts = [*project["dependencies"], *(text for name, found in extras.items() if name != "dev" for text in found)]
    found = [re.match(r"([A-Za-z0-9_-]+)(?:\[[^]]*\])?(.*)", text) for text in texts]
    return {match[1].lower(): match[2] for match in found if match}


@functools.cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Return all syntax nodes of a file."""
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def imports(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the modules that a file imports, with the imported names."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((node.module, alias.name) for alias in node.names)


def is_third_party(module: str) -> bool:
    top = module.partition(".")[0]
    return top not in sys.stdlib_module_names and top != "cockpit"


def test_imported_packages_are_the_declared_packages() -> None:
    by_package = packages_distributions()
    packages = {module.partition(".")[0] for path in SOURCES for module, _ in imports(path) if is_third_party(module)}
    imported = {by_package[package][0].lower() for package in packages}
    assert imported == set(declared())


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def modules() -> list[ModuleType]:
    found = [info.name for info in pkgutil.walk_packages(cockpit.__path__, "cockpit.")]
    return [importlib.import_module(name) for name in found if not name.endswith("__main__")]


@functools.cache
def classes(module: str) -> dict[str, tuple[ast.AST, ...]]:
    """Return the syntax nodes of each class of a module, by name; empty for a module without source."""
    file = inspect.getfile(sys.modules[module]) if hasattr(sys.modules[module], "__file__") else ""
    if not file.endswith(".py"):
        return {}
    return {node.name: tuple(ast.walk(node)) for node in nodes(Path(file)) if isinstance(node, ast.ClassDef)}


@functools.cache
def private_names_of(base: type) -> set[str]:
    """Return the private attributes and methods of a class."""
    names = names_of_self(classes(base.__module__).get(base.__name__, ()))
    return {name for name in (*names, *vars(base)) if is_private(name)}


def names_of_self(found: Iterable[ast.AST]) -> set[str]:
    return {node.attr for node in found if isinstance(node, ast.Attribute) and is_on_self(node)}


def is_on_self(node: ast.Attribute) -> bool:
    owner = node.value.func if isinstance(node.value, ast.Call) else node.value
    return isinstance(owner, ast.Name) and owner.id in ("self", "cls", "super")


def used_privately() -> set[tuple[str, str]]:
    """Return the private parts of other packages that are imported, inherited and used or replaced, or read from an
    object whose private names cockpit does not define."""
    defined = {name for path in SOURCES for name in defined_names(nodes(path)) if is_private(name)}
    found: set[tuple[str, str]] = set()
    for path in SOURCES:
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for source, name in imports(path):
            if is_third_party(source) and any(is_private(part) for part in (*source.split("."), name)):
                found.add((module, f"{source}.{name}"))
        for node in nodes(path):
            if isinstance(node, ast.Attribute) and is_private(node.attr) and node.attr not in defined | STANDARD:
                found.add((module, node.attr))
    for name, members in ((module.__name__, vars(module)) for module in modules()):
        for cls in (each for each in members.values() if inspect.isclass(each) and each.__module__ == name):
            theirs = {
                part for base in cls.__mro__ if is_third_party(base.__module__) for part in private_names_of(base)
            }
            if theirs:
                body = classes(name)[cls.__name__]
                found |= {(name, part) for part in {*names_of_self(body), *defined_names(body)} & theirs}
    return found


def defined_names(found: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the names that the syntax nodes define."""
    for node in found:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and is_on_self(node):
            yield node.attr
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_private_parts_of_packages_are_not_used() -> None:
    assert used_privately() == set()


def test_installation_without_extras_has_few_direct_dependencies() -> None:
    """`python -m tests.bench installation` prints what they download."""
    assert len(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]) <= 11
