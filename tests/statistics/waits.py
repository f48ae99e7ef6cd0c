"""A simulated server whose processes wait for CPUs beside other programs: how far do measured waits bound latencies?

Processes and other programs share the CPUs by one run queue with time slices. The same arrivals are also served without
the other programs, so that the true delay of each percentile is known.
"""

import heapq
import itertools
import math
from collections import deque
from typing import NamedTuple

import numpy as np

from cockpit.analysis.verdicts.waiting import delay_factor
from cockpit.analysis.windows import Window
from cockpit.model.histogram import Histogram
from cockpit.model.host.state import CpuShare, HostPoint, MemoryUse
from cockpit.model.load.plan import LoadPlan
from cockpit.model.load.seconds import LoadSecond
from tests.statistics.noise import Floats

PERCENTS = (50.0, 99.0)
CONNECTIONS = 16
# CPU time of a request: mean (s), and standard deviation of its logarithm.
_SERVICE, _SPREAD = 0.001, 1.0
# Time slice (s).
_SLICE = 0.003
_MEMORY = MemoryUse(total=1, used=0, free=1, shared=0, buff_cache=0, available=1)


class Server(NamedTuple):
    """`workers` processes on `cpus` CPUs; each serves its own connections, or (`prefork`) any free one serves the next
    request. `rate`: requests/s of open load; 0: closed load. `hogs`: other programs that always want a CPU."""

    workers: int
    cpus: int
    rate: float
    hogs: int
    prefork: bool = False


SERVERS = {
    "1 process, 2 CPUs, 30% busy, 1 hog": Server(1, 2, 300, 1),
    "1 process, 4 CPUs, 70% busy, 2 hogs": Server(1, 4, 700, 2),
    "1 process, 1 CPU, 50% busy, 1 hog": Server(1, 1, 500, 1),
    "2 processes, 2 CPUs, 30% busy, 1 hog": Server(2, 2, 600, 1),
    "4 processes, 2 CPUs, 20% busy, 2 hogs": Server(4, 2, 800, 2),
    "prefork, 2 CPUs, 40% busy, 1 hog": Server(16, 2, 800, 1, prefork=True),
    "1 process, 4 CPUs, closed load, 2 hogs": Server(1, 4, 0, 2),
    "2 processes, 2 CPUs, closed load, 1 hog": Server(2, 2, 0, 1),
    "prefork, 2 CPUs, closed load, 1 hog": Server(16, 2, 0, 1, prefork=True),
}


class Request(NamedTuple):
    """A request: when it arrived, and the CPU time (s) that it still needs."""

    arrived: float
    needs: float


