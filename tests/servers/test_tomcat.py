"""Tomcat's server.xml: attributes of Connectors and Executors, candidates."""

from __future__ import annotations

from cockpit.servers import registry
from cockpit.servers.inventory import parse_inventory
from tests.servers.found import running, texts
from tests.servers.test_grammars import FILES


def test_settings_of_listening_connectors_are_offered() -> None:
    lines = texts("/etc/tomcat10/server.xml", FILES["tomcat"]["text"][0]["text"])
    java = 'process\t5\t1\tjava\t/usr/bin/java\t-Dcatalina.base={}\t\nlisten\t*:8080\tusers:(("java",pid=5,fd=4))\n'
    (server,) = running(java.format("/var/lib/tomcat10") + lines)
    names_and_sections = {(candidate.name, candidate.section) for candidate in server.candidates}
    assert {("maxThreads-8080", "Connector 8080"), ("maxThreads-pool", "Executor pool")} <= names_and_sections
    assert not any(section == "Connector 8009" for _, section in names_and_sections), "it does not listen"
    assert ("acceptCount-pool", "Executor pool") not in names_and_sections
    assert all(
        candidate.reload == "service tomcat10 restart" and "configtest" in candidate.test
        for candidate in server.candidates
    )
    (other,) = running(java.format("/srv/shop") + lines)
    assert other.candidates == (), "no command restarts it"


def test_other_java_program_is_not_tomcat() -> None:
    text = (
        "process\t5\t1\tjava\t/usr/bin/java\t-jar\tother.jar\t\nprocess\t6\t1\tjava\tjava\t-Dcatalina.base=/srv/a\t\n"
    )
    (instance,) = registry.instances(parse_inventory(text, registry.FILES))
    assert (instance.process.pid, instance.startup.file) == (6, "/srv/a/conf/server.xml")
