"""The catalogue of profiles: shipped profiles, then the user's profiles, are found by name.

Profiles in the working directory are listed, but only used by path: other users may write to that directory, and must
not redefine a name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from cockpit import DISTRIBUTION
from cockpit.files import configuration_folder
from cockpit.model.errors import ProfileError
from cockpit.model.load.plan import url_without_password
from cockpit.profiles.profile import Profile
from cockpit.profiles.reader import read_profile

SUFFIX = ".toml"
ProfileOrigin = Literal["here", "yours", "shipped"]
# A TOML file in the working directory is listed only if its first MiB has a target: other tools have TOML files, too.
_TARGET = re.compile(rb"^[ \t]*(\[[ \t]*target[ \t]*\]|target[ \t]*[.=])", re.MULTILINE)
_SIZE_LIMIT = 1 << 20


class ProfileEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A profile file. `problem` is the error on one line if the file is invalid; `profile` is None then."""

    name: str
    path: Path
    origin: ProfileOrigin
    profile: Profile | None = None
    problem: str = ""

    @property
    def question(self) -> str:
        return " ".join(self.profile.question.split()) if self.profile else ""

    @property
    def target(self) -> str:
        """The URL of the target, without credentials; "" if the profile is invalid."""
        return url_without_password(self.profile.plan.url) if self.profile else ""

    @property
    def argument(self) -> str:
        """The argument of commands that selects the profile: its name, or its path if the name does not."""
        known = find(self.name)
        if known is not None and known.resolve() == self.path.resolve():
            return self.name
        return str(self.path) if self.path.is_absolute() else f"./{self.path}"


def own_folder() -> Path:
    """Return the folder of the user's profiles; it might not exist yet."""
    return configuration_folder() / "profiles"


def shipped_folder() -> Path | None:
    """Return the folder of shipped profiles: beside the package in a clone, else the data folder of the wheel."""
    modules = Path(__file__).resolve().parents[2]
    if (modules / "pyproject.toml").is_file() and (modules / "profiles").is_dir():
        return modules / "profiles"
    # Of PREFIX/lib/pythonX.Y/site-packages it is PREFIX; after `pip install --target` the folder of the modules.
    folders = (base / "share" / DISTRIBUTION / "profiles" for base in (*modules.parents[2:3], modules))
    return next((folder for folder in folders if folder.is_dir()), None)


def find(name: str) -> Path | None:
    """Return the path of a profile by name: a shipped profile, else the user's; None if there is none."""
    return next(iter(_paths_named(name)), None)


def shadowed_profiles(name: str) -> list[Path]:
    """Return the other profiles of that name, which `find` does not return, as paths for the command line."""
    if not _is_name(name):
        return []
    here = (f"./{name}", f"./{name}{SUFFIX}", f"./profiles/{name}{SUFFIX}")
    local = [Path(path) for path in here if os.path.isfile(path)]  # noqa: PTH113
    known = [path.resolve() for path in _paths_named(name)[:1]]
    return [path for path in (*_paths_named(name)[1:], *local) if path.resolve() not in known]


def names() -> list[str]:
    return sorted({path.stem for folder in _named_folders() for path in _files(folder)})


def _paths_named(name: str) -> list[Path]:
    if not _is_name(name):
        return []
    paths = (folder / f"{name}{SUFFIX}" for folder in _named_folders())
    return [path for path in paths if os.path.isfile(path)]  # noqa: PTH113


def _is_name(text: str) -> bool:
    return bool(text) and os.path.basename(text) == text  # noqa: PTH119


def _named_folders() -> list[Path]:
    shipped = shipped_folder()
    return [*([shipped] if shipped else []), own_folder()]


def listed() -> list[ProfileEntry]:
    """Return all profiles, each file once: of the working directory, the user's, shipped ones."""
    shipped = shipped_folder()
    entries: dict[Path, ProfileEntry] = {}
    for path, origin in _candidates():
        real = path.resolve()
        if real not in entries:
            is_shipped = shipped is not None and real.parent == shipped.resolve()
            entries[real] = _read(path, "shipped" if is_shipped else origin)
    return sorted(entries.values(), key=lambda entry: (("here", "yours", "shipped").index(entry.origin), entry.name))


def stamp() -> frozenset[tuple[str, int, int]]:
    """Return a value that changes when a profile is added, removed or edited."""
    folders = (Path(), Path("profiles"), *_named_folders())
    stamps = []
    for path in (path for folder in folders for path in _files(folder)):
        try:
            known = path.stat()
        except OSError:
            continue
        stamps.append((str(path), known.st_mtime_ns, known.st_size))
    return frozenset(stamps)


def _candidates() -> Iterator[tuple[Path, ProfileOrigin]]:
    for path in _files(Path()):
        if _is_profile(path):
            yield path, "here"
    yield from ((path, "here") for path in _files(Path("profiles")))
    yield from ((path, "yours") for path in _files(own_folder()))
    if shipped := shipped_folder():
        yield from ((path, "shipped") for path in _files(shipped))


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.glob(f"*{SUFFIX}") if path.is_file())
    except OSError:
        return []


def _is_profile(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return _TARGET.search(file.read(_SIZE_LIMIT)) is not None
    except OSError:
        return False


def _read(path: Path, origin: ProfileOrigin) -> ProfileEntry:
    try:
        return ProfileEntry(name=path.stem, path=path, origin=origin, profile=read_profile(path))
    except ProfileError as error:
        return ProfileEntry(name=path.stem, path=path, origin=origin, problem=error.problem)
