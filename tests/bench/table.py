"""A row of the bench: what was measured, beside whom, against which bar; and how busy the machine was with others."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple, TypeVar

import psutil

from tests.bench.goes import Figure
from tests.bench.peers import Peer

ROUNDS = 3
_TICKS = os.sysconf("SC_CLK_TCK")

Ours = Callable[[], Figure]
Goes = dict[str, list[Figure]]
Result = TypeVar("Result")


class Bar(NamedTuple):
    """A claim, the figure it is about, and whether it holds."""

    claim: str
    figure: str
    holds: bool


def show(title: str, lines: Sequence[str], bars: Sequence[Bar]) -> bool:
    """Prints one row of the table; whether all its bars hold."""
    print(title)
    for line in lines:
        print(f"    {line}")
    for bar in bars:
        print(f"  {'ok  ' if bar.holds else 'OVER'}  {bar.claim}: {bar.figure}")
    return all(bar.holds for bar in bars)


def at_most(claim: str, value: float, limit: float, unit: str = "") -> Bar:
    over = f", {value / limit - 1:+.0%}" if value > limit else ""
    return Bar(f"{claim} <= {limit:g}{unit}", f"{value:.3g}{unit}{over}", value <= limit)


def at_least(claim: str, value: float, limit: float, unit: str = "") -> Bar:
    short = f", {value / limit - 1:+.0%}" if value < limit else ""
    return Bar(f"{claim} >= {limit:g}{unit}", f"{value:.3g}{unit}{short}", value >= limit)


def exactly(claim: str, value: int, wanted: int) -> Bar:
    return Bar(f"{claim} == {wanted:,}", f"{value:,}", value == wanted)


def present(peers: Sequence[Peer]) -> list[Peer]:
    """Those that this machine has; says which it has not."""
    for peer in peers:
        if peer.lacking:
            print(f"    {peer.lacking}")
    return [peer for peer in peers if not peer.lacking]


def rounds(goes: dict[str, Callable[[], Result]], count: int = ROUNDS) -> dict[str, list[Result]]:
    """Every go in turn, and round again: drift of the machine meets all alike."""
    results: dict[str, list[Result]] = {name: [] for name in goes}
    for _ in range(count):
        for name, go in goes.items():
            results[name].append(go())
    return results


def ratio(measured: Goes, one: str, other: str, figure: Callable[[Figure], float]) -> float:
    """The median, over the rounds, of one generator's figure divided by the other's."""
    pairs = zip(measured[one], measured[other], strict=True)
    return median(figure(left) / figure(right) for left, right in pairs)


def middle(measured: Goes, name: str, figure: Callable[[Figure], float]) -> float:
    return median(figure(one) for one in measured[name])


def cost(figure: Figure) -> float:
    return figure.cost


def rate(figure: Figure) -> float:
    return figure.rate


def described(measured: Goes) -> list[str]:
    """A line a generator: CPU per request and rate, and failures if there were any."""
    lines = []
    for name, figures in measured.items():
        if not all(figure.requests for figure in figures):
            lines.append(f"{name:12} did not end")
            continue
        each, pace = middle(measured, name, cost), middle(measured, name, rate)
        failed = max(figure.errors for figure in figures)
        lines.append(
            f"{name:12} {each:7.2f} us CPU/request {pace:10,.0f} requests/s{f'  {failed} failed' * (failed > 0)}"
        )
    return lines


class Others:
    """How much CPU others took while something went on: `cpus` is that in CPUs, `seconds` how long it took."""

    def __init__(self, *own: int, cpu: int | None = None) -> None:
        """`own` are processes that are no others, as this one and its children are none. With `cpu` it is about that
        CPU alone, on which there are no more of ours than `own`."""
        self._own, self._cpu = own, cpu
        self._used, self._mine, self._began = self._now()

    def note(self) -> None:
        used, mine, now = self._now()
        self.seconds = now - self._began
        self.cpus = max(0.0, (used - self._used) - (mine - self._mine)) / self.seconds

    def _now(self) -> tuple[float, float, float]:
        mine = _mine(self._own) if self._cpu is None else _of(self._own)
        return _used("cpu" if self._cpu is None else f"cpu{self._cpu}"), mine, time.monotonic()


@contextmanager
def neighbours(*own: int) -> Iterator[None]:
    """Says afterwards how busy others kept the machine meanwhile."""
    others = Others(*own)
    yield
    others.note()
    print(f"    ({others.seconds:.0f} s; others on this machine took {others.cpus:.0%} of a CPU meanwhile)")


def _used(row: str) -> float:
    """CPU seconds that were not idle, of a row of /proc/stat."""
    rows = {words[0]: words[1:9] for words in map(str.split, Path("/proc/stat").read_text().splitlines())}
    user, nice, system, _idle, _iowait, irq, softirq, steal = (int(word) for word in rows[row][:8])
    return (user + nice + system + irq + softirq + steal) / _TICKS


def _mine(own: tuple[int, ...]) -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system + _of(own)


def _of(pids: tuple[int, ...]) -> float:
    return sum(cpu_of(pid) for pid in pids)


def cpu_of(pid: int) -> float:
    """CPU seconds of a process and its descendants."""
    process = psutil.Process(pid)
    times = [one.cpu_times() for one in (process, *process.children(recursive=True))]
    return float(sum(time.user + time.system for time in times))
