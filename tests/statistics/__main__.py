"""`python -m tests.statistics [REPETITIONS]`: print error rate, power and coverage of verdicts, on all CPUs."""

import math
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np

from cockpit.analysis.verdicts.outcome import DIFFERENT, Outcome
from tests.statistics.capacity import EVERY as CAPACITIES
from tests.statistics.capacity import summary as capacities
from tests.statistics.disturbed import CAP, EFFECTS, HARMS, SIDES, disturbed, wrong
from tests.statistics.duets import CAP as CAP_OF_DUETS
from tests.statistics.duets import duets
from tests.statistics.neighbours import CASES, spoiled_shares
from tests.statistics.noise import NOISES, STALLS
from tests.statistics.repeated import ORDERS, repeated
from tests.statistics.scaling import LAWS, coverage, fits
from tests.statistics.simulate import EACH, LIMIT, compared_with_baseline, stalls_ended, studied, watched
from tests.statistics.speeds import MACHINES, studies_of
from tests.statistics.studies import Simulated, studies
from tests.statistics.switch_speeds import BEFORE, FOLLOWS, SPEEDS, switched
from tests.statistics.switchbacks import ROUNDS as SWITCHBACKS
from tests.statistics.switchbacks import siblings, switchbacks
from tests.statistics.waits import SERVERS
from tests.statistics.waits import summary as waits

# On two slow CPUs they take about 15 minutes.
REPETITIONS = 500
MARGIN = 0.03
# Seconds before a switch.
BASELINES = (25, 40, 60)
# A simulated study takes about 10 ms.
MOST_STUDIES = 1000
# A switch at a varying speed takes about 0.1 s, and there are 312 kinds of noise, speed and slope.
MOST_SWITCHES = 10
# A simulated search takes about 1 s.
MOST_SEARCHES = 50
# Simulated rounds on traffic take about 1 s.
MOST_SWITCHBACKS = 200
# The difference of the speeds of two servers (log scale).
_GAP = math.log(1.2)
# A simulated server takes about 1 s.
MOST_WAITS = 60
# Rounds of 10 min.
TEN = 600 // (2 * EACH)


class Table(NamedTuple):
    """A description with the heads of the columns, and functions that simulate one row each."""

    head: str
    rows: Sequence[Callable[[], str]]


