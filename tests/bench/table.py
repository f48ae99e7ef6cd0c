"""A row of the benchmark: measurements, peers, limits, and the other load on the machine."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple, TypeVar

import psutil

from tests.bench.measurement import Measurement
from tests.bench.peers import Peer

ROUNDS = 3
_TICKS = os.sysconf("SC_CLK_TCK")

Measurements = dict[str, list[Measurement]]
Result = TypeVar("Result")


class Skipped(Exception):
    """A row cannot be measured on this machine; the message is the reason."""


class Bar(NamedTuple):
    """A limit: its text, the measured value, and whether the value is within the limit."""

    claim: str
    value: str
    holds: bool


def show(title: str, lines: Sequence[str], bars: Sequence[Bar]) -> bool:
    """Print one row of the table; return whether all limits hold."""
    print(title)
    for line in lines:
        print(f"    {line}")
    for bar in bars:
        print(f"  {'ok  ' if bar.holds else 'OVER'}  {bar.claim}: {bar.value}")
    return all(bar.holds for bar in bars)


def at_most(claim: str, value: float, limit: float, unit: str = "") -> Bar:
    over = f", {value / limit - 1:+.0%}" if value > limit else ""
    return Bar(f"{claim} <= {limit:g}{unit}", f"{value:.3g}{unit}{over}", value <= limit)


def at_least(claim: str, value: float, limit: float, unit: str = "") -> Bar:
    short = f", {value / limit - 1:+.0%}" if value < limit else ""
    return Bar(f"{claim} >= {limit:g}{unit}", f"{value:.3g}{unit}{short}", value >= limit)


def exactly(claim: str, value: int, expected: int) -> Bar:
    return Bar(f"{claim} == {expected:,}", f"{value:,}", value == expected)


def available(peers: Sequence[Peer]) -> list[Peer]:
    """Return the peers on this machine; print which are missing."""
    for peer in peers:
        if peer.missing:
            print(f"    {peer.missing}")
    return [peer for peer in peers if not peer.missing]


def rounds(generators: dict[str, Callable[[], Result]], count: int = ROUNDS) -> dict[str, list[Result]]:
    """Run all generators in turn, `count` times: drift of the machine affects all of them equally."""
    results: dict[str, list[Result]] = {name: [] for name in generators}
    for _ in range(count):
        for name, run in generators.items():
            results[name].append(run())
    return results


def ratio(measured: Measurements, first: str, second: str, metric: Callable[[Measurement], float]) -> float:
    """Return the median over the rounds of one generator's metric divided by the other's."""
    pairs = zip(measured[first], measured[second], strict=True)
    return median(metric(left) / metric(right) for left, right in pairs)


def median_of(measured: Measurements, name: str, metric: Callable[[Measurement], float]) -> float:
    return median(metric(measurement) for measurement in measured[name])


def cost(measurement: Measurement) -> float:
    return measurement.cost


def rate(measurement: Measurement) -> float:
    return measurement.rate


def summary_lines(measured: Measurements) -> list[str]:
    """Return one line per generator: CPU/request, requests/s, and errors if any."""
    lines = []
    for name, found in measured.items():
        if not all(measurement.requests for measurement in found):
            lines.append(f"{name:12} did not end")
            continue
        cpu, per_second = median_of(measured, name, cost), median_of(measured, name, rate)
        failed = max(measurement.errors for measurement in found)
        lines.append(
            f"{name:12} {cpu:7.2f} us CPU/request {per_second:10,.0f} requests/s{f'  {failed} failed' * (failed > 0)}"
        )
    return lines


class OtherLoad:
    """CPU time of other programs between creation and `stop`: `cpus` on average, over `seconds`."""

    def __init__(self, *own: int, cpu: int | None = None) -> None:
        """`own`: processes of the benchmark besides this process and its children.

        With `cpu`, measure that CPU only; of the benchmark only `own` may run on it.
        """
        self._own, self._cpu = own, cpu
        self._used, self._mine, self._began = self._now()

    def stop(self) -> None:
        used, mine, now = self._now()
        self.seconds = now - self._began
        self.cpus = max(0.0, (used - self._used) - (mine - self._mine)) / self.seconds

    def _now(self) -> tuple[float, float, float]:
        mine = _mine(self._own) if self._cpu is None else _of(self._own)
        return _used("cpu" if self._cpu is None else f"cpu{self._cpu}"), mine, time.monotonic()


@contextmanager
def report_other_load(*own: int) -> Iterator[None]:
    """Print after the block how much CPU other programs took."""
    others = OtherLoad(*own)
    yield
    others.stop()
    print(f"    ({others.seconds:.0f} s; other load took {others.cpus:.0%} of a CPU)")


def _used(row: str) -> float:
    """Return the busy time (s) of a row of /proc/stat."""
    rows = {fields[0]: fields[1:9] for fields in map(str.split, Path("/proc/stat").read_text().splitlines())}
    user, nice, system, _idle, _iowait, irq, softirq, steal = (int(field) for field in rows[row][:8])
    return (user + nice + system + irq + softirq + steal) / _TICKS


def _mine(own: tuple[int, ...]) -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system + _of(own)


def _of(pids: tuple[int, ...]) -> float:
    return sum(cpu_of(pid) for pid in pids)


def cpu_of(pid: int) -> float:
    """Return the CPU time (s) of a process and its descendants."""
    process = psutil.Process(pid)
    times = [each.cpu_times() for each in (process, *process.children(recursive=True))]
    return float(sum(time.user + time.system for time in times))
