"""Access logs of real servers are read for a replay: the requests, their order and their times."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import NamedTuple

import pytest
import pytest_asyncio

from cockpit.load.log_reader import Omission, read_log
from cockpit.model.load.plan import LoadPlan, LogReplay
from tests.lab.access_logs import WRITERS, LogWriter
from tests.lab.hosts import NAMES
from tests.lab.lab import Host, Lab
from tests.waiting import DEADLINE, until

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

# Seconds before each request: uneven, with a pause in the middle.
GAPS = (0.02, 0.3, 0.11, 0.05, 0.45, 0.2) * 2 + (1.7,) + (0.03, 0.25, 0.4, 0.07, 0.13) * 2
SPEED = 2.0
POSTED = 7
METHODS = ["POST" if number == POSTED else "HEAD" if number % 5 == 4 else "GET" for number in range(len(GAPS))]


class Sent(NamedTuple):
    """Instants (s since the epoch) right before a request and after its response."""

    before: float
    after: float


class WrittenLog(NamedTuple):
    """The lines that a server wrote, and the requests that it got."""

    file: Path
    sent: list[Sent]


def send(host: Host, writer: LogWriter) -> list[Sent]:
    """Send the requests one after the other, each after its gap."""
    connection, sent = HTTPConnection(host.address, writer.port, timeout=DEADLINE), list[Sent]()
    due = time.time()
    for number, (gap, method) in enumerate(zip(GAPS, METHODS, strict=True)):
        due += gap
        time.sleep(max(0.0, due - time.time()))
        before = time.time()
        site = writer.site or f"{writer.host}:{writer.port}"
        connection.request(method, writer.path.format(number), headers={"Host": site, "User-Agent": 'a "quoted" one'})
        connection.getresponse().read()
        sent.append(Sent(before, time.time()))
    connection.close()
    return sent


async def start(host: Host, writer: LogWriter) -> None:
    """Start the server, and wait until it answers and writes its log: a program may do that for it, and start later."""
    size = len(content(host, writer.log))
    await asyncio.to_thread(host.run, f"install -d -m 777 /srv/logs; {{ {writer.start or 'true'}\n}} >/dev/null 2>&1")

    def answers() -> bool:
        connection = HTTPConnection(host.address, writer.port, timeout=DEADLINE)
        try:
            connection.request("GET", "/ready", headers={"Host": writer.site or writer.host})
            connection.getresponse().read()
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()
        return True

    await until(lambda: answers() and len(content(host, writer.log)) > size)


def stop(host: Host, writer: LogWriter) -> None:
    host.run(f"{{ {writer.stop or 'true'}\n}} >/dev/null 2>&1", check=False)


def content(host: Host, file: str) -> str:
    """A file of the host; "" if there is none."""
    path = Path(f"/proc/{host.pid}/root{file}")
    return path.read_text() if path.exists() else ""


def lines(host: Host, writer: LogWriter) -> list[str]:
    """The lines of its log about its numbered requests."""
    begin = writer.path.partition("{")[0]
    return [line for line in content(host, writer.log).split("\n")[:-1] if begin in line]


async def written(host: Host, writer: LogWriter, file: Path) -> WrittenLog:
    before = len(lines(host, writer))
    sent = await asyncio.to_thread(send, host, writer)
    # lighttpd writes its log some seconds later.
    try:
        await until(lambda: len(lines(host, writer)) >= before + len(sent))
    except TimeoutError:
        pytest.fail("\n".join([f"lines are missing in {writer.log}:", *lines(host, writer)]))
    found = lines(host, writer)[before:]
    await asyncio.to_thread(file.write_text, "".join(f"{line}\n" for line in found))
    return WrittenLog(file, sent)


@pytest.fixture(scope="module")
def own_lab() -> Iterator[Lab]:
    """A lab for this file, in which no other test has changed a server."""
    with Lab.start(*NAMES) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def logs(own_lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[dict[str, WrittenLog]]:
    """The log of each server after the same requests, which all get at the same time."""
    folder, servers = tmp_path_factory.mktemp("logs"), WRITERS.values()
    hosts = own_lab.hosts
    try:
        for server in servers:
            await start(hosts[server.host], server)
        made = [written(hosts[one.host], one, folder / f"{number}.log") for number, one in enumerate(WRITERS.values())]
        yield dict(zip(WRITERS, await asyncio.gather(*made), strict=True))
    finally:
        for server in servers:
            stop(hosts[server.host], server)


EXPECTED = [(method, number) for number, method in enumerate(METHODS) if number != POSTED]


async def test_requests_and_times_of_each_log_are_read(logs: dict[str, WrittenLog]) -> None:
    for name, writer in WRITERS.items():
        headers = (("Host", writer.site),) if writer.site else ()
        replay = LogReplay(file=str(logs[name].file), speed=SPEED)
        log = read_log(LoadPlan(url=f"http://{writer.host}/", headers=headers, replay=replay))
        assert log.lines == len(GAPS) and log.omitted == {Omission.METHOD: 1}, name
        assert bool(log.spread) == (writer.resolution == 1.0), name
        found = [log.requests.line(number).decode() for number in log.numbers.tolist()]
        assert found == [f"{method} {writer.path.format(number)}" for method, number in EXPECTED], name
        sent = [logs[name].sent[number] for _, number in EXPECTED]
        # The offsets agree with the instants of the requests and responses. A request is read less than one unit of
        # the timestamps early or late; the first one, to which offsets are relative, is never late.
        offsets, early = (log.offsets * SPEED).tolist(), writer.resolution + writer.delay
        late = early + writer.resolution
        assert offsets == sorted(offsets)
        for offset, one in zip(offsets, sent, strict=True):
            assert one.before - sent[0].after - early <= offset <= one.after - sent[0].before + late, name
