"""Drop-ins of systemd units: text, valid values, candidates."""

from __future__ import annotations

import pytest

from cockpit.model.knobs import Knob
from cockpit.servers import registry, systemd
from cockpit.servers.editing import ConfigError
from cockpit.servers.inventory import Process

MASTER = Process(7, 1, "nginx", ("nginx",), unit="nginx.service")


def test_environment_variables_and_options_are_spelled() -> None:
    grammar = registry.GRAMMARS["systemd"]
    text = b'[Service]\nEnvironment=THREADS=1 "NAME=a b"\nExecStart=/usr/bin/uvicorn app:app --port=80\n'
    assert grammar.change(b"", "MemoryMax", b"200M") == b"[Service]\nMemoryMax=200M\n"
    with pytest.raises(ConfigError):
        grammar.change(b"[Unit]\nNice=1\n[Install]\n", "TasksMax", b"9")
    assert grammar.change(b"", "THREADS", b"4") == b'[Service]\nEnvironment="THREADS=4"\n'
    assert grammar.read(text + b"Environment=\n", "THREADS").value is None
    assert grammar.spell_in(text, "NAME", None, "c d", b"a b") == b"c d"
    for name, value in (("NAME", 'a"b'), ("NAME", "50%"), ("THREADS", "a b"), ("--port", "80 --reload")):
        with pytest.raises(ConfigError):
            grammar.spell_in(text, name, None, value, None)


def test_a_variable_is_set_in_the_environment_file_that_sets_it() -> None:
    master = Process(7, 1, "uvicorn", ("uvicorn", "app:app", "--backlog=9"), unit="app.service")
    files = {"UVICORN_BACKLOG": "/etc/app", "UVICORN_LOOP": "/etc/app", "WEB_CONCURRENCY": "/etc/default/app"}

    def places(kind: str) -> dict[str, tuple[str, str, str]]:
        found = systemd.candidates(master, registry.AT_START[kind], files)
        return {one.name: (one.kind, one.file, one.key or one.directive) for one in found}

    drop_in = "/etc/systemd/system/app.service.d/90-cockpit.conf"
    uvicorn = places("uvicorn")
    assert uvicorn["loop"] == ("keyvalue", "/etc/app", "UVICORN_LOOP")
    assert uvicorn["workers"] == ("keyvalue", "/etc/default/app", "WEB_CONCURRENCY")
    # The option wins, and a variable that no file sets is one of the drop-in.
    assert uvicorn["backlog"] == ("systemd", "/etc/systemd/system/app.service", "--backlog")
    assert uvicorn["http"] == ("systemd", drop_in, "UVICORN_HTTP")
    assert places("gunicorn")["workers"] == ("keyvalue", "/etc/default/app", "WEB_CONCURRENCY")
    files.clear()
    assert "workers" not in places("gunicorn")
    knob = Knob(name="loop", host="web1", kind="keyvalue", file="/etc/app", key="UVICORN_LOOP")
    assert knob.format_error("quick") and not knob.format_error("asyncio")


def test_server_with_unit_offers_settings_at_their_source() -> None:
    offered = {candidate.name: candidate for candidate in systemd.candidates(MASTER)}
    assert list(offered) == list(systemd.SETTINGS)
    assert {candidate.file for candidate in offered.values()} == {"/etc/systemd/system/nginx.service.d/90-cockpit.conf"}
    assert [name for name, candidate in offered.items() if "restart nginx.service" in candidate.reload] == [
        "LimitNOFILE",
        "Nice",
    ]
    for other in (MASTER._replace(unit=""), MASTER._replace(origin="container")):
        assert list(systemd.candidates(other)) == []
    at_start = registry.AT_START["uvicorn"]
    command = ("/usr/bin/python3", "/usr/bin/uvicorn", "app:app", "--workers=2", "--backlog", "9")
    master = Process(7, 1, "uvicorn", command, unit="app.service")
    offered = {candidate.name: candidate for candidate in systemd.candidates(master, at_start)}
    assert (offered["workers"].file, offered["workers"].directive) == ("/etc/systemd/system/app.service", "--workers")
    drop_in = "/etc/systemd/system/app.service.d/90-cockpit.conf"
    assert (offered["loop"].file, offered["loop"].directive) == (drop_in, "UVICORN_LOOP")
    # An option without environment variable is offered only if it is on the command line.
    names = {candidate.name for candidate in systemd.candidates(master, registry.AT_START["gunicorn"])}
    assert "workers" in names and "threads" not in names
    assert list(systemd.candidates(master._replace(unit=""), at_start)) == []


def test_only_drop_ins_may_be_created() -> None:
    file = "/etc/systemd/system/web@1.service.d/90-cockpit.conf"
    assert Knob(name="n", host="h", kind="systemd", file=file).creates
    for other in ("/etc/systemd/system/x.conf", "/run/systemd/system/x.service.d/a.conf", file[:-5], file + "\n"):
        assert not Knob(name="n", host="h", kind="systemd", file=other).creates
    assert not Knob(name="n", host="h", kind="keyvalue", file=file).creates
