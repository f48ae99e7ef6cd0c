"""A synthetic session of two servers, Apache in front of Tomcat: tails, status pages, 16 connections."""

import random
from collections.abc import Iterator
from functools import cache

import numpy as np

from cockpit.model import events as ev
from cockpit.model.host.samples import HostConfig, StatusPage
from tests.tui.scenario import FACTS, WALL, Load, Server, plan, tick

ERRORS = "tail -F /var/log/apache2/error.log"
BLOCKS = "sar -b 1"
VMSTAT = "vmstat 1"
JAVA = "/usr/lib/jvm/java-17/bin/java -Dcatalina.base=/var/lib/tomcat10 org.apache.catalina.startup.Bootstrap start"

WEB = HostConfig(
    name="web1",
    ssh="root@web1",
    processes=("apache2",),
    tail=(ERRORS, BLOCKS),
    status=(StatusPage(kind="apache", url="http://127.0.0.1/server-status?auto"),),
)
APP = HostConfig(
    name="app1",
    ssh="tomcat@app1",
    processes=("java",),
    tail=(VMSTAT,),
    status=(StatusPage(kind="tomcat", url="http://127.0.0.1:8080/manager/status?XML=true"),),
)

# Start and end of the run, in seconds of the session.
RUN_START, RUN_END = 5, 50


@cache
def _whole_topology() -> list[ev.AnyEvent]:
    """Return the events of the first 60 seconds. Apache passes all requests on to Tomcat."""
    started = ev.SessionStarted(
        t=0.0,
        wall=WALL,
        version="0.1.0",
        name="topologies",
        question="Do two machines serve more than one?",
        target="http://web1/service",
        hosts=(WEB, APP),
    )
    tomcat = Server(name="app1", random=random.Random(4), workers=0, pid=811, comm="java", command=JAVA)
    apache = Server(name="web1", random=random.Random(3), workers=8)
    events = [started, *_run(), *_host(0, apache, 0.1), *_host(1, tomcat, 0.93)]
    return sorted(events, key=lambda event: event.t)


def topology(until: float = 60.0) -> tuple[ev.AnyEvent, ...]:
    """Return all events up to and including second `until`."""
    return tuple(event for event in _whole_topology() if event.t <= until)


def _run() -> Iterator[ev.AnyEvent]:
    rng = np.random.default_rng(11)
    yield ev.RunStarted(t=float(RUN_START), run=1, plan=plan(concurrency=16), addresses=("192.0.2.7",))
    for at in range((RUN_END - RUN_START) * 4):
        yield tick(1, RUN_START + at / 4, Load(rate=37, median=410.0, tail=0.2), rng)
    yield ev.RunEnded(t=float(RUN_END), run=1, reason="completed")


def _host(at: int, server: Server, busy: float) -> Iterator[ev.AnyEvent]:
    name = (WEB, APP)[at].name
    yield ev.HostChanged(t=0.05, host=name, condition="connecting")
    yield ev.HostChanged(t=0.3, host=name, condition="up", facts=FACTS)
    for second in range(60):
        now = round(second + 0.5 + at / 7, 3)
        server.busy = busy if RUN_START < now < RUN_END else 0.01
        server.step(1.0)
        yield ev.HostSample(t=now, host=name, round_trip=0.004, reading=server.reading(now))
        yield from _output(name, second, now)


def _output(name: str, second: int, now: float) -> Iterator[ev.AnyEvent]:
    loaded = RUN_START < now < RUN_END
    if name == "web1":
        yield from _web_output(second, now)
        values = {"BusyWorkers": 8.0 if loaded else 1.0, "IdleWorkers": 67.0, "Total Accesses": 37.0 * second}
        board = "WW_WKWW_W" + "_" * 12 + "." * 129 if loaded else "W" + "_" * 20 + "." * 129
        yield ev.StatusRead(t=now, host=name, page=0, values=values, text={"Scoreboard": board})
        return
    if second == 0:
        yield ev.TailChanged(t=0.4, host=name, tail=0, condition="running")
        head = "procs -----------memory---------- ---swap-- -----io---- -system-- -------cpu-------"
        names = " r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st gu"
        yield ev.TailText(t=0.45, host=name, tail=0, lines=(head, names))
    row = f" {3 if loaded else 0}  0      0 1712304  80000 700000    0    0     0   {second:3d} 1204 2210"
    shares = " 58 33  7  1  1  0" if loaded else "  1  0 99  0  0  0"
    yield ev.TailText(t=now, host=name, tail=0, lines=(row + shares,))
    busy = {"http-nio-8080.currentThreadsBusy": 16.0 if loaded else 0.0, "jvm.memory.free": 6.1e7}
    yield ev.StatusRead(t=now, host=name, page=0, values=busy)


def _web_output(second: int, now: float) -> Iterator[ev.AnyEvent]:
    """Yield three error log lines per 10 s (in colour, in Japanese, with a tab), and one line of sar per second."""
    if second == 0:
        yield ev.TailChanged(t=0.4, host="web1", tail=0, condition="running")
        yield ev.TailChanged(t=0.4, host="web1", tail=1, condition="running")
        names = "10:00:00          tps      rtps      wtps      dtps   bread/s   bwrtn/s"
        yield ev.TailText(t=0.42, host="web1", tail=1, lines=("Linux 6.1.0 (web1)", "", names))
    rates = f"10:00:{second % 60:02d}         {second % 7}.00      0.00      {second % 7}.00      0.00      0.00"
    yield ev.TailText(t=now, host="web1", tail=1, lines=(f"{rates}     {8 * (second % 9)}.00",))
    kinds = {
        7: f"[proxy:error] [pid {2011 + second}] \x1b[31mAH00959\x1b[0m: disabling worker for (app1) for 60s",
        8: f"[core:notice] [pid {2011 + second}] 設定ファイル を読み直しました",
        9: f"[mpm_prefork:notice]\t[pid 2011] AH00171: Graceful restart requested\x07, second {second}",
    }
    if second % 10 in kinds:
        skipped = 120 if second == 18 else 0
        yield ev.TailText(t=now, host="web1", tail=0, lines=(kinds[second % 10],), skipped=skipped)
