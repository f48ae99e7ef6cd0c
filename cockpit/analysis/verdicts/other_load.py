"""Other load: CPU used by other programs, and how much of an effect it can explain.

There are two cases. Other load differs between the sides, so that the effects of the server and of other programs
cannot be separated. Or it takes CPU that the server needs: at least a tenth of all CPU, and more than was idle. In both
it is weighed: see `weighing`. A server that has the share s of all CPUs while other programs have x can have been
slowed by at most 1 + x/s. What slows both sides equally cancels out: only the ratio of these factors can explain an
effect. A setting that lets the server win more CPU from the others changes x and s, so that the ratio includes it.

Unwatched programs that work for the server (a database, an application server) count as other load, too. Their load
follows the rate, exists only under load, or differs by the same amount in each round: none of that matters to a
comparison.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from ipaddress import ip_address
from statistics import median
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from cockpit.analysis.blocks import BLOCK
from cockpit.analysis.intervals import Floats
from cockpit.analysis.switch import switch
from cockpit.analysis.verdicts.outcome import Cause, Objection, OtherLoad, Period
from cockpit.analysis.windows import Window, Windows

# Tolerated difference between the sides (share of all CPUs): a server that has the rest loses about as much as it
# varies from run to run.
DIFFERS = 0.05
# Other load of at least this share of all CPUs takes CPU from the server if less than that is idle.
TAKES = 0.1
# Differences within this many standard errors are noise, by the variance of the quieter side.
_STANDARD_ERRORS = 2.0
# Smallest share of all CPUs that a server under load is taken to have.
_LEAST_SHARE = 0.01
# Minimum readings per side.
_LEAST = 5
# Name of the generator's machine beside the names of hosts.
GENERATOR = ""


class MeasuredOtherLoad(NamedTuple):
    """Other load on one machine on both sides, with the data to judge it, as shares of all CPUs. `idle` is the mean of
    each side, `noise` the standard error of the difference by the quieter side, `rate` the ratio of request rates.
    `unloaded` is the other load of each side while no load ran; None: unknown."""

    load: OtherLoad
    idle: tuple[float, float]
    noise: float
    rate: float
    unloaded: tuple[float | None, float | None]


def other_loads(before: Windows, after: Windows) -> list[MeasuredOtherLoad]:
    """Return the other load on each machine on which it was measured on both sides."""
    names = list(dict.fromkeys(name for window in (*before, *after) for name in window.hosts))
    if _generator_is_apart(before) and _generator_is_apart(after):
        names.append(GENERATOR)
    loads = []
    for name in names:
        sides = [_load_and_idle(windows, name) for windows in (before, after)]
        if min(len(others) for others, _ in sides) < _LEAST:
            continue
        (first, idle_before), (second, idle_after) = sides
        loads.append(
            MeasuredOtherLoad(
                load=OtherLoad(host=name, before=max(0.0, float(first.mean())), after=max(0.0, float(second.mean()))),
                idle=(float(idle_before.mean()), float(idle_after.mean())),
                noise=noise_of(first, second),
                rate=_rate(after) / _rate(before) if _rate(before) else 1.0,
                unloaded=(_idle_other_load(before, name), _idle_other_load(after, name)),
            )
        )
    return loads


def weighed_load(measured: MeasuredOtherLoad) -> OtherLoad:
    """Return the other load with what it can explain of a comparison of two times, if it matters."""
    if not (has_different_load(measured) or takes_server_cpu(measured)):
        return measured.load
    return _weighed(measured)


def weighed_load_of_rounds(measured: MeasuredOtherLoad) -> OtherLoad:
    """Return the other load with what it can explain of a comparison by rounds, if it takes the server's CPU.

    The order of rounds is random: a difference in each round is an effect of the settings unless the server lacks the
    CPU.
    """
    return _weighed(measured) if takes_server_cpu(measured) else measured.load


def round_objections(rounds: Sequence[tuple[Windows, Windows]]) -> list[Objection | None]:
    """Return the objection to each round: the difference of its other load is far from the median of all rounds. None:
    valid."""
    measured = [other_loads(before, after) for before, after in rounds]
    differences: dict[str, list[float]] = {}
    for load in (load for loads in measured for load in loads):
        differences.setdefault(load.load.host, []).append(_difference(load))
    usual = {host: median(values) for host, values in differences.items()}

    def is_unusual(pair: MeasuredOtherLoad) -> bool:
        return has_different_load(pair) and abs(_difference(pair) - usual[pair.load.host]) > DIFFERS

    return [next((other_load_objection(load.load) for load in loads if is_unusual(load)), None) for loads in measured]


def has_different_load(measured: MeasuredOtherLoad) -> bool:
    """Return whether other load differs between the sides by more than noise, and by more than unwatched helpers of the
    server explain: load that follows the rate, or exists only while load runs."""
    before, after = measured.load.before, measured.load.after
    low, high = sorted((before, before * measured.rate))
    beyond = max(low - after, after - high, 0.0)
    if beyond <= max(DIFFERS, _STANDARD_ERRORS * measured.noise):
        return False
    unloaded = measured.unloaded[after > before]
    return unloaded is None or unloaded - min(before, after) > DIFFERS


def takes_server_cpu(measured: MeasuredOtherLoad) -> bool:
    """Return whether other load took CPU that the server would have used, on the side with more of it."""
    most = max(measured.load.before, measured.load.after)
    known = [share for share in measured.unloaded if share is not None]
    caused = bool(known) and max(known) < TAKES
    return most >= TAKES and most > min(measured.idle) and not caused


def other_load_objection(load: OtherLoad) -> Objection:
    side = Period.AFTER if load.after > load.before else Period.BEFORE
    return Objection(cause=Cause.OTHER_LOAD, side=side, host=load.host, other=load)


def _weighed(measured: MeasuredOtherLoad) -> OtherLoad:
    """Return the other load with the largest factor by which it can have slowed each side more than the other."""
    shares = (measured.load.before, measured.load.after)
    before, after = (
        1 + share / max(_LEAST_SHARE, 1 - share - idle) for share, idle in zip(shares, measured.idle, strict=True)
    )
    return replace(measured.load, slowed=(max(1.0, before / after), max(1.0, after / before)))


def _difference(load: MeasuredOtherLoad) -> float:
    return load.load.after - load.load.before


def _idle_other_load(windows: Windows, name: str) -> float | None:
    """Return a side's other load while no load ran, as a share; None unless it is known for each window."""
    known = [window.unloaded[name] / 100 for window in windows if name in window.unloaded]
    return max(known) if len(known) == len(windows) else None


