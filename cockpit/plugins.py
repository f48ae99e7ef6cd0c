"""Packages of others that add kinds of servers and formats, by the entry points of `pip`: `webcockpit.servers`,
`webcockpit.imports` and `webcockpit.exports`.

Without such a package nothing is imported: the metadata of installed packages is only searched for the groups' names.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from cockpit import DISTRIBUTION

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Added = TypeVar("Added")
CallResult = TypeVar("CallResult")

_METADATA = (".dist-info", ".egg-info")
# Lines about packages that are left out, for the end of the command.
PROBLEMS: list[str] = []


def additions(
    table: str,
    kind: type[Added],
    names: Callable[[Added], Iterable[str]],
    taken: Iterable[str],
    check: Callable[[Added], None] = lambda added: None,
) -> list[tuple[str, Added]]:
    """Return what packages add to the table `servers`, `imports` or `exports`, each with the name of its package.

    An object that is not of this kind, fails `check` (which raises an exception), or has one of the `taken` names is
    left out, with a line in PROBLEMS.
    """
    known, usable = set(taken), []
    for point in _entry_points(f"{DISTRIBUTION}.{table}"):
        package = point.dist.name if point.dist else point.value
        try:
            added = point.load()
            if not isinstance(added, kind):
                raise TypeError(f"{point.value} is no {kind.__name__}")
            check(added)
            if used := known.intersection(names(added)):
                raise ValueError(f"the name {min(used)!r} is in use already; choose another one")
        except (Exception, SystemExit) as error:
            add_problem(package, f"{point.name} of {point.group}", error)
        else:
            known.update(names(added))
            usable.append((package, added))
    return usable


def add_problem(package: str, subject: str, error: BaseException) -> None:
    reason = str(error) if isinstance(error, TypeError | ValueError) else f"{type(error).__name__}: {error}"
    problem = f"package {package}: {subject} is left out: {reason}"
    if problem not in PROBLEMS:
        PROBLEMS.append(problem)


def guarded(package: str, subject: str, call: Callable[..., CallResult]) -> Callable[..., CallResult | None]:
    """Return a function of a package that returns None if it raises an exception, which is a line in PROBLEMS."""

    def attempt(*arguments: object) -> CallResult | None:
        try:
            return call(*arguments)
        except Exception as error:
            add_problem(package, subject, error)
            return None

    return attempt


@cache
def _entry_points(group: str) -> Sequence[EntryPoint]:
    if not _are_installed():
        return ()
    from importlib.metadata import entry_points

    return sorted(entry_points(group=group), key=lambda point: point.name)


@cache
def _are_installed() -> bool:
    return any(map(_has_additions, sys.path))


def _has_additions(folder: str) -> bool:
    """Return whether a package that is installed in a folder of sys.path has such entry points."""
    return any(f"[{DISTRIBUTION}.".encode() in text for text in _entry_point_files(folder))


def _entry_point_files(folder: str) -> Iterator[bytes]:
    try:
        packages = [entry.path for entry in os.scandir(folder or ".") if entry.name.endswith(_METADATA)]
    except OSError:
        return
    for package in packages:
        try:
            with open(f"{package}/entry_points.txt", "rb") as file:  # noqa: PTH123
                yield file.read()
        except OSError:
            continue
