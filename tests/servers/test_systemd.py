"""Drop-ins of systemd units: text, valid values, candidates."""

from __future__ import annotations

import pytest

from cockpit.model.knobs import Knob
from cockpit.servers import registry, systemd
from cockpit.servers.editing import ConfigError
from cockpit.servers.inventory import Process

MASTER = Process(7, 1, "nginx", ("nginx",), unit="nginx.service")


def test_drop_in_text_is_changed() -> None:
    grammar = registry.GRAMMARS["systemd"]
    text = grammar.change(b"", "MemoryMax", b"200M")
    assert text == b"[Service]\nMemoryMax=200M\n"
    text = grammar.change(text, "Nice", b"-5")
    assert text == b"[Service]\nMemoryMax=200M\nNice=-5\n"
    assert grammar.change(text, "MemoryMax", b"1G") == b"[Service]\nMemoryMax=1G\nNice=-5\n"
    foreign = b"[Unit]\nDescription=x\n[Service]\n# Nice=1\nNice = 3 ; no comment\n[Install]\n"
    assert grammar.read(foreign, "Nice").value == "3 ; no comment"
    assert grammar.change(foreign, "TasksMax", b"9") == foreign.replace(b"[Install]", b"TasksMax=9\n[Install]")
    for unsupported in (b"[Unit]\nNice=1\n[Install]\n", b"[Service]\nExecStart=a \\\nNice=1\n"):
        with pytest.raises(ConfigError):
            grammar.change(unsupported, "TasksMax", b"9")


STARTED = b"""[Service]
Environment=THREADS=1 "NAME=a b" LAST=3
ExecStart=/usr/bin/uvicorn app:app --workers 2 --port=80 --workers 3
"""


def test_environment_variables_are_read_and_changed() -> None:
    grammar = registry.GRAMMARS["systemd"]
    text = grammar.change(b"", "THREADS", b"4")
    assert text == b'[Service]\nEnvironment="THREADS=4"\n'
    assert grammar.change(text, "THREADS", b"8") == b'[Service]\nEnvironment="THREADS=8"\n'
    assert grammar.change(text, "THREADS", None) == b"[Service]\n"
    assert [grammar.read(STARTED, name).value for name in ("THREADS", "NAME", "LAST", "MISSING")] == [
        "1",
        "a b",
        "3",
        None,
    ]
    for name, remaining in (
        ("THREADS", b'"NAME=a b" LAST=3'),
        ("NAME", b"THREADS=1 LAST=3"),
        ("LAST", b'THREADS=1 "NAME=a b"'),
    ):
        assert grammar.change(STARTED, name, None).splitlines()[1] == b"Environment=" + remaining
    emptied = STARTED + b"Environment=\n"
    assert grammar.read(emptied, "THREADS").value is None
    for name, value in (("NAME", 'a"b'), ("NAME", "50%"), ("THREADS", "a b")):
        with pytest.raises(ConfigError):
            grammar.spell_in(STARTED, name, None, value, None)
    assert grammar.spell_in(STARTED, "NAME", None, "c d", b"a b") == b"c d"
    with pytest.raises(ConfigError, match="quotes or escapes"):
        grammar.read(b"[Service]\nEnvironment=NAME=a\\tb\n", "NAME")


def test_exec_start_options_are_read_and_changed() -> None:
    grammar = registry.GRAMMARS["systemd"]
    assert (grammar.read(STARTED, "--workers").value, grammar.read(STARTED, "--port").value) == ("3", "80")
    assert grammar.change(STARTED, "--workers", b"9") == STARTED.replace(b"--workers 3", b"--workers 9")
    assert grammar.change(STARTED, "--port", None) == STARTED.replace(b" --port=80", b"")
    joined = STARTED.replace(b" --port", b" \\\n  --port")
    assert grammar.change(joined, "--port", b"81") == joined.replace(b"=80", b"=81")
    for text, name in ((STARTED, "--backlog"), (b"[Service]\n", "--port")):
        with pytest.raises(ConfigError, match="ExecStart"):
            grammar.change(text, name, b"1")
    with pytest.raises(ConfigError, match="quotes or variables"):
        grammar.read(b"[Service]\nExecStart=/bin/sh -c 'uvicorn --workers $N'\n", "--workers")
    with pytest.raises(ConfigError, match="must not contain a space"):
        grammar.spell_in(STARTED, "--port", None, "80 --reload", b"80")


def test_setting_is_changed_at_its_source() -> None:
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


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("LimitNOFILE", ("1024", "infinity", "1024:4096", "1024:infinity"), ("", "0", "-1", "5:4", "infinity:4", "4K")),
        ("Nice", ("-20", "0", "19"), ("-21", "20", "+1", "1.5")),
        ("CPUQuota", ("1%", "150%"), ("0%", "50", "-5%", "infinity")),
        ("CPUWeight", ("1", "100", "10000"), ("0", "10001", "idle", "50%")),
        ("MemoryMax", ("1048576", "512M", "2T", "infinity"), ("0", "512MB", "1.5G", "-1", "10%", "99999999T")),
        ("MemoryHigh", ("512M", "infinity"), ("much",)),
        ("TasksMax", ("1", "infinity"), ("0", "-1", "10%")),
    ],
)
def test_values_are_validated(name: str, good: tuple[str, ...], bad: tuple[str, ...]) -> None:
    knob = Knob(name=name, host="web1", kind="systemd", directive=name)
    assert [value for value in good if knob.format_error(value)] == []
    assert [value for value in bad if not knob.format_error(value)] == []


def test_server_with_unit_offers_settings() -> None:
    offered = {candidate.name: candidate for candidate in systemd.candidates(MASTER)}
    assert list(offered) == list(systemd.SETTINGS)
    assert {candidate.file for candidate in offered.values()} == {"/etc/systemd/system/nginx.service.d/90-cockpit.conf"}
    assert [name for name, candidate in offered.items() if "restart nginx.service" in candidate.reload] == [
        "LimitNOFILE",
        "Nice",
    ]
    for other in (MASTER._replace(unit=""), MASTER._replace(origin="container")):
        assert list(systemd.candidates(other)) == []


def test_only_drop_ins_may_be_created() -> None:
    file = "/etc/systemd/system/web@1.service.d/90-cockpit.conf"
    assert Knob(name="n", host="h", kind="systemd", file=file).creates
    for other in ("/etc/systemd/system/x.conf", "/run/systemd/system/x.service.d/a.conf", file[:-5], file + "\n"):
        assert not Knob(name="n", host="h", kind="systemd", file=other).creates
    assert not Knob(name="n", host="h", kind="keyvalue", file=file).creates
