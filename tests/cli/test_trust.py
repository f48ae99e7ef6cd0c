"""A profile runs commands only once it is trusted: names mean shipped profiles, edits take the trust away."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.terminals import on_terminal
from tests.cli.test_headless import COCKPIT
from tests.commands import cockpit
from tests.servers import http_server

# Every command of it leaves a file behind.
PROFILE = """
[target]
url = "{url}"
[load]
requests = 20
[[host]]
name = "here"
tail = ["touch {folder}/ran-tail; sleep 60"]
[[knob]]
name = "level"
host = "here"
kind = "command"
get = "touch {folder}/ran-get; echo 1"
set = "touch {folder}/ran-set"
[[knob]]
name = "K"
host = "here"
kind = "keyvalue"
file = "{folder}/conf"
key = "K"
test = "touch {folder}/ran-test"
[[action]]
name = "act"
host = "here"
command = "touch {folder}/ran-act"
[study]
runs = 1
[[study.observe]]
name = "look"
host = "here"
command = "touch {folder}/ran-look"
"""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with http_server() as base:
        yield base


class Place:
    """A working directory that somebody else filled, and a state directory of the test's own."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        (folder / "conf").write_text("K=1\n")
        self.profile = self.write(folder / "evil.toml", url)
        self.environment = {**os.environ, "XDG_STATE_HOME": str(folder / "state"), "XDG_CONFIG_HOME": str(folder / "c")}

    def write(self, path: Path, url: str, more: str = "") -> Path:
        path.parent.mkdir(exist_ok=True)
        path.write_text(PROFILE.format(url=url, folder=self.folder) + more)
        return path

    def cockpit(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return cockpit(*arguments, cwd=self.folder, env=self.environment)

    @property
    def ran(self) -> set[str]:
        return {path.name for path in self.folder.glob("ran-*")}


@pytest.fixture
def place(tmp_path: Path, url: str) -> Place:
    return Place(tmp_path, url)


@pytest.mark.parametrize(
    "command",
    [
        ("run", "./evil.toml"),
        ("run", "./evil.toml", "--json"),
        ("check", "./evil.toml"),
        ("doctor", "./evil.toml"),
        ("tune", "./evil.toml", "show", "level"),
        ("tune", "./evil.toml", "action", "act"),
        ("tune", "./evil.toml", "rounds", "level=2"),
        ("study", "./evil.toml", "-o", "out"),
    ],
    ids=" ".join,
)
def test_nothing_of_an_untrusted_profile_runs_without_a_terminal(place: Place, command: tuple[str, ...]) -> None:
    done = place.cockpit(*command)
    assert (done.returncode, done.stdout, place.ran) == (2, "", set())
    (line,) = done.stderr.splitlines()
    assert line.startswith("cockpit: ./evil.toml: is not trusted yet and uses 6 commands")
    assert "cockpit doctor --no-exec --trust ./evil.toml" in line
    assert not (place.folder / "out").exists()


def test_a_shipped_name_means_the_shipped_profile_whatever_the_working_directory_holds(place: Place, url: str) -> None:
    for path in ("mpm", "mpm.toml", "profiles/mpm.toml", "c/cockpit/profiles/mpm.toml"):
        (place.folder / path).parent.mkdir(parents=True, exist_ok=True)
        place.write(place.folder / path, url)
    for command in (("doctor", "mpm", "--no-exec"), ("study", "mpm", "--dry-run")):
        done = place.cockpit(*command)
        assert f"{url}" not in done.stdout and "web1" in done.stdout + done.stderr
        own = place.folder / "c/cockpit/profiles/mpm.toml"
        assert f"other files need their path: {own}, ./mpm, ./mpm.toml, ./profiles/mpm.toml" in done.stderr
    assert place.ran == set()


def test_a_local_file_needs_a_path(place: Place, url: str) -> None:
    place.write(place.folder / "profiles" / "mine.toml", url)
    for name, way_out in (("evil.toml", "./evil.toml"), ("evil", "./evil.toml"), ("mine", "./profiles/mine.toml")):
        done = place.cockpit("run", name, "--trust")
        assert done.returncode == 2
        assert f"cockpit: {name}: no such profile; a file needs a path: {way_out}" in done.stderr
    assert place.ran == set()


def test_once_accepted_it_runs_until_it_or_a_file_that_it_names_is_edited(place: Place, url: str) -> None:
    profile = place.write(place.folder / "evil.toml", url, '[[request]]\nname = "a"\nbody_file = "body"\n')
    (place.folder / "body").write_text("one")
    refused = place.cockpit("tune", "./evil.toml", "show", "level")
    accepting = refused.stderr.partition("accept them: ")[2].strip()
    assert refused.returncode == 2 and place.ran == set()

    assert place.cockpit(*shlex.split(accepting)[1:]).returncode == 0
    assert place.ran == set()
    assert place.cockpit("tune", "./evil.toml", "show", "level").stdout == "1\n"
    assert place.ran == {"ran-get"}

    (place.folder / "body").write_text("two")
    assert place.cockpit("tune", "./evil.toml", "show", "level").returncode == 2
    (place.folder / "body").write_text("one")
    assert place.cockpit("tune", "./evil.toml", "show", "level").returncode == 0
    profile.write_text(profile.read_text() + "\n")
    assert place.cockpit("tune", "./evil.toml", "show", "level").returncode == 2
    assert place.cockpit("tune", "--trust", "./evil.toml", "show", "level").returncode == 0
    assert place.cockpit("tune", "./evil.toml", "show", "level").returncode == 0
    kept = list((place.folder / "state/cockpit/trusted").iterdir())
    assert len(kept) == 2
    assert {path.stat().st_mode & 0o777 for path in kept} == {0o600}
    assert kept[0].parent.stat().st_mode & 0o777 == 0o700


def test_hashes_in_a_folder_that_others_can_write_count_for_nothing(place: Place) -> None:
    assert place.cockpit("tune", "--trust", "./evil.toml", "show", "level").returncode == 0
    (place.folder / "state/cockpit/trusted").chmod(0o777)
    done = place.cockpit("tune", "./evil.toml", "show", "level")
    assert done.returncode == 2 and "is not trusted yet" in done.stderr
    done = place.cockpit("tune", "--trust", "./evil.toml", "show", "level")
    assert done.returncode == 2 and "others can write there" in done.stderr


def test_a_profile_that_only_loads_its_target_needs_no_trust(place: Place, url: str) -> None:
    (place.folder / "plain.toml").write_text(f'[target]\nurl = "{url}"\n[load]\nrequests = 20\n')
    assert place.cockpit("check", "./plain.toml").returncode == 0


@pytest.mark.parametrize("more", ['unix = "/run/docker.sock"', 'urls = "list"'])
def test_local_sockets_and_files_need_trust(place: Place, url: str, more: str) -> None:
    (place.folder / "list").write_text("/a\n")
    (place.folder / "plain.toml").write_text(f'[target]\nurl = "{url}"\n{more}\n')
    done = place.cockpit("run", "./plain.toml")
    assert done.returncode == 2 and "is not trusted yet" in done.stderr


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "a/../../secret", "link", "folder/secret", "."])
@pytest.mark.parametrize(
    "keys",
    [
        '[load]\nbody_file = "{}"',
        '[[request]]\nname = "a"\nbody_file = "{}"',
        '[tls]\nca = "{}"',
        '[tls]\ncert = "{}"',
    ],
)
def test_files_outside_the_profiles_folder_are_refused_even_if_trusted(
    tmp_path: Path, url: str, name: str, keys: str
) -> None:
    (tmp_path / "secret").write_text("sesame")
    inside = tmp_path / "inside"
    inside.mkdir()
    place = Place(inside, url)
    (inside / "link").symlink_to(tmp_path / "secret")
    (inside / "folder").symlink_to(tmp_path)
    (inside / "a").mkdir()
    (inside / "p.toml").write_text(f'[target]\nurl = "{url}"\n{keys.format(name)}\n')
    done = place.cockpit("check", "--trust", "./p.toml")
    assert done.returncode == 2
    assert "is outside the profile's folder" in done.stderr or (name == "." and "regular file" in done.stderr)
    assert "sesame" not in done.stderr


