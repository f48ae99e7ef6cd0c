"""A profile runs commands only if it is trusted: names mean shipped profiles, edits revoke trust."""

import contextlib
import json
import os
import shlex
import subprocess
from pathlib import Path
from unittest.mock import patch

import pytest

from cockpit.profiles.reader import read_profile
from cockpit.profiles.uses import listing, summary, uses_of
from tests.cli.conftest import in_process, keyvalue
from tests.cli.terminals import cockpit_on_terminal
from tests.data import data_of

DATA = data_of(__file__)

# Every command creates a file.
PROFILE = DATA["profile"]


class Workspace:
    """A working directory with files of another user, and a state directory of the test."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        (folder / "conf").write_text("K=1\n")
        self.profile = self.write(folder / "evil.toml", url)
        self.environment = {"XDG_STATE_HOME": str(folder / "state"), "XDG_CONFIG_HOME": str(folder / "c")}

    def write(self, path: Path, url: str, more: str = "") -> Path:
        path.parent.mkdir(exist_ok=True)
        path.write_text(PROFILE.format(url=url, folder=self.folder) + more)
        return path

    def cockpit(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        with contextlib.chdir(self.folder), patch.dict(os.environ, self.environment):
            return in_process(*arguments)

    def show(self, *flags: str) -> subprocess.CompletedProcess[str]:
        """Show the value of a knob, which runs a command."""
        return self.cockpit("tune", *flags, "./evil.toml", "show", "level")

    @property
    def ran(self) -> set[str]:
        return {path.name for path in self.folder.glob("ran-*")}


@pytest.fixture
def workspace(tmp_path: Path, url: str) -> Workspace:
    return Workspace(tmp_path, url)


@pytest.mark.parametrize(
    "command",
    DATA["untrusted_profile_runs_nothing_without_terminal"],
    ids=" ".join,
)
def test_untrusted_profile_runs_nothing_without_terminal(workspace: Workspace, command: tuple[str, ...]) -> None:
    done = workspace.cockpit(*command)
    assert (done.returncode, done.stdout, workspace.ran) == (2, "", set())
    (line,) = done.stderr.splitlines()
    assert line.startswith("cockpit: ./evil.toml: not trusted yet, uses 6 commands")
    assert "cockpit doctor --no-exec --trust ./evil.toml" in line
    assert not (workspace.folder / "out").exists()


def test_shipped_name_ignores_files_in_working_directory(workspace: Workspace, url: str) -> None:
    for path in ("mpm", "mpm.toml", "profiles/mpm.toml", "c/webcockpit/profiles/mpm.toml"):
        (workspace.folder / path).parent.mkdir(parents=True, exist_ok=True)
        workspace.write(workspace.folder / path, url)
    for command in (("doctor", "mpm", "--no-exec"), ("study", "mpm", "--dry-run")):
        done = workspace.cockpit(*command)
        assert f"{url}" not in done.stdout and "web1" in done.stdout + done.stderr
        own = workspace.folder / "c/webcockpit/profiles/mpm.toml"
        assert f"other files need their path: {own}, ./mpm, ./mpm.toml, ./profiles/mpm.toml" in done.stderr
    assert workspace.ran == set()


def test_local_file_needs_path(workspace: Workspace, url: str) -> None:
    workspace.write(workspace.folder / "profiles" / "mine.toml", url)
    for name, path in (("evil.toml", "./evil.toml"), ("evil", "./evil.toml"), ("mine", "./profiles/mine.toml")):
        done = workspace.cockpit("run", name, "--trust")
        assert done.returncode == 2
        assert f"cockpit: {name}: no such profile; a file needs a path: {path}" in done.stderr
    assert workspace.ran == set()


def test_a_use_of_several_knobs_is_listed_once(tmp_path: Path, url: str) -> None:
    file = tmp_path / "p.toml"
    knobs = "".join(keyvalue(name, "/etc/conf", 'reload = "service a reload"') for name in "abcd")
    file.write_text(f'[target]\nurl = "{url}"\n[[host]]\nname = "web1"\n{knobs}')
    listed = list(listing(uses_of(read_profile(file))))
    assert listed[-2] == "  writes    /etc/conf   (knob a; knob b; 2 more)"
    assert listed[-1] == "  runs      service a reload   (knob a, reload; knob b, reload; 2 more)"
    assert summary(uses_of(read_profile(file))) == "1 command, 1 file, 1 host (web1)"


def test_logs_variants_and_generators_are_listed(tmp_path: Path, url: str) -> None:
    file = tmp_path / "p.toml"
    variants = "".join(f'[[variant]]\nname = "{name}"\nurl = "http://{name}/"\n' for name in "ab")
    hosts = '[[host]]\nname = "web1"\naccess_log = "/etc/log"\n[[generator]]\nname = "gen1"\nssh = "gen1"\n'
    file.write_text(f'[target]\nurl = "{url}"\n{variants}{hosts}')
    listed = "\n".join(listing(uses_of(read_profile(file))))
    assert all(text in listed for text in ("reads     /etc/log   (access log)", "http://a/", "http://b/", "python3"))


def test_trust_ends_when_profile_or_named_file_is_edited(workspace: Workspace, url: str) -> None:
    profile = workspace.write(workspace.folder / "evil.toml", url, '[[request]]\nname = "a"\nbody_file = "body"\n')
    (workspace.folder / "body").write_text("one")
    refused = workspace.show()
    accepting = refused.stderr.partition("accept them: ")[2].strip()
    assert refused.returncode == 2 and workspace.ran == set()

    assert workspace.cockpit(*shlex.split(accepting)[1:]).returncode == 0
    assert workspace.ran == set()
    assert workspace.show().stdout == "1\n"
    assert workspace.ran == {"ran-get"}

    (workspace.folder / "body").write_text("two")
    assert workspace.show().returncode == 2
    (workspace.folder / "body").write_text("one")
    assert workspace.show().returncode == 0
    profile.write_text(profile.read_text() + "\n")
    assert workspace.show().returncode == 2
    assert workspace.show("--trust").returncode == 0
    assert workspace.show().returncode == 0
    kept = list((workspace.folder / "state/webcockpit/trusted").iterdir())
    assert len(kept) == 2
    assert {path.stat().st_mode & 0o777 for path in kept} == {0o600}
    assert kept[0].parent.stat().st_mode & 0o777 == 0o700


def test_hashes_in_folder_writable_by_others_are_ignored(workspace: Workspace) -> None:
    assert workspace.show("--trust").returncode == 0
    (workspace.folder / "state/webcockpit/trusted").chmod(0o777)
    done = workspace.show()
    assert done.returncode == 2 and "not trusted yet" in done.stderr
    done = workspace.show("--trust")
    assert done.returncode == 2 and "others can write to the folder" in done.stderr


@pytest.mark.parametrize("more", ['unix = "/run/docker.sock"', 'urls = "list"'])
def test_local_sockets_and_files_need_trust(workspace: Workspace, url: str, more: str) -> None:
    (workspace.folder / "list").write_text("/a\n")
    (workspace.folder / "plain.toml").write_text(f'[target]\nurl = "{url}"\n{more}\n')
    done = workspace.cockpit("run", "./plain.toml")
    assert done.returncode == 2 and "not trusted yet" in done.stderr


BODY = '[load]\nbody_file = "{}"'


@pytest.mark.parametrize(
    ("keys", "name"),
    [
        *((BODY, name) for name in ("../secret", "/etc/passwd", "a/../../secret", "link", "folder/secret", ".")),
        ('[[request]]\nname = "a"\nbody_file = "{}"', "../secret"),
        *((f'[tls]\n{key} = "{{}}"', "folder/secret") for key in ("ca", "cert")),
    ],
)
def test_files_outside_profile_folder_are_refused(tmp_path: Path, url: str, keys: str, name: str) -> None:
    (tmp_path / "secret").write_text("sesame")
    inside = tmp_path / "inside"
    inside.mkdir()
    workspace = Workspace(inside, url)
    (inside / "link").symlink_to(tmp_path / "secret")
    (inside / "folder").symlink_to(tmp_path)
    (inside / "a").mkdir()
    (inside / "p.toml").write_text(f'[target]\nurl = "{url}"\n{keys.format(name)}\n')
    done = workspace.cockpit("check", "--trust", "./p.toml")
    assert done.returncode == 2
    assert "is outside the profile's folder" in done.stderr or (name == "." and "regular file" in done.stderr)
    assert "sesame" not in done.stderr


def test_flag_may_name_file_outside_folder(tmp_path: Path, url: str) -> None:
    (tmp_path / "body").write_text("x")
    (tmp_path / "inside").mkdir()
    workspace = Workspace(tmp_path / "inside", url)
    (workspace.folder / "plain.toml").write_text(f'[target]\nurl = "{url}"\n[load]\nrequests = 2\n')
    done = workspace.cockpit("check", "./plain.toml", "-D", "../body", "--expect-status", "501")
    assert done.returncode == 0, done.stderr


def test_doctor_no_exec_lists_everything_and_runs_nothing(workspace: Workspace) -> None:
    done = workspace.cockpit("doctor", "--no-exec", "./evil.toml")
    assert done.returncode == 0, done.stdout
    for listed in ("ran-tail; sleep 60   (tail)", "ran-get; echo 1   (knob level, get)", "ran-test   (knob K, test)"):
        assert f"runs      touch {workspace.folder}/{listed}" in done.stdout
    assert f"writes    {workspace.folder}/conf   (knob K)" in done.stdout
    assert "not trusted yet; no host was contacted" in done.stdout
    assert "ok     here" not in done.stdout
    trusted = workspace.cockpit("doctor", "--no-exec", "--trust", "./evil.toml")
    assert trusted.returncode == 0, trusted.stdout
    assert "ok     here            K = 1" in trusted.stdout and "level =" not in trusted.stdout
    data = json.loads(workspace.cockpit("doctor", "--no-exec", "--json", "./evil.toml").stdout)
    assert {use["sort"] for use in data["uses"]} == {"target", "host", "command", "writes"}
    assert workspace.ran == set()
    assert workspace.cockpit("doctor", "./evil.toml").returncode == 0
    assert workspace.ran == {"ran-get", "ran-test"}
    # Nor is the running server asked for the value of a knob with a file.
    for path in workspace.folder.glob("ran-*"):
        path.unlink()
    active = f'get = "touch {workspace.folder}/ran-got; echo 1"\nreload = "true"'
    with workspace.profile.open("a") as file:
        file.write(keyvalue("K2", workspace.folder / "conf", active, "here").replace('key = "K2"', 'key = "K"'))
    done = workspace.cockpit("doctor", "--no-exec", "--trust", "./evil.toml")
    assert "ok     here            K2 = 1  (" in done.stdout and workspace.ran == set(), "its changes are activated"


def test_new_profile_is_trusted_until_edited(workspace: Workspace, url: str) -> None:
    assert "no servers and settings without a host" in workspace.cockpit("new", url, "-o", "load.toml").stderr
    done = workspace.cockpit("new", url, "-o", "made.toml", "--host", ".")
    assert done.returncode == 0 and "cockpit run ./made.toml" in done.stderr
    assert "not trusted" not in workspace.cockpit("doctor", "./made.toml").stderr
    with (workspace.folder / "made.toml").open("a") as file:
        file.write('[[action]]\nname = "x"\nhost = "here"\ncommand = "true"\n')
    done = workspace.cockpit("doctor", "./made.toml")
    assert done.returncode == 2 and "not trusted yet" in done.stderr + done.stdout


@pytest.mark.parametrize(("answer", "code", "ran"), [(b"y\n", 0, {"ran-get"}), (b"\n", 2, set()), (b"n\n", 2, set())])
def test_terminal_prompts_once(workspace: Workspace, url: str, answer: bytes, code: int, ran: set[str]) -> None:
    hidden = "true" + " " * 5000 + "; true \\u001b[2J # hidden"
    more = f'[[action]]\nname = "b"\nhost = "here"\ncommand = """{hidden}\n\n\n\n\n\n\nlast"""\n'
    head, study, tail = PROFILE.partition("[study]")
    workspace.profile.write_text((head + more + study + tail).format(url=url, folder=workspace.folder))
    command = ("tune", workspace.profile, "show", "level")
    with cockpit_on_terminal(*command, environment=workspace.environment) as terminal:
        shown = terminal.until(b"[y/N] ")
        assert b"true [5000 blanks] ; true \xc2\xb7[2J # hidden" in shown
        assert b"empty lines]" in shown and b"last" in shown and b"ran-set" in shown
        assert b"\x1b" not in shown
        assert workspace.ran == set()
        terminal.type(answer)
        assert terminal.end() == code
        assert workspace.ran == ran
    if not code:
        with cockpit_on_terminal(*command, environment=workspace.environment) as again:
            assert again.end() == 0
            assert b"Trust it" not in again.shown


def test_trust_question_shows_owner_and_mode_of_a_program_outside_the_systems_directories(workspace: Workspace) -> None:
    program = workspace.folder / "program"
    program.touch()
    program.chmod(0o777)
    text = workspace.profile.read_text()
    workspace.profile.write_text(text.replace('get = "touch', f'get = "{program} </dev/null; touch'))
    listed = workspace.cockpit("doctor", "--no-exec", "./evil.toml").stdout
    assert f"owner     {program} ({program.owner()}, -rwxrwxrwx)" in listed
    assert workspace.ran == set()
