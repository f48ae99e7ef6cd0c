"""Commands without the screen: data on stdout, progress on stderr, signals, hosts that cannot be watched."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import asyncssh
import psutil
import pytest

from cockpit.cli.run_session import check_hosts
from cockpit.model.errors import AuthRefused, HostKeyChanged
from cockpit.model.generators import GeneratorSample
from cockpit.model.host.samples import HostConfig
from cockpit.recording.reader import Recording
from tests.cli.terminals import COCKPIT, running, wait_for_responses
from tests.commands import cockpit
from tests.hosts.sshd import Sshd, locked
from tests.waiting import DEADLINE, wait_until


def test_run_counts_exactly_and_is_recorded_and_reported(url: str, tmp_path: Path) -> None:
    file = tmp_path / "s.cockpit"
    secret = ("-H", "Authorization: Bearer sesame", "-H", "Cookie: sesame")
    done = cockpit("run", url, "-c", "7", "-n", "1001", "--no-tui", "--json", "--record", file, *secret)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["completed"], result["sent"], result["failed"]) == (1001, 1001, 0)
    assert result["statuses"] == {"200": 1001}
    assert result["bytes"] > 1001 * 92
    assert result["service"]["p50"] <= result["service"]["p99"] <= result["service"]["max"]
    assert "closed c=7 n=1001" in done.stderr
    assert json.loads(cockpit("report", file, "--json").stdout) == [result]
    with Recording(file) as recording:
        assert "sesame" not in repr(list(recording.events()))


def test_profile_with_two_variants_runs_a_duet(url: str, tmp_path: Path) -> None:
    profile = tmp_path / "p.toml"
    variants = "".join(f'[[variant]]\nname = "{name}"\nurl = "{url}"\n' for name in ("old", "new"))
    profile.write_text(f"{variants}[load]\nrate = 50\n")
    for command in ("run", "duet"):
        done = cockpit(command, profile, "-z", "1s", "--json")
        assert done.returncode == 0, done.stderr
        result = json.loads(done.stdout)
        assert {"old", "new"} <= result["requests"].keys()
        assert result["verdicts"][0]["design"] == "both at the same time"


@pytest.mark.parametrize(("name", "sign"), [("run", "INT"), ("check", "TERM"), ("run", "HUP")])
def test_signal_stops_run_and_keeps_results(url: str, tmp_path: Path, name: str, sign: str) -> None:
    file = tmp_path / "s.cockpit"
    with running(name, url, "-q", "200", "-z", "60s", "--record", file, "--json", folder=tmp_path) as command:
        wait_for_responses(file, command)
        command.send_signal(signal.Signals[f"SIG{sign}"])
        assert command.wait() == 130, command.err.read_text()
    result = json.loads(command.out.read_text())
    assert result["ended"] == "stopped"
    assert result["completed"] > 0
    assert result["sent"] == result["completed"] + result["abandoned"]
    assert name == "run" or result["check"]["exit"] == 130
    with Recording(file) as recording:
        # The generator is read until the end.
        kinds = [type(event).__name__ for event in recording.events() if not isinstance(event, GeneratorSample)]
    assert kinds[-2:] == ["RunEnded", "SessionEnded"]
    assert not list(tmp_path.glob("*-wal")) and "Traceback" not in command.err.read_text()


def test_killed_worker_ends_check_with_exit_code_1(url: str, tmp_path: Path) -> None:
    file = tmp_path / "s.cockpit"
    with running("check", url, "-q", "200", "-z", "60s", "--record", file, folder=tmp_path) as command:
        wait_for_responses(file, command)
        for worker in psutil.Process(command.pid).children():
            worker.kill()
        assert command.wait() == 1 and "Traceback" not in command.err.read_text()


def test_nohup_run_continues_after_sighup(url: str) -> None:
    command = ["nohup", *COCKPIT, "run", url, "-q", "100", "-n", "100", "--no-record", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        # Load starts after the command has set up its signals.
        wait_until(lambda: psutil.Process(process.pid).children())
        process.send_signal(signal.SIGHUP)
        stdout, stderr = process.communicate(timeout=DEADLINE)
    assert process.returncode == 0, stderr
    assert json.loads(stdout)["completed"] == 100


def test_sigkill_leaves_readable_recording_and_no_processes(url: str, tmp_path: Path) -> None:
    """The recording is written during the run; the tests of the writer check how often."""
    file = tmp_path / "s.cockpit"

    def end() -> float:
        with Recording(file) as recording:
            return recording.end

    with running("run", url, "-q", "200", "-z", "60s", "--record", file, "--no-tui", folder=tmp_path) as command:
        wait_for_responses(file, command, recorded=1.5)
        workers = psutil.Process(command.pid).children(recursive=True)
        assert workers
        written = end()
        command.kill()
        command.wait()
    assert end() >= written
    gone, alive = psutil.wait_procs(workers, timeout=DEADLINE)
    assert (len(gone), alive) == (len(workers), [])


# Packages that a command without a screen, hosts and extras does not need; each takes a part of its start.
HEAVY = (
    *("textual", "rich", "httpx", "asyncssh", "cryptography", "distributed", "prometheus_client", "pyarrow", "shtab"),
    *("mcp", "pydantic", "scipy"),
)


def test_headless_commands_import_no_heavy_packages(url: str, tmp_path: Path) -> None:
    file, profile = tmp_path / "s.cockpit", tmp_path / "p.toml"
    calls = [
        ["run", url, "-n", "20", "--json", "--record", str(file)],
        ["check", url, "-n", "20"],
        ["report", str(file), "--format", "html"],
        ["compare", str(file), str(file)],
        ["export", str(file), "--format", "csv"],
        ["doctor", url],
        ["new", url, "-o", str(profile), "--host", "."],
    ]
    script = (
        "import sys; from cockpit.cli import main\n"
        f"for call in {calls!r}:\n"
        "    code = main(call)\n"
        f"    heavy = [name for name in sys.modules if name.split('.')[0] in {HEAVY}]\n"
        "    found = heavy + [name for name in sys.modules if name.startswith('cockpit.tui')]\n"
        "    if found or code: sys.exit(f'{call[0]}: {code}, imported {found[:3]}')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_target_is_contacted_before_numpy_is_imported(url: str) -> None:
    """The first contact needs a third of the imports of a session."""
    script = (
        "import asyncio, sys; from cockpit import cli\n"
        "from cockpit.cli.commands.run import preflight\n"
        "from cockpit.cli.profile_argument import named_profile\n"
        f"contact = asyncio.run(preflight(named_profile({url!r}).plan))\n"
        "sys.exit(contact.status != 200 or 'numpy' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture
async def sshd(tmp_path: Path) -> AsyncIterator[Sshd]:
    directory = tmp_path / "sshd"
    directory.mkdir()
    server = await Sshd(directory).start()
    yield server
    await server.stop()


async def run(url: str, sshd: Sshd, tmp_path: Path) -> tuple[int, str]:
    """Run a short load that watches the host; return exit code and stderr."""
    profile = tmp_path / "p.toml"
    profile.write_text(f'[target]\nurl = "{url}"\n[load]\nrequests = 50\n[[host]]\nname = "web1"\nssh = "web"\n')
    command = ("run", "--trust", profile, "--no-tui", "--ssh-config", sshd.ssh_config)
    environment = {**os.environ, "HOME": str(tmp_path), "SSH_AUTH_SOCK": ""}
    done = await asyncio.to_thread(cockpit, *command, env=environment)
    assert ("rate" in done.stdout) == (done.returncode == 0)
    return done.returncode, done.stderr


async def test_host_is_watched_or_ends_the_run(url: str, sshd: Sshd, tmp_path: Path) -> None:
    code, errors = await run(url, sshd, tmp_path)
    assert code == 0, errors
    sshd.client_key.unlink()
    sshd.client_key.touch(0o600)
    asyncssh.generate_private_key("ssh-ed25519").write_private_key(sshd.client_key)
    code, errors = await run(url, sshd, tmp_path)
    assert code == 3 and "cockpit: web1: login as " in errors
    await sshd.stop()
    code, errors = await run(url, sshd, tmp_path)
    assert code == 3 and "cockpit: web1" in errors


@pytest.mark.parametrize("trusted", ["nobody", "another key"])
async def test_host_keys_are_enforced(url: str, sshd: Sshd, tmp_path: Path, trusted: str) -> None:
    sshd.trust(*([asyncssh.generate_private_key("ssh-ed25519")] if trusted == "another key" else []))
    code, errors = await run(url, sshd, tmp_path)
    assert code == 3
    (line,) = [line for line in errors.splitlines() if line.startswith("cockpit: ")]
    assert "web1" in line
    assert ("changed" in line.lower()) == (trusted == "another key"), line
    assert "SHA256:" in line


async def test_interactive_ssh_questions_are_left_to_screen(sshd: Sshd) -> None:
    host = HostConfig(name="web1", ssh="web")
    sshd.known_hosts.unlink()
    await check_hosts([host], sshd.ssh_config)
    sshd.trust(asyncssh.generate_private_key("ssh-ed25519"))
    with pytest.raises(HostKeyChanged):
        await check_hosts([host], sshd.ssh_config)
    sshd.trust(sshd.host_key)
    key = asyncssh.read_private_key(sshd.client_key)
    sshd.client_key.write_bytes(locked(key, "secret"))
    await check_hosts([host], sshd.ssh_config)
    sshd.client_key.unlink()
    with pytest.raises(AuthRefused):
        await check_hosts([host], sshd.ssh_config)