def tables(repetitions: int) -> list[Table]:
    """Return all simulations with this number of repetitions per row; the slow ones have fewer."""
    switches, studied_ = min(repetitions, MOST_SWITCHES), min(repetitions, MOST_STUDIES)
    searches_ = min(repetitions, MOST_SEARCHES)
    return [
        *(
            Table(
                f"one switch under load, baseline {before} s, a test every 5 s; wrong: significant in 300 s without\n"
                "effect, found: +10% significant in 180 s; covered: the interval at that time has the true effect\n"
                + _row("noise", 18, "wrong", "covered", "found", "covered"),
                [partial(switch, name, repetitions, before) for name in NOISES],
            )
            for before in (25, 60)
        ),
        Table(
            "one switch on a server that stalls, tests for 300 s; wrong: significant although nothing changed\n"
            + _row("stalls", 18, *(f"{before} s" for before in BASELINES)),
            [partial(stall, name, repetitions) for name in STALLS],
        ),
        Table(
            "a switch that ends stalls of 10 s every 40 s, and makes the server faster\n"
            + _row("baseline", 18, "60 s", "90 s", "180 s", "covered"),
            [partial(stall_end, repetitions, before, faster) for before in BASELINES for faster in (1.3, 2.2)],
        ),
        Table(
            f"one switch on a machine whose CPU speed varies, baseline {BEFORE} s, adjusted for the speed and not;\n"
            f"each row has all {len(NOISES)} noises, {switches} repetitions each; follows: the slope of the rate.\n"
            "wrong: significant in 300 s without effect, found: +10% significant in 180 s; covered: as above\n"
            + _row("speed", 28, "follows", "wrong", "plain", "found", "plain", "covered"),
            [partial(switch_at_speed, name, follows, switches) for name in SPEEDS for follows in FOLLOWS],
        ),
        Table(
            f"rounds of {2 * EACH} s, a set-up per setting, a test per round; restart: standard deviation of set-ups\n"
            + _row("noise", 18, "restart", "wrong", "covered", "equivalent"),
            [partial(round_, name, restart, repetitions) for name in NOISES for restart in (0.0, 0.01, 0.03)],
        ),
        Table(
            f"studies of 4 variants vs a baseline, at most 12 rounds, tests from round 4, {studied_} per row; closed\n"
            "variants drop out; standard deviation of set-ups 2%. wrong: better or worse without effect; A/A: the\n"
            "control differs; covered: all intervals; then with +10%, +5%, none, none; visits: share of 12 rounds\n"
            + _row("noise", 18, "wrong", "A/A", "covered", "wrong", "covered", "+10%", "+5%", "visits"),
            [partial(whole_study, name, studied_) for name in NOISES],
        ),
        Table(
            "rounds on a machine whose CPU speed varies by 10%, the rest by 2%, adjusted for the speed and not;\n"
            "wrong: significant at any test without effect (ever: also without a planned end), found: +5% significant\n"
            + _row("rate", 30, "rounds", "wrong", "plain", "ever", "found", "plain", "covered"),
            [partial(speed, at, number, repetitions) for at in range(len(MACHINES)) for number in (5, 12)],
        ),
        Table(
            "runs repeated by hand, tested after each, at a level that falls with their number and at 5% each time;\n"
            "wrong: significant at any test without effect, also if the second setting's runs spread three times as\n"
            "much; found: a difference of 3 standard deviations, at 5 vs 5 runs or before\n"
            + _row("runs", 30, "wrong", "at 5%", "spread", "found", "at 5%"),
            [partial(repeated_runs, name, repetitions) for name in ORDERS],
        ),
        Table(
            "checks of 'rate >= 95% of baseline'; fails and passes: share of checks at 100%, and at exactly 95%\n"
            + _row("spread, runs", 18, "fails", "at 95%", "passes", "at 95%", "covered"),
            [
                partial(baseline, spread, base, found, repetitions)
                for spread in (0.01, 0.03, 0.1)
                for base, found in ((1, 1), (2, 1), (5, 1), (5, 5), (10, 10))
            ],
        ),
        Table(
            "other load on a host with 2 CPUs, sides of 30 s: share of invalid comparisons\n"
            + _row("load", 52, "invalid"),
            [partial(neighbour, at, repetitions) for at in range(len(CASES))],
        ),
        Table(
            f"one switch beside programs that take 5 to 60% of the CPU in bursts, at most {CAP} s; each row has all\n"
            "noises, and an effect on the rate; wrong: another word than the true one, or a bound beyond the effect\n"
            + _row("others", 28, "effect", "wrong", "concluded"),
            [partial(burst, side, effect, repetitions) for side in SIDES for effect in EFFECTS],
        ),
        Table(
            "latencies beside other programs, bounded by the run-queue wait of the server; p50, p99: the true delay\n"
            "is longer than the waits allow; useful: they allow a factor of at most 3\n"
            + _row("server", 40, "p50", "useful", "p99", "useful"),
            [partial(waiting, name, min(repetitions, MOST_WAITS)) for name in SERVERS],
        ),
        Table(
            "Universal Scalability Law fitted to 7 levels with 2% of noise; coverage of the intervals of the rate of\n"
            "one connection, contention, coherency, peak and its rate; claimed: a peak within the levels\n"
            + _row("law", 30, "one", "contention", "coherency", "peak", "its rate", "claimed"),
            [partial(scaling, name, repetitions) for name in LAWS],
        ),
        Table(
            f"duets beside bursts of other load and speed steps, {CAP_OF_DUETS} s; wrong: significant without\n"
            "effect, found: −5% significant; covered: as above; rounds: width of their interval / that of a duet\n"
            + _row("noise", 18, "wrong", "covered", "found", "covered", "rounds"),
            [partial(duet, name, repetitions) for name in NOISES],
        ),
        Table(
            f"rounds on users' traffic with waves, bursts and a drifting mix, {SWITCHBACKS} rounds in 10 min; wrong:\n"
            "better or worse without effect, found: 10% more service time, invalid: without effect; covered: as above\n"
            + _row("requests/s", 18, "wrong", "covered", "invalid", "found", "covered"),
            [partial(switchback, rate, min(repetitions, MOST_SWITCHBACKS)) for rate in (20.0, 50.0, 200.0)],
        ),
        Table(
            "the same on two servers that exchange the old and the new values; the second is 20% slower, and gets a\n"
            "third of the requests\n" + _row("requests/s", 18, "wrong", "covered", "invalid", "found", "covered"),
            [partial(switchback, rate, min(repetitions, MOST_SWITCHBACKS), _GAP) for rate in (20.0, 50.0, 200.0)],
        ),
        Table(
            f"capacity searches on simulated queues, at most 3 min, {searches_} per row; share within 5% of the\n"
            "capacity, median and 90% of the error, share of 95% intervals that have it, mean and longest time",
            [partial(capacities, case, searches_) for case in CAPACITIES],
        ),
    ]