def test_a_flag_may_name_a_file_anywhere(tmp_path: Path, url: str) -> None:
    (tmp_path / "body").write_text("x")
    (tmp_path / "inside").mkdir()
    place = Place(tmp_path / "inside", url)
    (place.folder / "plain.toml").write_text(f'[target]\nurl = "{url}"\n[load]\nrequests = 2\n')
    done = place.cockpit("check", "./plain.toml", "-D", "../body", "--threshold", "sent == 2")
    assert done.returncode == 0, done.stderr


def test_doctor_no_exec_lists_everything_and_runs_nothing(place: Place) -> None:
    done = place.cockpit("doctor", "--no-exec", "./evil.toml")
    assert done.returncode == 0, done.stdout
    for said in ("ran-tail; sleep 60   (tail)", "ran-get; echo 1   (knob level, get)", "ran-test   (knob K, test)"):
        assert f"runs      touch {place.folder}/{said}" in done.stdout
    assert f"writes    {place.folder}/conf   (knob K)" in done.stdout
    assert "is not trusted yet: no host was contacted" in done.stdout
    assert "ok     here" not in done.stdout
    trusted = place.cockpit("doctor", "--no-exec", "--trust", "./evil.toml")
    assert trusted.returncode == 0, trusted.stdout
    assert "ok     here            K = 1" in trusted.stdout and "level =" not in trusted.stdout
    data = json.loads(place.cockpit("doctor", "--no-exec", "--json", "./evil.toml").stdout)
    assert {use["sort"] for use in data["uses"]} == {"target", "host", "command", "writes"}
    assert place.ran == set()
    assert place.cockpit("doctor", "./evil.toml").returncode == 0
    assert place.ran == {"ran-get", "ran-test"}


