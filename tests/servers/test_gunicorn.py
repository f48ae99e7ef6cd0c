"""Settings in a Python file: read, changed with all other bytes kept, never executed."""

from __future__ import annotations

import pytest

from cockpit.servers.editing import ConfigError
from cockpit.servers.gunicorn import KIND
from cockpit.servers.gunicorn.editor import GunicornGrammar
from cockpit.servers.inventory import Inventory, Listener, Process

GRAMMAR = GunicornGrammar()
TEXT = b"""\
# -*- coding: utf-8 -*-
import multiprocessing

bind = "0.0.0.0:8000"  # caf\xc3\xa9
workers = 4  # per CPU
worker_class = 'gthread'
preload_app: bool = True
threads = multiprocessing.cpu_count() * 2
name = "\xc3\xa9"; keepalive = 5


def post_fork(server, worker):
    timeout = 3
"""


@pytest.mark.parametrize(
    ("name", "value"), [("workers", "4"), ("worker_class", "gthread"), ("preload_app", "True"), ("keepalive", "5")]
)
def test_values_are_read(name: str, value: str) -> None:
    assert GRAMMAR.read(TEXT, name).value == value


def test_change_modifies_only_value() -> None:
    changed = GRAMMAR.change(TEXT, "workers", GRAMMAR.spell("8"))
    assert changed == TEXT.replace(b"workers = 4 ", b"workers = 8 ")
    changed = GRAMMAR.change(TEXT, "worker_class", GRAMMAR.spell("sync"))
    assert changed == TEXT.replace(b"'gthread'", b'"sync"')
    changed = GRAMMAR.change(TEXT, "keepalive", GRAMMAR.spell("2"))
    assert changed == TEXT.replace(b"keepalive = 5", b"keepalive = 2")


def test_new_setting_is_appended_and_can_be_removed() -> None:
    added = GRAMMAR.change(TEXT, "max_requests", GRAMMAR.spell("1000"))
    assert added == TEXT + b"max_requests = 1000\n"
    assert GRAMMAR.change(added, "max_requests", None) == TEXT


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        (TEXT, "threads", "threads is computed"),
        (TEXT, "timeout", "assigned inside another statement"),
        (b"workers, threads = 1, 2\n", "workers", "workers is not set by a simple assignment"),
        (b"workers = threads = 2\n", "workers", "workers is not set by a simple assignment"),
        (b"workers += 2\n", "workers", "workers is not set by a simple assignment"),
        (b"workers = [1\n", "workers", "syntax error"),
        (b"(" * 5000, "workers", "not a Python file"),
        (b"x = 1\n" * 60000, "workers", "larger than 256 KiB"),
        (b'worker_class = "a\\nb"\n', "worker_class", "unprintable characters"),
        (b"# c\rx = 1\nworkers = 4\nthreads = 22\n", "workers", "carriage return"),
        (b"# coding: latin-1\nx = '\xe9'; workers = 4; threads = 2\n", "workers", "not a Python file"),
    ],
)
def test_unchangeable_setting_is_refused(text: bytes, name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        GRAMMAR.read(text, name)


def test_a_declared_encoding_does_not_move_the_place_of_a_value() -> None:
    text = "# coding: latin-1\nx = '\u00e9'; workers = 4; threads = 2\n".encode()
    assert GRAMMAR.change(text, "workers", b"5") == text.replace(b"workers = 4", b"workers = 5")


def test_a_warning_of_python_about_the_file_is_not_shown() -> None:
    assert GRAMMAR.read(b"x = 1if 1 else 2\nworkers = 4\n", "workers").value == "4"


@pytest.mark.parametrize("value", ['a"b', "a\\nb", "a\nb", ""])
def test_value_that_would_be_code_is_refused(value: str) -> None:
    with pytest.raises(ConfigError):
        GRAMMAR.spell(value)


SPELLED = (
    ("8", b"8"),
    ("1.5", b"1.5"),
    ("true", b"True"),
    ("gevent", b'"gevent"'),
    ("os.system(1)", b'"os.system(1)"'),
)


@pytest.mark.parametrize(("value", "raw"), SPELLED)
def test_value_is_spelled_as_python(value: str, raw: bytes) -> None:
    assert GRAMMAR.spell(value) == raw


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
