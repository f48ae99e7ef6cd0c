"""Tomcat on app1 behind mod_jk: its server.xml and its JVM's options, beside a second Tomcat that is no service."""

from collections.abc import Iterator

import pytest

from cockpit.hosts.ssh.shell import connect
from cockpit.metrics.results import RunResult
from cockpit.model.errors import ChangeRefused
from cockpit.model.host.samples import HostConfig
from cockpit.model.knobs import Knob
from cockpit.model.load.plan import LoadPlan
from cockpit.setup.profile_draft import HostSurvey, draft_of
from cockpit.tuning.discovery.probing import probe_of
from cockpit.tuning.discovery.servers import DiscoveredHost, discover
from cockpit.tuning.tuner import Tuner
from tests.lab.app1 import BASE, OPTIONS, STATUS_LOGIN, STATUS_PATH
from tests.lab.lab import Host, Lab
from tests.lab.profile_runs import runs_of, shipped

APP1 = HostConfig(name="app1", ssh="app1")
PLACE = "/etc/tomcat10"
SECOND = "/srv/tomcat2"
# Status of the running server's connector on port 8080.
STATUS = f"curl -sS --fail -u {':'.join(STATUS_LOGIN)} 'http://localhost:8080{STATUS_PATH}?XML=true'"
THREADS = f"""{STATUS} | grep -o 'http-nio-8080[^>]*><memory[^>]*>\\|maxThreads="[0-9]*"' | head -n 3"""
QUEUE = "ss -ltnH sport = :8080 | awk '{ print $3 }'"
HEAP = "tr '\\0' '\\n' </proc/$(cat /run/tomcat10/tomcat10.pid)/cmdline | grep Xmx"
JAVA_OPTS = '-server -Xms96m -Xmx96m -Dname="a b" -Djava.awt.headless=true'
VALUES = {
    "keepAliveTimeout": "3000",
    "minSpareThreads": "3",
    "acceptCount": "55",
    "maxConnections": "999",
    "connectionTimeout": "9000",
    "maxKeepAliveRequests": "44",
}
START = f"""
    install -d {SECOND}/conf {SECOND}/logs {SECOND}/temp {SECOND}/webapps {SECOND}/work
    cp {BASE}/conf/web.xml {BASE}/conf/tomcat-users.xml {BASE}/conf/catalina.properties {SECOND}/conf/
    sed -e 's/port="8080"/port="8088"/' -e '/8009/d' {PLACE}/server.xml >{SECOND}/conf/server.xml
    export CATALINA_HOME=/usr/share/tomcat10 CATALINA_BASE={SECOND} CATALINA_PID={SECOND}/pid JAVA_OPTS=-Xmx64m
    sh $CATALINA_HOME/bin/catalina.sh start
    for i in $(seq 400); do bash -c '</dev/tcp/127.0.0.1/8088' 2>/dev/null && exit 0; sleep 0.1; done
    exit 1
"""


@pytest.fixture
def app1(whole_lab: Lab) -> Iterator[Host]:
    whole_lab.app1.run(f"{{ {START}\n}} >/dev/null 2>&1")
    yield whole_lab.app1
    whole_lab.app1.run(f"kill $(cat {SECOND}/pid); while pgrep -F {SECOND}/pid; do sleep 0.1; done; rm -rf {SECOND}")


def offered(found: DiscoveredHost, name: str) -> Knob:
    return next(each.knob for each in found.suggested if each.knob.name == name)


async def test_settings_are_found_set_and_undone(app1: Host) -> None:
    shell = await connect(APP1, app1.ssh_config)
    found = await discover(shell, "app1", 80, answers=True)
    (hop,) = found.chain
    assert hop.words == f"{found.serving.title if found.serving else ''} :80 -> Tomcat10 app1:8009"
    assert hop.server is not None and hop.server.ports == (8009, 8080)
    draft = draft_of("http://app1/shop/", [HostSurvey(APP1, found)])
    assert draft.hosts[0].processes == ("apache2", "java") and "JAVA_OPTS" in {knob.name for knob in draft.knobs}

    found = await discover(shell, "app1", 8080)
    assert len([server for server in found.servers if server.title.startswith("Tomcat")]) == 2
    assert {each.knob.file for each in found.suggested if each.knob.kind == "tomcat"} == {f"{PLACE}/server.xml"}
    threads = offered(found, "maxThreads-8080")
    before, second = app1.files(f"{PLACE} {OPTIONS}"), app1.run(f"cat {SECOND}/pid").stdout
    # cockpit refuses the value: Tomcat's own test accepts almost any well-formed XML.
    with pytest.raises(ChangeRefused, match="maxThreads takes a whole number of at least 1, not 'many'"):
        await Tuner().apply(shell, "app1", [(threads, "many")])
    assert app1.files(f"{PLACE} {OPTIONS}") == before

    assert 'maxThreads="200"' in app1.run(THREADS).stdout and app1.run(HEAP).stdout == "-Xmx128m\n"
    changes = [(offered(found, f"{name}-8080"), value) for name, value in VALUES.items()]
    changes += [(threads, "17"), (offered(found, "JAVA_OPTS"), JAVA_OPTS)]
    tuner = Tuner(probe_of(LoadPlan(url=f"http://{app1.address}:8080/hello.html")), port_on=lambda _: 8080)
    applied = await tuner.apply(shell, "app1", changes)
    assert [note.split(" (")[0] for note in applied.notes if " shows " in note] == [
        "the running server shows minSpareThreads-8080 3",
        "the running server shows acceptCount-8080 55",
    ]
    assert "this server does not report keepAliveTimeout-8080" in applied.notes[-1]
    assert 'maxThreads="17"' in app1.run(THREADS).stdout and app1.run(HEAP).stdout == "-Xmx96m\n"
    text = app1.run(f"cat {PLACE}/server.xml").stdout
    assert [name for name, value in VALUES.items() if f'{name}="{value}"' not in text] == []
    assert app1.run(QUEUE).stdout == "55\n"
    await tuner.undo(shell, applied)
    await shell.close()
    assert app1.run(QUEUE).stdout == "100\n" and app1.run(HEAP).stdout == "-Xmx128m\n"
    assert 'maxThreads="200"' in app1.run(THREADS).stdout and app1.files(f"{PLACE} {OPTIONS}") == before
    assert app1.run(f"cat {SECOND}/pid; pgrep -F {SECOND}/pid >/dev/null").stdout == second


async def test_a_connector_serves_as_many_requests_as_it_has_threads(whole_lab: Lab) -> None:
    host, page = whole_lab.app1, f"{BASE}/webapps/ROOT/slow.jsp"
    host.run(f"echo '<% Thread.sleep(50); %>' >{page}; curl -sS --fail http://localhost:8080/slow.jsp")
    before = host.files(PLACE)
    profile = shipped("tomcat", {"app1": host.address}, 1.0)

    def shows(few: RunResult, many: RunResult | None = None) -> bool:
        return many is None or many.rate > 2.5 * few.rate

    values = {"maxThreads": "2"}, {"maxThreads": "200"}
    few, many = await runs_of(profile, values, whole_lab.ssh_config, shows=shows)
    assert few.rate <= 1.1 * 2 / 0.05 and shows(few, many)
    assert host.files(PLACE) == before
