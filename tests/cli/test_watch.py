"""`cockpit watch`: flags, and the summary of the traffic of a log."""

import json
from pathlib import Path

import pytest

from tests.commands import cockpit
from tests.data import data_of

DATA = data_of(__file__)


@pytest.mark.parametrize(("flags", "problem"), DATA["invalid_use"])
def test_invalid_use(flags: list[str], problem: str) -> None:
    run = cockpit("watch", "http://127.0.0.1:9/", *flags)
    assert run.returncode == 2
    assert problem in run.stderr


@pytest.mark.parametrize("load", DATA["loads"])
def test_load_of_the_profile_is_not_sent(load: str, tmp_path: Path) -> None:
    lines = '1.2.3.4 - - [x] "GET / HTTP/1.1" 200 17 "-" "agent" 1500\n'
    hosts = ""
    for name in ("a", "b"):
        (tmp_path / name).write_text(lines)
        hosts += f'[[host]]\nname = "{name}"\naccess_log = "{tmp_path / name}"\n'
    profile = tmp_path / "x.toml"
    profile.write_text(load + hosts)
    run = cockpit("watch", profile, "-z", "0.5s", "--no-record", "--trust", "--json")
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["sent"] == 0


def test_flags_name_no_hosts_beside_those_of_the_profile(tmp_path: Path) -> None:
    """The command that undoes the change of a log would be refused."""
    (tmp_path / "x.toml").write_text('[target]\nurl = "http://127.0.0.1:9/"\n[[host]]\nname = "web1"\n')
    run = cockpit("watch", tmp_path / "x.toml", "--trust", "--host", "web2")
    assert (run.returncode, run.stderr.strip()) == (
        2,
        "cockpit: --host: conflicts with the hosts of the profile; leave it out, or name a URL",
    )


def test_summary(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    log.write_text('1.2.3.4 - - [x] "GET / HTTP/1.1" 200 17 "-" "agent" 1500\n')
    flags = ["--host", ".", "--log", log, "-z", "0.5s", "--no-record"]
    run = cockpit("watch", "http://127.0.0.1:9/", *flags, "--json")
    assert run.returncode == 0, run.stderr
    result = json.loads(run.stdout)
    assert result["completed"] == 0
    profile = tmp_path / "x.toml"
    profile.write_text(f"""
        guard = ["errors < 2%"]
        target.url = "http://127.0.0.1:9/"
        [[host]]
        name = "here"
        access_log = "{log}"
        log_format = "%>s"
    """)
    run = cockpit("watch", profile, "-z", "0.5s", "--no-record", "--trust", "--no-tui")
    assert f"logs       here:{log}" in run.stdout
    assert "1 of the last 1 lines have another format" in run.stdout
    missing = cockpit(
        "watch", "http://127.0.0.1:9/", "--host", ".", "--log", tmp_path / "none", "-z", "1s", "--no-record"
    )
    assert missing.returncode == 3
    assert "No such file or directory; name the access log with --log" in missing.stderr
