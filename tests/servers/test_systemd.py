"""Drop-ins of systemd units: their text, the forms of their values, and the settings that are offered."""

from __future__ import annotations

import pytest

from cockpit.model.knobs import Knob
from cockpit.servers import registry, systemd
from cockpit.servers.editing import ConfigError
from cockpit.servers.inventory import Process

MASTER = Process(7, 1, "nginx", ("nginx",), unit="nginx.service")


def test_the_text_of_a_drop_in() -> None:
    grammar = registry.GRAMMARS["systemd"]
    text = grammar.change(b"", "MemoryMax", b"200M")
    assert text == b"[Service]\nMemoryMax=200M\n"
    text = grammar.change(text, "Nice", b"-5")
    assert text == b"[Service]\nMemoryMax=200M\nNice=-5\n"
    assert grammar.change(text, "MemoryMax", b"1G") == b"[Service]\nMemoryMax=1G\nNice=-5\n"
    theirs = b"[Unit]\nDescription=x\n[Service]\n# Nice=1\nNice = 3 ; no comment\n[Install]\n"
    assert grammar.read(theirs, "Nice").value == "3 ; no comment"
    assert grammar.change(theirs, "TasksMax", b"9") == theirs.replace(b"[Install]", b"TasksMax=9\n[Install]")
    for odd in (b"[Unit]\nNice=1\n[Install]\n", b"[Service]\nExecStart=a \\\nNice=1\n"):
        with pytest.raises(ConfigError):
            grammar.change(odd, "TasksMax", b"9")


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("LimitNOFILE", ("1024", "infinity", "1024:4096", "1024:infinity"), ("", "0", "-1", "5:4", "infinity:4", "4K")),
        ("Nice", ("-20", "0", "19"), ("-21", "20", "+1", "1.5")),
        ("CPUQuota", ("1%", "150%"), ("0%", "50", "-5%", "infinity")),
        ("MemoryMax", ("1048576", "512M", "2T", "infinity"), ("0", "512MB", "1.5G", "-1", "10%", "99999999T")),
        ("MemoryHigh", ("512M", "infinity"), ("much",)),
        ("TasksMax", ("1", "infinity"), ("0", "-1", "10%")),
    ],
)
def test_values(name: str, good: tuple[str, ...], bad: tuple[str, ...]) -> None:
    knob = Knob(name=name, host="web1", kind="systemd", directive=name)
    assert [value for value in good if knob.malformed(value)] == []
    assert [value for value in bad if not knob.malformed(value)] == []


def test_settings_of_a_server_with_a_unit() -> None:
    offered = {one.name: one for one in systemd.candidates(MASTER)}
    assert list(offered) == list(systemd.SETTINGS)
    assert {one.file for one in offered.values()} == {"/etc/systemd/system/nginx.service.d/90-cockpit.conf"}
    assert [name for name, one in offered.items() if "restart nginx.service" in one.reload] == ["LimitNOFILE", "Nice"]
    for other in (MASTER._replace(unit=""), MASTER._replace(origin="container")):
        assert list(systemd.candidates(other)) == []


def test_files_that_a_change_may_create() -> None:
    file = "/etc/systemd/system/web@1.service.d/90-cockpit.conf"
    assert Knob(name="n", host="h", kind="systemd", file=file).creates
    for other in ("/etc/systemd/system/x.conf", "/run/systemd/system/x.service.d/a.conf", file[:-5], file + "\n"):
        assert not Knob(name="n", host="h", kind="systemd", file=other).creates
    assert not Knob(name="n", host="h", kind="keyvalue", file=file).creates
