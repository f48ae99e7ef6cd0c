"""Tomcat's server.xml: attributes of Connectors and Executors, candidates."""

from __future__ import annotations

import pytest

from cockpit.servers import registry
from cockpit.servers.editing import ConfigError
from cockpit.servers.inventory import parse_inventory

TOMCAT = registry.GRAMMARS["tomcat"]
CONFIG = b"""\
<?xml version="1.0" encoding="UTF-8"?>
<!-- <Connector port="8080" maxThreads="1"/> <!DOCTYPE x> -->
<Server port="-1" shutdown="SHUTDOWN">
  <Service name="Catalina">
    <Executor name="pool" maxThreads='150'/>
    <Connector port="8080" protocol="HTTP/1.1"
               connectionTimeout="20000"
               maxThreads = "200" redirectPort="8443"
               />\t<!-- of the shop -->
    <Connector executor="pool" port="8009" protocol="AJP/1.3" secret="a&amp;b"></Connector>
    <Engine name="Catalina" defaultHost="localhost"><Host name="localhost"/></Engine>
  </Service>
</Server>
"""


@pytest.mark.parametrize(
    ("name", "section", "value", "line"),
    [
        ("maxThreads", "Connector 8080", "200", 8),
        ("maxThreads", "Executor pool", "150", 5),
        ("connectionTimeout", None, "20000", 7),
        ("secret", "Connector 8009", "a&b", 10),
        ("acceptCount", "Connector 8080", None, 0),
        ("acceptCount", None, None, 0),
    ],
)
def test_attributes_are_read(name: str, section: str | None, value: str | None, line: int) -> None:
    found = TOMCAT.read(CONFIG, name, section)
    assert (found.value, found.line) == (value, line)


def test_change_modifies_only_one_attribute() -> None:
    for text in (CONFIG, CONFIG.replace(b"\n", b"\r\n"), b"\xef\xbb\xbf" + CONFIG):
        changed = TOMCAT.change(text, "maxThreads", b"50", "Connector 8080")
        assert changed == text.replace(b'maxThreads = "200"', b'maxThreads = "50"')
        pool = TOMCAT.change(text, "maxThreads", b"9", "Executor pool")
        assert pool == text.replace(b"maxThreads='150'", b"maxThreads='9'")
        added = TOMCAT.change(text, "acceptCount", b"7", "Connector 8080")
        assert added == text.replace(b'redirectPort="8443"', b'redirectPort="8443" acceptCount="7"')
        assert TOMCAT.change(added, "acceptCount", None, "Connector 8080") == text


def test_attribute_is_added_on_its_own_line() -> None:
    text = CONFIG.replace(b'maxThreads = "200" redirectPort="8443"', b'maxThreads="200"')
    added = TOMCAT.change(text, "acceptCount", b"7", "Connector 8080")
    assert added == text.replace(b'maxThreads="200"', b'maxThreads="200"\n               acceptCount="7"')
    assert TOMCAT.change(added, "acceptCount", None, "Connector 8080") == text


@pytest.mark.parametrize("value", ["a&b", "a<b>", '"it\'s"', "${http.threads}", "größer"])
def test_values_are_read_back(value: str) -> None:
    for section in ("Connector 8080", "Executor pool"):
        text = TOMCAT.change(CONFIG, "maxThreads", TOMCAT.spell(value), section)
        assert TOMCAT.read(text, "maxThreads", section).value == value


@pytest.mark.parametrize(
    ("text", "name", "section", "reason"),
    [
        (CONFIG, "maxThreads", None, "ambiguous: Executor pool and Connector 8080; set the section of the knob"),
        (CONFIG, "maxThreads", "Connector 81", "no section Connector 81; its sections: Executor pool, Connector 8080"),
        (CONFIG, "maxThreads", "Connector 8009", "Connector 8009 uses the threads of Executor pool; set maxThreads"),
        (CONFIG.replace(b"8009", b"8080"), "port", "Connector 8080", "ambiguous"),
        (CONFIG.replace(b"</Server>", b""), "port", None, "line 14: invalid XML"),
        (CONFIG.replace(b"UTF-8", b"ISO-8859-1"), "port", None, "the encoding is ISO-8859-1"),
        (b'<!DOCTYPE Server [<!ENTITY a "b">]><Server/>', "port", None, "line 1: the file has a DOCTYPE"),
    ],
)
def test_unsupported_text_is_refused(text: bytes, name: str, section: str | None, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        TOMCAT.read(text, name, section)


def test_attribute_without_section_is_not_added() -> None:
    with pytest.raises(ConfigError, match="name a section in the knob"):
        TOMCAT.change(CONFIG, "acceptCount", b"7")


@pytest.mark.parametrize("value", ["", " 1", "1\nport=2", "a\0"])
def test_invalid_values_are_refused(value: str) -> None:
    with pytest.raises(ConfigError):
        TOMCAT.spell(value)


def test_settings_of_listening_connectors_are_offered() -> None:
    lines = "".join(f"text\t/etc/tomcat10/server.xml\t{line}\n" for line in CONFIG.decode().splitlines())
    java = 'process\t5\t1\tjava\t/usr/bin/java\t-Dcatalina.base={}\t\nlisten\t*:8080\tusers:(("java",pid=5,fd=4))\n'
    (server,) = registry.running_servers(
        parse_inventory(java.format("/var/lib/tomcat10") + lines, registry.FILES, registry.TEXTS)
    )
    names_and_sections = {(candidate.name, candidate.section) for candidate in server.candidates}
    assert {("maxThreads-8080", "Connector 8080"), ("maxThreads-pool", "Executor pool")} <= names_and_sections
    assert not any(section == "Connector 8009" for _, section in names_and_sections), "it does not listen"
    assert ("acceptCount-pool", "Executor pool") not in names_and_sections
    assert all(
        candidate.reload == "service tomcat10 restart" and "configtest" in candidate.test
        for candidate in server.candidates
    )
    (other,) = registry.running_servers(
        parse_inventory(java.format("/srv/shop") + lines, registry.FILES, registry.TEXTS)
    )
    assert other.candidates == (), "no command restarts it"


def test_other_java_program_is_not_tomcat() -> None:
    text = (
        "process\t5\t1\tjava\t/usr/bin/java\t-jar\tother.jar\t\nprocess\t6\t1\tjava\tjava\t-Dcatalina.base=/srv/a\t\n"
    )
    (instance,) = registry.instances(parse_inventory(text, registry.FILES))
    assert (instance.process.pid, instance.startup.file) == (6, "/srv/a/conf/server.xml")
