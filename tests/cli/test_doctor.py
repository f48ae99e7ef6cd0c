"""`cockpit doctor`: one line per problem, with the fix; nothing is changed."""

import asyncio
import hashlib
import json
import sys
import tomllib
from pathlib import Path

import jsonschema
import psutil
import pytest

from cockpit.cli.commands.run import _first_contact
from cockpit.cli.commands.schema import profile_schema
from cockpit.demo.servers import DemoServers
from cockpit.hosts.shell import Completed
from cockpit.profiles.reader import read_profile
from cockpit.setup import doctor
from cockpit.setup.doctor_host import _first_words, _missing, _paths
from tests.cli.conftest import in_process, keyvalue
from tests.commands import cockpit
from tests.data import data_of

DATA = data_of(__file__)


def profile_of(folder: Path, url: str, more: str = "") -> Path:
    path = folder / "p.toml"
    path.write_text(f'[target]\nurl = "{url}"\n[load]\nrequests = 100\n{more}')
    return path


async def test_busy_machine_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "cpu_percent", lambda interval: 30.0)
    (finding,) = await doctor.other_load()
    assert finding.level == "note" and "30% busy without load: the load generator will wait for CPU" in finding.text
    monkeypatch.setattr(psutil, "cpu_percent", lambda interval: 20.0)
    assert await doctor.other_load() == []


PROBLEMS = DATA["problems"]


def test_problem_is_a_line_on_stdout_and_exit_code(url: str, tmp_path: Path) -> None:
    profile = tmp_path / "p.toml"
    for target, more, code, message in PROBLEMS:
        requests = 1_000_000 if code == 0 else 100_000_000
        profile.write_text(f'[target]\nurl = "{target.replace("URL", url)}"\n[load]\nrequests = {requests}\n{more}\n')
        done = in_process("doctor", "--trust", profile)
        assert (done.returncode, done.stderr) == (code, ""), done.stdout
        assert message in done.stdout
        last = done.stdout.splitlines()[-1]
        assert "to fix" in last if code else last in ("nothing to fix, 1 note", "nothing to fix, 2 notes")


HOST = DATA["host"]


def test_all_problems_of_host_are_listed_without_changes(url: str, tmp_path: Path) -> None:
    (tmp_path / "good.conf").write_text("KeepAlive On\n")
    (tmp_path / "dark").write_text("PASSWORD=sesame\n")
    test = tmp_path / "test"
    test.write_text("#!/bin/sh\necho 'Syntax error on line 3' >&2; exit 1\n")
    test.chmod(0o755)
    profile = profile_of(tmp_path, url, HOST.format(folder=tmp_path))
    before = digests(tmp_path)
    done = in_process("doctor", "--trust", profile)
    assert done.returncode == 2, done.stderr
    for message in (
        "ok     here            this machine as ",
        "note   here            no process is named 'no-such-server'",
        "note   here            status page http://127.0.0.1:1/server-status?auto: 127.0.0.1:1: unreachable",
        f"note   here            tail: {tmp_path}/none.log cannot be read",
        "note   here            tail: command 'no-such-tool' not found",
        "ok     here            Good = On",
        f"ERROR  here            Gone: {tmp_path}/none.conf: No such file or directory",
        "ok     here            Dark (secret)",
        "ERROR  here            command 'no-such-reload' not found in the login's PATH",
        f"ERROR  here            `{tmp_path}/test` fails: Syntax error on line 3",
    ):
        assert message in done.stdout
    assert "sesame" not in done.stdout
    assert digests(tmp_path) == before


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir() if path.is_file()}


@pytest.mark.skipif(sys.platform != "linux", reason="not even root can write to this folder of Linux")
def test_unwritable_file_is_a_problem(url: str, tmp_path: Path) -> None:
    file = "/proc/sys/kernel/ostype"
    more = '[[host]]\nname = "here"\n' + keyvalue("K", file, host="here")
    done = in_process("doctor", "--trust", profile_of(tmp_path, url, more))
    assert f"{file} or its folder is not writable" in done.stdout, done.stderr


def test_json_findings(url: str, tmp_path: Path) -> None:
    done = in_process("doctor", profile_of(tmp_path, url), "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["exit"]) == (0, 0)
    findings = [finding for finding in found["findings"] if "% busy" not in finding["text"]]
    assert [finding["subject"] for finding in findings] == ["profile", "this machine", "target"]
    assert {finding["level"] for finding in findings} == {"ok"}


async def test_demo_profile_has_no_problems_over_ssh(tmp_path: Path) -> None:
    async with DemoServers() as world:
        profile = tmp_path / "demo.toml"
        profile.write_text(world.profile_toml())
        jsonschema.Draft202012Validator(profile_schema()).validate(tomllib.loads(profile.read_text()))
        done = await asyncio.to_thread(cockpit, "doctor", "--trust", profile, "--ssh-config", world.ssh_config)
        assert done.returncode == 0, done.stdout + done.stderr
        for message in ("ssh demo as ", "processes 'demo-http-", "MaxSpareServers = 10", "passes"):
            assert message in done.stdout
        closed = tmp_path / "closed"
        closed.write_text("Host demo\n  HostName 127.0.0.1\n  Port 1\n  UserKnownHostsFile /dev/null\n")
        lost = await asyncio.to_thread(cockpit, "doctor", "--trust", profile, "--ssh-config", closed)
        assert lost.returncode == 3
        assert "does `ssh demo` work?" in lost.stdout


def test_load_of_generators_is_not_checked_by_the_limits_of_this_machine(url: str, tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho no such module >&2\nexit 1\n")
    program.chmod(0o755)
    more = f'[[generator]]\nname = "gen1"\nssh = "."\npython = "{program}"\n'
    profile = profile_of(tmp_path, url, f'cpus = [9999]\nlocal_addresses = ["192.0.2.1"]\n{more}')
    assert _first_contact(read_profile(profile)) is None
    done = in_process("doctor", "--trust", profile)
    assert done.returncode == 3, done.stdout
    for message in (
        "ok     this machine    sends no load",
        "ok     target          ",
        "ERROR  gen1            the load program does not start (no such module)",
    ):
        assert message in done.stdout


def test_words_and_paths_of_commands() -> None:
    for command, word in DATA["words_and_paths_of_commands_cases"]:
        assert list(_first_words([command])) == word
    assert list(_paths("tail -n 3 -F /var/log/a.log b.log '/var/log/*.log'")) == ["/var/log/a.log"]


class FailingHost:
    """A host on which every command fails without output."""

    async def run(self, command: str, *, input: bytes = b"", timeout: float = 30) -> Completed:  # noqa: ASYNC109
        return Completed(1, b"", b"")


async def test_command_is_not_missing_if_query_failed() -> None:
    assert await _missing(FailingHost(), ["command:ls"]) == []
    assert await _missing(FailingHost(), []) == []


def test_unknown_profile_suggests_names() -> None:
    done = in_process("doctor", "spare-server")
    assert done.returncode == 2
    assert "did you mean spare-servers?" in done.stdout
    assert "or the name of a shipped profile or of one in " in done.stdout
    assert "schema" not in done.stdout