def main(repetitions: int) -> None:
    print(f"{repetitions} repetitions per row; all values in percent")
    found = tables(repetitions)
    total = sum(len(table.rows) for table in found)
    with ProcessPoolExecutor() as pool:
        futures = [[pool.submit(row) for row in table.rows] for table in found]
        finished = 0
        for table, rows in zip(found, futures, strict=True):
            print(f"\n{table.head}", flush=True)
            for row in rows:
                print(row.result(), flush=True)
                finished += 1
                print(f"\r{finished} of {total} rows ", end="", file=sys.stderr, flush=True)


def scaling(name: str, repetitions: int) -> str:
    found = [coverage(LAWS[name], fit) for fit in fits(LAWS[name], repetitions, seed=13)]
    return _row(name, 30, *map(list, zip(*found, strict=True)))


def waiting(name: str, repetitions: int) -> str:
    return _row(name, 40, *waits(name, repetitions))


def switch(name: str, repetitions: int, before: int) -> str:
    none = watched(NOISES[name], repetitions, before, 300, 0.0, seed=1)
    ten = watched(NOISES[name], repetitions, before, 180, math.log(1.1), seed=2)
    sides = [([math.isfinite(each.called) for each in side], [each.covered for each in side]) for side in (none, ten)]
    return _row(name, 18, *sides[0], *sides[1])


def stall(name: str, repetitions: int) -> str:
    sides = [watched(STALLS[name], repetitions, before, 300, 0.0, seed=9) for before in BASELINES]
    return _row(name, 18, *([math.isfinite(each.called) for each in side] for side in sides))


def stall_end(repetitions: int, before: int, faster: float) -> str:
    ended = stalls_ended(repetitions, before, faster, seed=10)
    cells = [[each.called <= limit for each in ended] for limit in (60, 90, 180)]
    return _row(f"{before} s, ×{faster}", 18, *cells, [each.covered for each in ended])


def switch_at_speed(name: str, follows: float, repetitions: int) -> str:
    none, ten = (
        [
            one
            for noise in NOISES.values()
            for one in switched(SPEEDS[name], noise, follows, repetitions, after, effect, seed)
        ]
        for after, effect, seed in ((300, 0.0, 11), (180, math.log(1.1), 12))
    )
    cells = [
        [math.isfinite(time) for time in times]
        for found in (none, ten)
        for times in ([one.adjusted for one in found], [one.plain for one in found])
    ]
    return _row(name, 28, str(follows), *cells, [one.covered for one in ten])


def round_(name: str, restart: float, repetitions: int) -> str:
    found = studied(NOISES[name], repetitions, TEN, 0.0, restart, seed=3)
    wrong = [any(each.low > 0 or each.high < 0 for each in tests) for tests in found]
    covered = [tests[-1].low <= 0 <= tests[-1].high for tests in found]
    equivalent = [any(each.low > -MARGIN and each.high < MARGIN for each in tests) for tests in found]
    return _row(name, 18, str(restart), wrong, covered, equivalent)


def whole_study(name: str, repetitions: int) -> str:
    """Simulate studies with an A/A control and closed variants; the comparisons share the error rate."""
    effects = (math.log(1.1), math.log(1.05), 0.0, 0.0)
    null = studies(NOISES[name], repetitions, (0.0,) * 4, 12, 0.02, seed=6)
    mixed = studies(NOISES[name], repetitions, effects, 12, 0.02, seed=7)
    return _row(
        name,
        18,
        [_wrong(study, (0, 1, 2, 3)) for study in null],
        [study.control.outcome in DIFFERENT for study in null],
        _covered(null, (0.0,) * 4),
        [_wrong(study, (2, 3)) for study in mixed],
        _covered(mixed, effects),
        [study.comparisons[0].outcome is Outcome.BETTER for study in mixed],
        [study.comparisons[1].outcome is Outcome.BETTER for study in mixed],
        [study.visits / (12 * 6) for study in mixed],
    )


