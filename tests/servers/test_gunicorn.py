"""Settings of a Python file: read and changed byte for byte, and never run."""

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


def test_a_value_is_replaced_and_the_rest_is_kept() -> None:
    changed = GRAMMAR.change(TEXT, "workers", GRAMMAR.spell("8"))
    assert changed == TEXT.replace(b"workers = 4 ", b"workers = 8 ")
    changed = GRAMMAR.change(TEXT, "worker_class", GRAMMAR.spell("sync"))
    assert changed == TEXT.replace(b"'gthread'", b'"sync"')
    changed = GRAMMAR.change(TEXT, "keepalive", GRAMMAR.spell("2"))
    assert changed == TEXT.replace(b"keepalive = 5", b"keepalive = 2")


def test_a_new_setting_is_a_line_at_the_end_and_can_be_removed() -> None:
    added = GRAMMAR.change(TEXT, "max_requests", GRAMMAR.spell("1000"))
    assert added == TEXT + b"max_requests = 1000\n"
    assert GRAMMAR.change(added, "max_requests", None) == TEXT


@pytest.mark.parametrize(
    ("text", "name", "words"),
    [
        (TEXT, "threads", "threads is computed"),
        (TEXT, "timeout", "assigned inside of a statement"),
        (b"workers, threads = 1, 2\n", "workers", "workers is not assigned a value of its own"),
        (b"workers = threads = 2\n", "workers", "workers is not assigned a value of its own"),
        (b"workers += 2\n", "workers", "workers is not assigned a value of its own"),
        (b"workers = [1\n", "workers", "its grammar is wrong"),
        (b"(" * 5000, "workers", "no Python file"),
        (b"x = 1\n" * 60000, "workers", "more than 256 KiB"),
        (b'worker_class = "a\\nb"\n', "worker_class", "no plain text"),
        (b"# c\rx = 1\nworkers = 4\nthreads = 22\n", "workers", "carriage return"),
        (b"# coding: latin-1\nx = '\xe9'; workers = 4; threads = 2\n", "workers", "no Python file"),
    ],
)
def test_what_cannot_be_changed_is_refused(text: bytes, name: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        GRAMMAR.read(text, name)


def test_a_declared_encoding_does_not_move_the_place_of_a_value() -> None:
    text = "# coding: latin-1\nx = '\u00e9'; workers = 4; threads = 2\n".encode()
    assert GRAMMAR.change(text, "workers", b"5") == text.replace(b"workers = 4", b"workers = 5")


def test_a_warning_of_python_about_the_file_is_not_shown() -> None:
    assert GRAMMAR.read(b"x = 1if 1 else 2\nworkers = 4\n", "workers").value == "4"


@pytest.mark.parametrize("value", ['a"b', "a\\nb", "a\nb", ""])
def test_a_value_that_would_be_code_is_refused(value: str) -> None:
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
def test_a_value_is_spelled_as_python(value: str, raw: bytes) -> None:
    assert GRAMMAR.spell(value) == raw


def started(*words: str, unit: str = "") -> Process:
    command = ("/opt/app/bin/python3", "/opt/app/bin/gunicorn", *words)
    return Process(7, 1, "gunicorn", command, "/usr/bin/python3.11", "/srv/app", is_certain=True, unit=unit)


def found(process: Process) -> tuple[str, str, list[str]]:
    inventory = Inventory("root", (process,), (Listener("gunicorn", 7, 8000),))
    [server] = KIND.discover(inventory)
    assert server.startup
    return server.startup.file, server.startup.reload, [candidate.name for candidate in server.candidates]


def test_the_file_and_the_reload_are_those_of_the_running_master() -> None:
    file, reload, names = found(started("-c", "conf/g.py", "--pid=/run/g.pid", "-w", "3", "app:app"))
    assert file == "/srv/app/conf/g.py" and reload == 'kill -HUP "$(cat /run/g.pid)"'
    # What the command line sets, the file does not.
    assert "workers" not in names and "threads" in names
    file, reload, names = found(started("app:app", unit="web.service"))
    assert file == "/srv/app/gunicorn.conf.py"
    assert reload == "systemctl kill --signal=HUP --kill-who=main web.service"
    assert found(started("app:app"))[1].startswith("pkill -HUP -o -x -f -- ")
    assert found(started("-c", "python:app.conf", "app:app"))[0] == ""
    # Options without a value, and with another name than the setting.
    file, _, names = found(started("--preload", "-c", "conf/g.py", "--keep-alive", "5", "app:app"))
    assert file == "/srv/app/conf/g.py"
    assert not {"preload_app", "keepalive"} & {*names}
