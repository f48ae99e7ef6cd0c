"""Which profiles are found, also those that do not read; and the kinds of knobs."""

import re
from pathlib import Path

import pytest

from cockpit.model.knobs import Knob
from cockpit.profiles import catalogue
from cockpit.profiles.reader import parse_profile
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
    arguments = ["./mine.toml", "./profiles/team.toml", "always"]
    assert [one.argument for one in found[:3]] == arguments and all(one.argument == one.name for one in found[3:])


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
    local = map(Path, ("mpm", "mpm.toml", "profiles/mpm.toml"))
    assert catalogue.shadowed_profiles("mpm") == [own / "mpm.toml", *local]
    (own / "team.toml").write_text(GOOD)
    assert catalogue.find("team") == own / "team.toml"
    assert catalogue.find("../work/profiles/mpm") is None
    assert catalogue.find("") is None and catalogue.find("none") is None
    assert {"mpm", "atime"} <= set(catalogue.names())


@pytest.mark.parametrize("path", sorted((REPOSITORY / "profiles").glob("*.toml")), ids=lambda path: path.stem)
def test_no_command_of_a_shipped_profile_waits_longer_than_a_command_may_take(path: Path) -> None:
    waits = [int(seconds) for seconds in re.findall(r"\btimeout (\d+)\b", path.read_text())]
    assert all(seconds < TIMEOUTS.command for seconds in waits)


HEAD = '[target]\nurl = "http://web1/"\n[[host]]\nname = "web1"\nprocesses = ["apache2"]\nsudo = true\n'
KNOB = '[[knob]]\nname = "K"\nhost = "web1"\n'
DIRECTIVE = KNOB + 'file = "/f"\ndirective = "D"\ntest = "t"\nreload = "r"\n'
OPTIONS = '[[knob.option]]\nname = "a"\nset = "s"\nwhen = "w"\n[[knob.option]]\nname = "b"\nset = "s"\n'


def knob(text: str) -> Knob:
    return parse_profile(HEAD + text, "x", "x.toml").knobs[0]


def test_every_kind_and_actions() -> None:
    assert knob(DIRECTIVE).workers == "apache2"
    assert knob(DIRECTIVE + 'workers = ""').workers == ""
    assert knob(DIRECTIVE + 'kind = "nginx"\nsection = "http {"').workers == ""
    several = HEAD.replace('"apache2"', '"php-fpm*", "nginx"') + DIRECTIVE + 'kind = "nginx"'
    assert parse_profile(several, "x", "x.toml").knobs[0].workers == "nginx"
    assert knob(DIRECTIVE + 'kind = "squid"').effective_cost == "graceful"
    restarted = knob(KNOB + 'kind = "keyvalue"\nfile = "/f"\nkey = "K"\nreload = "service x restart"')
    assert restarted.effective_cost == "restart"
    assert knob(KNOB + 'kind = "sysctl"\nkey = "vm.swappiness"\nmin = 0\nmax = 100').allowed == "0 to 100"
    assert knob(KNOB + 'kind = "mount"\nmount = "/srv"').choices == ("strictatime", "relatime", "noatime")
    assert knob(KNOB + 'kind = "command"\nget = "g"\nset = "s"\ncost = "restart"').effective_cost == "restart"
    choice = knob(KNOB + 'kind = "choice"\n' + OPTIONS + 'when = "w"\n')
    assert (choice.choices, choice.effective_cost) == (("a", "b"), "restart")
    action = '[[action]]\nname = "again"\nhost = "web1"\ncommand = "service x restart"\ntimes = 20\n'
    (found,) = parse_profile(HEAD + action, "x", "x.toml").actions
    assert (found.name, found.host, found.times) == ("again", "web1", 20)


ACTION = 'action = "again"\n[[action]]\nname = "again"\nhost = "web1"\ncommand = "x"\n'


def test_value_without_reload_or_read_at_start_is_written() -> None:
    found = knob(KNOB + 'kind = "keyvalue"\nfile = "/f"\nkey = "K"\n' + ACTION)
    assert (found.written_only, found.effective_cost, found.activation) == (True, "written", "run action again")
    found = knob(KNOB + 'kind = "keyvalue"\nfile = "/f"\nkey = "K"\n')
    assert (found.effective_cost, found.activation) == ("written", "restart or reload its server")
    assert not knob(KNOB + 'kind = "keyvalue"\nfile = "/f"\nkey = "K"\nreload = "r"\n').written_only
    assert not knob(KNOB + 'kind = "sysctl"\nfile = "/f"\nkey = "vm.swappiness"\n').written_only
    limit = DIRECTIVE.replace('"D"', '"ServerLimit"')
    found = knob(limit)
    assert found.written_only and found.effective_cost == "written"
    assert found.activation == "needs a restart: restart its server"
    assert knob(limit + ACTION).activation == "needs a restart: run action again"
    assert knob(limit.replace('"r"', '"systemctl restart apache2"')).effective_cost == "restart"
    assert not knob(limit + 'cost = "restart"\n').written_only
    assert not knob(DIRECTIVE.replace('"D"', '"worker_processes"') + 'kind = "nginx"\n').needs_restart
    assert knob(DIRECTIVE.replace('"D"', '"workers"') + 'kind = "squid"\n').needs_restart