def test_what_new_writes_is_trusted_until_it_is_edited(place: Place, url: str) -> None:
    done = place.cockpit("new", url, "-o", "made.toml", "--host", ".")
    assert done.returncode == 0 and "cockpit run ./made.toml" in done.stderr
    assert "is not trusted" not in place.cockpit("doctor", "./made.toml").stderr
    with (place.folder / "made.toml").open("a") as file:
        file.write('[[action]]\nname = "x"\nhost = "here"\ncommand = "true"\n')
    done = place.cockpit("doctor", "./made.toml")
    assert done.returncode == 2 and "is not trusted yet" in done.stderr + done.stdout


@pytest.mark.parametrize(("answer", "code", "ran"), [(b"y\n", 0, {"ran-get"}), (b"\n", 2, set()), (b"n\n", 2, set())])
def test_a_terminal_is_asked_once_with_everything_in_sight(
    place: Place, url: str, answer: bytes, code: int, ran: set[str]
) -> None:
    hidden = "true" + " " * 5000 + "; true \\u001b[2J # hidden"
    more = f'[[action]]\nname = "b"\nhost = "here"\ncommand = """{hidden}\n\n\n\n\n\n\nlast"""\n'
    head, study, tail = PROFILE.partition("[study]")
    place.profile.write_text((head + more + study + tail).format(url=url, folder=place.folder))
    command = [*COCKPIT, "tune", str(place.profile), "show", "level"]
    with on_terminal(command, environment=place.environment) as asked:
        shown = asked.until(b"[y/N] ")
        assert b"true [5000 blanks] ; true \xc2\xb7[2J # hidden" in shown
        assert b"empty lines]" in shown and b"last" in shown and b"ran-set" in shown
        assert b"\x1b" not in shown
        assert place.ran == set()
        asked.type(answer)
        assert asked.end() == code
        assert place.ran == ran
    if not code:
        with on_terminal(command, environment=place.environment) as again:
            assert again.end() == 0
            assert b"Trust it" not in again.shown
