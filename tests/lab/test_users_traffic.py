"""The requests of users to real servers: their log is found in the configuration, and each request is counted once."""

import asyncio
import urllib.request

from cockpit.analysis.warnings import run_warnings
from cockpit.analysis.words.warnings import warning_words
from cockpit.hosts.transport import open_shell
from cockpit.metrics.results import RunResult, run_result
from cockpit.model.host.samples import HostConfig
from cockpit.model.load.plan import AccessLog, LoadPlan
from cockpit.profiles.profile import Profile
from cockpit.servers.site_logs import SiteLog
from cockpit.session.live_session import LiveSession
from cockpit.tuning.discovery.access_logs import find_access_log
from tests.data import data_of
from tests.lab.lab import Host, Lab

DATA = data_of(__file__)

CONFIG = HostConfig(name="web1", ssh="web1")
REQUESTS = 40
PLAIN = DATA["plain"]


async def configured(lab: Lab) -> SiteLog:
    shell = await open_shell(CONFIG, lab.ssh_config)
    try:
        server = await find_access_log(shell, "web1", lab.web1.url, here=True)
    finally:
        await shell.close()
    assert server is not None
    return server.log


def send(url: str) -> None:
    for _ in range(REQUESTS):
        with urllib.request.urlopen(url) as response:
            response.read()


async def counted(lab: Lab, log: SiteLog) -> RunResult:
    traffic = (AccessLog(host="web1", file=log.file, format=log.format),)
    profile = Profile(name="x", plan=LoadPlan(url=lab.web1.url, traffic=traffic), hosts=(CONFIG,))
    async with LiveSession(profile, ssh_config=lab.ssh_config) as live:
        await live.hosts_read()
        await live.load.start()
        await live.session.until(lambda state: state.segment is not None and state.segment.seconds > 0)
        await asyncio.to_thread(send, lab.web1.url)
        await live.session.until(lambda state: bool(state.segment and state.segment.counts.completed >= REQUESTS))
        await live.load.stop()
        result = run_result(live.state, 1)
    assert result is not None
    return result


async def test_log_in_the_configuration(lab: Lab, fresh_web1: Host) -> None:
    result = await counted(lab, await configured(lab))
    assert (result.counts.statuses, result.counts.service.count) == ({200: REQUESTS}, REQUESTS)
    await asyncio.to_thread(fresh_web1.run, PLAIN)
    plain = await configured(lab)
    assert plain == SiteLog("/var/log/apache2/plain.log", '%h "%r" %>s')
    # The log is made by its first request.
    await asyncio.to_thread(send, lab.web1.url)
    result = await counted(lab, plain)
    assert (result.counts.statuses, result.counts.service.count) == ({200: REQUESTS}, 0)
    notes = [warning_words(warning) for warning in run_warnings(result)]
    directive = r'LogFormat "%h \"%r\" %>s %D" timed, and CustomLog /var/log/apache2/plain.log timed'
    assert any(directive in note for note in notes), notes
