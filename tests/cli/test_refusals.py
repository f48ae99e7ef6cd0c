"""Invalid commands are refused before any load in one line, and leave no files."""

import os
import subprocess
from pathlib import Path

import pytest

from cockpit.cli import main
from tests.cli.conftest import in_process, keyvalue
from tests.cli.terminals import COCKPIT
from tests.commands import cockpit
from tests.data import data_of

DATA = data_of(__file__)

NOWHERE = "http://127.0.0.1:1/"
LONG = 300 * "a"
RECORDING = str(Path(__file__).parents[1] / "recordings" / "spare-servers.cockpit")


KNOBS = "".join(
    (
        f'[target]\nurl = "{NOWHERE}"\n[[host]]\nname = "a"\n[[host]]\nname = "b"\n',
        keyvalue("One", "/tmp/none", 'reload = "service x restart"', "a"),
        keyvalue("Two", "/tmp/none", host="b"),
    )
)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        *DATA["usage_errors"],
        (("report", RECORDING, "-o", "x.pdf"), "x.pdf: report has no format .pdf; end the name in .html, "),
        (("run", LONG), "aaa…: no such profile"),
        (("check", NOWHERE, "--save-baseline", "a b"), "'a b': invalid baseline name"),
        (("check", NOWHERE, "--add-to-baseline", "a b"), "'a b': invalid baseline name"),
        (("tune", "GUARD", "show"), "guard: 'errros < 2%': unknown metric 'errros'"),
        (("replay", LONG), "aaa: no such recording"),
        (("replay", RECORDING, "--at", "-30s"), "replay: needs a terminal"),
        (("replay", RECORDING, "--at=-30s"), "replay: needs a terminal"),
        (("replay", RECORDING, "--at", "-soon"), "--at: expected one argument"),
        (("replay", RECORDING, "--", "--at", "-3"), "unrecognized arguments: --at"),
        (("run", NOWHERE, "-D", LONG), "File name too long"),
        (("run", "https://127.0.0.1:1/", "--cacert", LONG), "aaa: no such file"),
        (("run", NOWHERE, "-H", os.fsdecode(b"X: \xff")), "not valid in this terminal's encoding"),
    ],
)
def test_usage_error_is_one_line_with_exit_code_2(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    plain = f'[target]\nurl = "{NOWHERE}"\n'
    profiles = {
        "PLAIN": plain,
        "KNOBS": KNOBS,
        "GUARD": f'guard = ["errros < 2%"]\n{plain}',
        "DUET": KNOBS + DATA["duet"],
    }
    words = []
    for word in arguments:
        words.append(str(tmp_path / f"{word.lower()}.toml") if word in profiles else word)
        if word in profiles:
            Path(words[-1]).write_text(profiles[word])
    done = in_process(*words, *(("--trust",) if "KNOBS" in arguments else ()))
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("cockpit: ")
    assert message in line
    assert done.stdout == ""


def test_host_and_port_without_scheme_is_http(url: str) -> None:
    address = url.removeprefix("http://")
    for arguments in (
        ("run", address, "-n", "5"),
        ("run", "http://127.0.0.1:1/", "--target", address, "-n", "5"),
        ("check", address, "-n", "5"),
        ("ab", "-n", "5", address),
        ("doctor", address),
    ):
        done = cockpit(*arguments)
        assert done.returncode == 0, (arguments, done.stderr)


@pytest.mark.parametrize("flag", ["-m", "-H", "-a", "-d", "-D", "-T", "--expect-status", "--expect-body"])
def test_request_flags_are_refused_for_several_requests(flag: str, tmp_path: Path) -> None:
    profile = tmp_path / "p.toml"
    profile.write_text(f'[target]\nurl = "{NOWHERE}"\n[[request]]\nname = "a"\n[[request]]\nname = "b"\n')
    value = {"-H": "X-A: 1", "-a": "me:sesame", "--expect-status": "200"}.get(flag, "x")
    done = in_process("run", profile, flag, value)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"cockpit: {flag}: the profile has several [[request]] blocks")
    assert "sesame" not in line


@pytest.mark.parametrize("url", ["http://me:sesame@h:0/", "http://me:ses/same@h/", "me:sesame@h/"])
def test_no_password_is_echoed(url: str) -> None:
    done = in_process("run", url)
    assert done.returncode == 2
    assert "me" not in done.stderr.partition("a URL is")[0].replace("name", "")
    assert "ses" not in done.stderr


def test_failed_run_leaves_no_files(url: str, tmp_path: Path) -> None:
    files = ("--record", tmp_path / "s.cockpit", "--hlog", tmp_path / "s.hlog")
    assert cockpit("run", NOWHERE, "--no-tui", *files).returncode == 3
    assert "'web1': not an IP address" in cockpit("run", url, "--local-address", "web1", "--no-tui", *files).stderr
    assert list(tmp_path.iterdir()) == []
    done = cockpit("run", url, "-n", "20", "--no-tui", *files)
    assert done.returncode == 0, done.stderr
    assert cockpit("report", tmp_path / "s.cockpit").returncode == 0


def test_unwritable_stdout_keeps_recording(url: str, tmp_path: Path) -> None:
    for name, stdout, code in (("full", ">/dev/full", 2), ("closed", ">&-", 0)):
        command = [*COCKPIT, "run", url, "-n", "50", "--record", str(tmp_path / name)]
        shell = ["sh", "-c", f'exec "$@" {stdout}', "sh", *command]
        done = subprocess.run(shell, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        assert "50 of 50 sent" in cockpit("report", tmp_path / name).stdout


@pytest.mark.parametrize(("command", "first"), DATA["a_load_without_a_single_success_fails_and_says_so"])
def test_a_load_without_a_single_success_fails_and_says_so(command: str, first: str, url: str) -> None:
    done = cockpit(*command.replace("URL", url).split(" "))
    assert done.returncode == 3, done.stderr
    lines = (done.stderr if command.startswith("ab") else done.stdout).splitlines()
    assert first in (lines if command.startswith("ab") else lines[:1])


def test_connection_levels_make_open_profile_closed(url: str, tmp_path: Path) -> None:
    profile = tmp_path / "p.toml"
    profile.write_text(f'[target]\nurl = "{url}"\n[load]\nrate = 50\n')
    done = cockpit("run", profile, "--levels", "1,2:300ms", "--no-tui")
    assert done.returncode == 0, done.stderr
    assert "closed load levels 1, 2 of 0.3 s" in done.stderr


def test_url_list_with_absolute_path(url: str, tmp_path: Path) -> None:
    (tmp_path / "paths").write_text("/status/201\n/status/202\n")
    done = cockpit("run", url, "--urls", tmp_path / "paths", "-n", "10", "--json")
    assert '"201": 5' in done.stdout, done.stderr


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("can't start new thread")])
def test_limit_of_memory_or_threads_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr("cockpit.recording.library.list_recordings", fail)
    assert main(["recordings", "list"]) == 2
    assert capsys.readouterr().err == "cockpit: out of memory or threads; raise the limits: ulimit -v, ulimit -u\n"