class Machine:
    """A run of a server for some seconds; other programs want CPUs in the times `busy`."""

    def __init__(self, server: Server, seconds: int, busy: list[tuple[float, float]], seed: int) -> None:
        self.server, self.seconds = server, seconds
        self.latencies: list[list[float]] = [[] for _ in range(seconds)]
        self.ran, self.waited = np.zeros((server.workers, seconds)), np.zeros((server.workers, seconds))
        self.others = np.zeros(seconds)
        self._random = np.random.default_rng(seed)
        self._queues: list[deque[Request]] = [deque() for _ in range(1 if server.prefork else server.workers)]
        self._served: dict[int, Request] = {}
        # Tasks on the run queue, with the time since which they wait: a worker, or -1 − the end (ms) of a hog.
        self._ready: deque[tuple[int, float]] = deque()
        self._free = server.cpus
        # Time, order, kind (arrival at a connection, hog, end of a slice), task, length of the slice.
        self._events: list[tuple[float, int, str, int, float]] = []
        self._order = itertools.count()
        self._plan_arrivals()
        for begin, end in busy:
            for _ in range(server.hogs):
                self._push(begin, "hog", -1 - round(1000 * end))
        self._run()

    def _push(self, t: float, kind: str, task: int, length: float = 0.0) -> None:
        heapq.heappush(self._events, (t, next(self._order), kind, task, length))

    def _plan_arrivals(self) -> None:
        if not self.server.rate:
            for connection in range(CONNECTIONS):
                self._push(0.0, "arrival", connection)
            return
        number = int(1.2 * self.server.rate * self.seconds)
        for t in np.cumsum(self._random.exponential(1 / self.server.rate, number)):
            self._push(float(t), "arrival", int(self._random.integers(1 << 30)))

    def _run(self) -> None:
        while self._events:
            t, _, kind, task, length = heapq.heappop(self._events)
            if t >= self.seconds:
                return
            if kind == "arrival":
                self._arrive(t, task)
            elif kind == "hog":
                self._ready.append((task, t))
            else:
                self._stop(t, task, length)
            while self._free and self._ready:
                self._start(t, *self._ready.popleft())

    def _arrive(self, t: float, connection: int) -> None:
        needs = float(self._random.lognormal(math.log(_SERVICE) - _SPREAD**2 / 2, _SPREAD))
        place = connection % len(self._queues)
        self._queues[place].append(Request(t, needs))
        workers = range(self.server.workers) if self.server.prefork else (place,)
        idle = next((worker for worker in workers if worker not in self._served), None)
        if idle is not None:
            self._wake(t, idle)

    def _wake(self, t: float, worker: int) -> None:
        self._served[worker] = self._queues[worker % len(self._queues)].popleft()
        self._ready.append((worker, t))

    def _start(self, t: float, task: int, since: float) -> None:
        self._free -= 1
        length = _SLICE
        if task >= 0:
            self.waited[task, int(t)] += t - since
            length = min(length, self._served[task].needs)
        self._push(t + length, "slice", task, length)

    def _stop(self, t: float, task: int, length: float) -> None:
        self._free += 1
        if task < 0:
            self.others[int(t)] += length
            if t < -(task + 1) / 1000:
                self._ready.append((task, t))
            return
        self.ran[task, int(t)] += length
        request = self._served[task]
        if request.needs - length > 1e-12:
            self._served[task] = request._replace(needs=request.needs - length)
            self._ready.append((task, t))
            return
        self.latencies[int(t)].append(t - request.arrived)
        del self._served[task]
        if not self.server.rate:
            self._push(t, "arrival", task)
        if self._queues[task % len(self._queues)]:
            self._wake(t, task)

    def window(self) -> Window:
        """Return the run as cockpit measures it."""
        load = {"rate": self.server.rate} if self.server.rate else {"concurrency": CONNECTIONS}
        seconds = tuple(
            LoadSecond(
                second=at,
                start=float(at),
                end=at + 1.0,
                completed=len(times),
                latency=Histogram.of((np.array(times) * 1e9).astype(np.int64)).coarse(),
            )
            for at, times in enumerate(self.latencies)
        )
        return Window(
            start=0.0,
            end=float(self.seconds),
            plan=LoadPlan(url="http://a/", **load),
            seconds=seconds,
            hosts={"web1": tuple(map(self._point, range(self.seconds)))},
        )

    def _point(self, at: int) -> HostPoint:
        ran, ready = self.ran[:, at].sum(), self.ran[:, at] + self.waited[:, at]
        other, used = (100 * float(taken) / self.server.cpus for taken in (self.others[at], self.others[at] + ran))
        return HostPoint(
            t=at + 1.0,
            cpu=CpuShare(user=used, nice=0.0, system=0.0, iowait=0.0, steal=0.0, idle=100 - used),
            memory=_MEMORY,
            load=(0, 0, 0),
            other=other,
            wait=100 * (1 - float(ran / ready.sum())) if ready.sum() else 0.0,
            busiest=100 * min(1.0, float(ready.max())),
        )


class Delay(NamedTuple):
    """The factor by which other programs lengthened a percentile, and the one that the waits allow."""

    true: float
    allowed: float


def delays(server: Server, seconds: int, seed: int) -> list[Delay]:
    """Simulate random times with other programs; return the delay of each of PERCENTS."""
    random = np.random.default_rng(seed)
    busy = []
    for begin in random.uniform(0, seconds, random.integers(1, 4)):
        busy.append((float(begin), min(float(seconds), float(begin + random.uniform(1, seconds)))))
    disturbed, quiet = (Machine(server, seconds, times, seed) for times in (busy, []))
    window = disturbed.window()
    times, undisturbed = (np.concatenate([np.array(each) for each in run.latencies]) for run in (disturbed, quiet))
    return [
        Delay(
            float(np.percentile(times, percent) / np.percentile(undisturbed, percent)),
            delay_factor([window], "web1", percent) or math.inf,
        )
        for percent in PERCENTS
    ]


def summary(name: str, repetitions: int) -> list[float]:
    """Return for each of PERCENTS the shares of runs whose delay exceeds the allowed one by more than 2%, and in which
    the allowed one is at most 3."""
    runs = [delays(SERVERS[name], 30, seed) for seed in range(repetitions)]
    cells = []
    for at in range(len(PERCENTS)):
        cells.append(float(np.mean([run[at].true > 1.02 * run[at].allowed for run in runs])))
        cells.append(float(np.mean([run[at].allowed <= 3 for run in runs])))
    return cells


def quiet(server: Server, seconds: int, seed: int) -> Floats:
    """Return the delays that are allowed without other programs."""
    window = Machine(server, seconds, [], seed).window()
    return np.array([delay_factor([window], "web1", percent) or math.inf for percent in PERCENTS])