def _wrong(study: Simulated, places: Sequence[int]) -> bool:
    return any(study.comparisons[at].outcome in DIFFERENT for at in places)


def _covered(found: Sequence[Simulated], effects: Sequence[float]) -> list[bool]:
    """Return for each study whether all its intervals contain the true effect."""
    return [
        all(
            comparison.interval.low <= effect <= comparison.interval.high
            for comparison, effect in zip(study.comparisons, effects, strict=True)
        )
        for study in found
    ]


def speed(at: int, number: int, repetitions: int) -> str:
    none, five = (studies_of(MACHINES[at], repetitions, number, math.log1p(effect), seed=8) for effect in (0.0, 0.05))
    return _row(
        MACHINES[at].name,
        30,
        str(number),
        [one.adjusted.low > 0 or one.adjusted.high < 0 for one in none],
        [one.plain.low > 0 or one.plain.high < 0 for one in none],
        [one.ever for one in none],
        [one.adjusted.low > 0 for one in five],
        [one.plain.low > 0 for one in five],
        [one.adjusted.low <= math.log(1.05) <= one.adjusted.high for one in five],
    )


def repeated_runs(name: str, repetitions: int) -> str:
    order = ORDERS[name]
    none, uneven, three = (
        repeated(order, repetitions, effect, 14, spread) for effect, spread in ((0, 1), (0, 3), (3, 1))
    )
    at = [place for place, (one, two) in enumerate(order) if one + two <= 10]
    return _row(
        name,
        30,
        [one.spent < len(order) for one in none],
        [one.plain < len(order) for one in none],
        [one.spent < len(order) for one in uneven],
        [one.spent in at for one in three],
        [one.plain in at for one in three],
    )


def baseline(spread: float, base: int, found: int, repetitions: int) -> str:
    same, limit = (compared_with_baseline(repetitions, spread, base, found, truth, seed=6) for truth in (1.0, LIMIT))
    cells = (same.failed, limit.failed, same.passed, limit.passed, limit.covered)
    return _row(f"{spread}, {base} vs {found}", 18, *cells)


def neighbour(at: int, repetitions: int) -> str:
    return _row(CASES[at].name, 52, spoiled_shares(CASES[at], repetitions, seed=7))


def burst(side: str, effect: float, repetitions: int) -> str:
    found = [one for harm in HARMS for one in disturbed(side, effect, harm, repetitions // len(HARMS), seed=9)]
    return _row(
        side,
        28,
        f"×{effect:.2f}",
        np.array([wrong(one, effect) for one in found]),
        np.array([one.outcome is not None for one in found]),
    )


def duet(name: str, repetitions: int) -> str:
    none, five = (duets(NOISES[name], repetitions, effect, seed) for effect, seed in ((0.0, 14), (math.log(0.95), 15)))
    cells = [
        cell
        for found in (none, five)
        for cell in ([math.isfinite(one.called) for one in found], [one.covered for one in found])
    ]
    narrower = float(np.median([one.rounds for one in none]) / np.median([one.width for one in none]))
    return _row(name, 18, *cells, f"{narrower:.1f}")


def switchback(rate: float, repetitions: int, gap: float | None = None) -> str:
    """Return a row; `gap`: on two servers that differ by so much (log scale)."""
    none, ten = (
        switchbacks(repetitions, effect, rate, seed) if gap is None else siblings(repetitions, effect, rate, seed, gap)
        for effect, seed in ((0.0, 16), (math.log(1.1), 17))
    )
    return _row(
        f"{rate:.0f}",
        18,
        [each.outcome in DIFFERENT for each in none],
        [each.covered for each in none],
        [each.outcome is Outcome.INVALID for each in none],
        [each.outcome is Outcome.WORSE for each in ten],
        [each.covered for each in ten],
    )


def _row(name: str, width: int, *cells: object) -> str:
    """Return a row of a table; a cell is a text, or a share in percent."""
    texts = (cell if isinstance(cell, str) else f"{100 * float(np.mean(cell)):.1f}" for cell in cells)  # type: ignore[arg-type]
    return " ".join((f"{name:{width}}", *(f"{text:>7}" for text in texts)))


if __name__ == "__main__":
    # One thread per process: the processes are as many as the CPUs.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main(int(sys.argv[1]) if len(sys.argv) > 1 else REPETITIONS)
