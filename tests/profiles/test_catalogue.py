"""Which profiles are found, and that one that does not read is listed all the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cockpit.profiles import catalogue
from cockpit.tuning.change_options import TIMEOUTS
from tests.lab.keeper import REPOSITORY

GOOD = 'question = """\nIs it\nfast?"""\n[target]\nurl = "http://me:sesame@web1/"\n'


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    work = tmp_path / "work"
    (work / "profiles").mkdir(parents=True)
    monkeypatch.chdir(work)
    return work


def test_those_of_the_working_directory_the_users_own_and_those_that_ship(elsewhere: Path) -> None:
    (elsewhere / "mine.toml").write_text(GOOD)
    (elsewhere / "pyproject.toml").write_text('[project]\nname = "x"\n')
    (elsewhere / "profiles" / "team.toml").write_text(GOOD)
    catalogue.own_folder().mkdir(parents=True)
    (catalogue.own_folder() / "always.toml").write_text(GOOD)
    found = catalogue.listed()
    assert [(one.name, one.origin) for one in found[:3]] == [("mine", "here"), ("team", "here"), ("always", "yours")]
    shipped = {one.name for one in found[3:] if one.origin == "shipped"}
    assert {"spare-servers", "mpm", "caches"} <= shipped and len(found) == 3 + len(shipped)
    assert not any(one.problem for one in found)
    assert (found[0].question, found[0].target) == ("Is it fast?", "http://web1/")


def test_a_profile_that_does_not_read_is_listed_with_its_reason(elsewhere: Path) -> None:
    (elsewhere / "profiles" / "broken.toml").write_text('[target]\nurl = "ftp://x/"\n')
    (elsewhere / "profiles" / "bytes.toml").write_bytes(b"\xff\xfe")
    (elsewhere / "profiles" / "folder.toml").mkdir()
    broken, garbage = catalogue.listed()[:2]
    assert (broken.name, broken.profile) == ("broken", None)
    assert broken.problem.startswith("target.url: found 'ftp://x/'") and "\n" not in broken.problem
    assert garbage.problem == "is not UTF-8 text; a profile is a TOML file"


def test_a_shipped_profile_is_not_listed_twice_from_the_clone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
    names = [one.name for one in catalogue.listed()]
    assert len(names) == len(set(names))


def test_a_name_means_the_shipped_profile_then_the_users_own_and_never_a_local_file(elsewhere: Path) -> None:
    shipped = catalogue.find("mpm")
    assert shipped is not None and shipped.is_file()
    own = catalogue.own_folder()
    own.mkdir(parents=True)
    for path in (elsewhere / "profiles" / "mpm.toml", elsewhere / "mpm.toml", elsewhere / "mpm", own / "mpm.toml"):
        path.write_text(GOOD)
    assert catalogue.find("mpm") == shipped
    assert catalogue.shadowed_profiles("mpm") == [
        own / "mpm.toml",
        *map(Path, ("mpm", "mpm.toml", "profiles/mpm.toml")),
    ]
    (own / "team.toml").write_text(GOOD)
    assert catalogue.find("team") == own / "team.toml"
    assert catalogue.find("../work/profiles/mpm") is None
    assert catalogue.find("") is None and catalogue.find("none") is None
    assert {"mpm", "atime"} <= set(catalogue.names())


@pytest.mark.parametrize("path", sorted((REPOSITORY / "profiles").glob("*.toml")), ids=lambda path: path.stem)
def test_no_command_of_a_shipped_profile_waits_longer_than_a_command_may_take(path: Path) -> None:
    waits = [int(seconds) for seconds in re.findall(r"\btimeout (\d+)\b", path.read_text())]
    assert all(seconds < TIMEOUTS.command for seconds in waits)
