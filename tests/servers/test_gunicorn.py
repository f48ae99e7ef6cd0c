"""Settings in a Python file: read, changed with all other bytes kept, never executed."""

from __future__ import annotations

import pytest

from cockpit.servers.editing import ConfigError
from cockpit.servers.gunicorn import KIND
from cockpit.servers.gunicorn.editor import GunicornGrammar
from cockpit.servers.inventory import Inventory, Listener, Process


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"(" * 5000, "not a Python file"),
        (b"x = 1\n" * 60000, "larger than 256 KiB"),
        (b"# coding: latin-1\nx = '\xe9'; workers = 4; threads = 2\n", "not a Python file"),
    ],
)
def test_unreadable_file_is_refused(text: bytes, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        GunicornGrammar().read(text, "workers")


def started(*message: str, unit: str = "") -> Process:
    command = ("/opt/app/bin/python3", "/opt/app/bin/gunicorn", *message)
    return Process(7, 1, "gunicorn", command, "/usr/bin/python3.11", "/srv/app", is_certain=True, unit=unit)


def discover(process: Process) -> tuple[str, str, list[str]]:
    inventory = Inventory("root", (process,), (Listener("gunicorn", 7, 8000),))
    [server] = KIND.discover(inventory)
    assert server.startup
    return server.startup.file, server.startup.reload, [candidate.name for candidate in server.candidates]


def test_file_and_reload_of_running_master_are_found() -> None:
    file, reload, names = discover(started("-c", "conf/g.py", "--pid=/run/g.pid", "-w", "3", "app:app"))
    assert file == "/srv/app/conf/g.py" and reload == 'kill -HUP "$(cat /run/g.pid)"'
    # Settings on the command line are not offered in the file.
    assert "workers" not in names and "threads" in names
    file, reload, names = discover(started("app:app", unit="web.service"))
    assert file == "/srv/app/gunicorn.conf.py"
    assert reload == "systemctl kill --signal=HUP --kill-who=main web.service"
    assert discover(started("app:app"))[1].startswith("pkill -HUP -o -x -f -- ")
    assert discover(started("-c", "python:app.conf", "app:app"))[0] == ""
    # Options without a value, or with a name other than the setting's.
    file, _, names = discover(started("--preload", "-c", "conf/g.py", "--keep-alive", "5", "app:app"))
    assert file == "/srv/app/conf/g.py"
    assert not {"preload_app", "keepalive"} & {*names}


def test_options_of_the_environment_win_over_the_file_and_lose_against_the_command_line() -> None:
    process = started("-w", "3", "app:app")._replace(facts=(("GUNICORN_CMD_ARGS", "-c 'conf/g.py' --workers=5 -t 9"),))
    file, _, names = discover(process)
    assert file == "/srv/app/conf/g.py" and not {"workers", "timeout"} & {*names}
    [server] = KIND.discover(Inventory("root", (process,)))
    assert server.startup and dict(server.startup.overridden) == {
        "workers": "its command line",
        "timeout": "GUNICORN_CMD_ARGS in its environment",
    }
    assert discover(started("app:app")._replace(facts=(("GUNICORN_CMD_ARGS", "'"),)))[0] == "/srv/app/gunicorn.conf.py"