def _load_and_idle(windows: Windows, name: str) -> tuple[Floats, Floats]:
    """Return other load and idle time per reading, as shares. Seconds with a saturated generator are included, because
    other load may have caused them."""
    values: list[tuple[float, float]] = []
    for window in windows:
        if name == GENERATOR:
            seconds = (*window.seconds, *window.saturated)
            values += [(each.other, each.idle) for each in seconds if each.other is not None and each.idle is not None]
            continue
        values += [
            (point.other, point.cpu.idle + point.cpu.iowait)
            for point in window.hosts.get(name, ())
            if point.other is not None and point.cpu is not None
        ]
    table = np.array(values).reshape(-1, 2) / 100
    return table[:, 0], table[:, 1]


def _generator_is_apart(windows: Windows) -> bool:
    """Return whether the generator is known to run on another machine than the server: hosts are watched, none of them
    on the generator's machine, and the target is no loopback address."""
    addresses = [address for window in windows for segment in window.segments for address in segment.addresses]
    here = any(is_local(address) for address in addresses)
    boots = [boot for window in windows for boot in window.boots.values()]
    return bool(boots) and all(boots) and not here and windows[0].generator_boot not in boots


def is_local(address: str) -> bool:
    """Return whether an address is a loopback address or the path of a Unix socket."""
    try:
        return ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return True


def load_since(window: Window, load: OtherLoad) -> float | None:
    """Return the other load in a time after a verdict if it differs from that of the side after, else None."""
    others, _ = _load_and_idle([window], load.host)
    share = float(others.mean()) if len(others) >= _LEAST else load.after
    return share if abs(share - load.after) > DIFFERS else None


def noise_of(before: Floats, after: Floats) -> float:
    """Return the standard error of the difference of the means, by the variance of the quieter side."""
    blocks = [_block_means(side) for side in (before, after)]
    variance = min(switch.long_run_variance(side, side[:0]).value for side in blocks)
    return math.sqrt(variance * sum(1 / max(1, len(side)) for side in blocks))


def _block_means(values: Floats) -> Floats:
    number = len(values) // BLOCK
    means: Floats = values[: number * BLOCK].reshape(number, BLOCK).mean(axis=1)
    return means


def _rate(windows: Windows) -> float:
    seconds = [second for window in windows for second in window.seconds]
    span = sum(second.end - second.start for second in seconds)
    return sum(second.completed for second in seconds) / span if span else 0.0
