"""Print error rate, power and coverage of verdicts: `make statistics`."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

import numpy as np

from cockpit.analysis.intervals import Interval, PooledVariance, few_runs, minimum_detectable, sequential
from cockpit.analysis.outcome import DIFFERENT, Outcome
from tests.statistics.neighbours import CASES, spoiled_shares
from tests.statistics.noise import NOISES, STALLS
from tests.statistics.repeated import ORDERS, repeated
from tests.statistics.simulate import EACH, LIMIT, compared_with_baseline, stalls_ended, studied, watched
from tests.statistics.speeds import MACHINES, studies_of
from tests.statistics.studies import Simulated, studies
from tests.statistics.switch_speeds import BEFORE, FOLLOWS, SPEEDS, switched
from tests.statistics.waits import CAP, SERVERS, WAITS, waited

MARGIN = 0.03
# Seconds before a switch.
BASELINES = (25, 40, 60)
# A simulated study takes about 10 ms.
MOST_STUDIES = 1000
# A switch at a varying speed takes about 0.1 s, and there are 312 kinds of noise, speed and slope.
MOST_SWITCHES = 20
MOST_WAITS = 200
FIVE, TEN = 300 // (2 * EACH), 600 // (2 * EACH)


def main(repetitions: int) -> None:
    print(f"{repetitions} repetitions per row; all values in percent\n")
    switches(repetitions, 25)
    switches(repetitions, 60)
    stalls(repetitions)
    switches_at_speeds(repetitions)
    waits(repetitions)
    rounds(repetitions)
    planned(repetitions)
    whole_studies(repetitions)
    speeds(repetitions)
    few(repetitions)
    repeated_runs(repetitions)
    baselines(repetitions)
    neighbours(repetitions)


def switches(repetitions: int, before: int) -> None:
    print(
        f"one switch under load, baseline {before} s, a test every 5 s; wrong: significant in 300 s without effect,\n"
        "found: +10% significant in 180 s; covered: the interval at that time contains the true effect"
    )
    print(f"{'noise':18} {'wrong':>7} {'covered':>8} {'found':>7} {'covered':>8}")
    for name, noise in NOISES.items():
        none = watched(noise, repetitions, before, 300, 0.0, seed=1)
        ten = watched(noise, repetitions, before, 180, math.log(1.1), seed=2)
        cells = [
            _percent(values)
            for found in (none, ten)
            for values in ([math.isfinite(each.called) for each in found], [each.covered for each in found])
        ]
        print(f"{name:18} {cells[0]:>7} {cells[1]:>8} {cells[2]:>7} {cells[3]:>8}", flush=True)


def stalls(repetitions: int) -> None:
    print("\none switch on a server that stalls, tests for 300 s; wrong: significant although nothing changed")
    print(f"{'stalls':18} " + " ".join(f"{f'{before} s':>7}" for before in BASELINES))
    for name, noise in STALLS.items():
        found = [watched(noise, repetitions, before, 300, 0.0, seed=9) for before in BASELINES]
        cells = [_percent([math.isfinite(each.called) for each in side]) for side in found]
        print(f"{name:18} " + " ".join(f"{cell:>7}" for cell in cells), flush=True)
    print("a switch that ends stalls of 10 s every 40 s, and makes the server faster: found in 60, 90, 180 s; covered")
    for before in BASELINES:
        for faster in (1.3, 2.2):
            ended = stalls_ended(repetitions, before, faster, seed=10)
            cells = [_percent([each.called <= limit for each in ended]) for limit in (60, 90, 180)]
            cells.append(_percent([each.covered for each in ended]))
            print(f"baseline {before} s, ×{faster} " + " ".join(f"{cell:>7}" for cell in cells), flush=True)


def switches_at_speeds(repetitions: int) -> None:
    repetitions = min(repetitions, MOST_SWITCHES)
    print(
        f"\none switch on a machine whose CPU speed varies, baseline {BEFORE} s, adjusted for the speed and not;\n"
        f"each row has all {len(NOISES)} noises, {repetitions} repetitions each; follows: the slope of the rate.\n"
        "wrong: significant in 300 s without effect, found: +10% significant in 180 s; covered: as above"
    )
    print(f"{'speed':28} {'follows':>7} {'wrong':>7} {'plain':>7} {'found':>7} {'plain':>7} {'covered':>8}")
    for name, speed in SPEEDS.items():
        for follows in FOLLOWS:
            none, ten = (
                [
                    one
                    for noise in NOISES.values()
                    for one in switched(speed, noise, follows, repetitions, after, effect, seed)
                ]
                for after, effect, seed in ((300, 0.0, 11), (180, math.log(1.1), 12))
            )
            cells = [
                _percent([math.isfinite(time) for time in times])
                for found in (none, ten)
                for times in ([one.adjusted for one in found], [one.plain for one in found])
            ]
            cells.append(_percent([one.covered for one in ten]))
            print(f"{name:28} {follows:>7} {' '.join(f'{cell:>7}' for cell in cells[:4])} {cells[4]:>8}", flush=True)


def waits(repetitions: int) -> None:
    repetitions = min(repetitions, MOST_WAITS)
    print(
        f"\none switch within {CAP} s from the start of the load, by the length of the baseline: verdicts, median\n"
        "and 90th percentile of the seconds until then (-: none), and the width of the last interval as a ratio"
    )
    for server in SERVERS:
        for name, wait in WAITS.items():
            found = waited(wait, server, repetitions, seed=13)
            times = sorted(one.called for one in found)
            middle, most = (times[math.ceil(share * len(times)) - 1] for share in (0.5, 0.9))
            shown = " ".join(f"{time:>5.0f}" if math.isfinite(time) else "    -" for time in (middle, most))
            width = float(np.median([one.width for one in found]))
            called = _percent([math.isfinite(one.called) for one in found])
            print(f"{server.name:36} {name:10} {called:>6} {shown} {width:>6.2f}", flush=True)


def repeated_runs(repetitions: int) -> None:
    print(
        "\nruns repeated by hand, tested after each, at a level that falls with their number and at 5% each time;\n"
        "wrong: significant at any test without effect, also if the second setting's runs spread three times as much;\n"
        "found: a difference of 3 standard deviations, at 5 vs 5 runs or before"
    )
    print(f"{'runs':30} {'wrong':>7} {'at 5%':>7} {'spread':>7} {'found':>7} {'at 5%':>7}")
    for name, order in ORDERS.items():
        none, uneven, three = (
            repeated(order, repetitions, effect, 14, spread) for effect, spread in ((0, 1), (0, 3), (3, 1))
        )
        at = [place for place, (one, two) in enumerate(order) if one + two <= 10]
        cells = (
            [one.spent < len(order) for one in none],
            [one.plain < len(order) for one in none],
            [one.spent < len(order) for one in uneven],
            [one.spent in at for one in three],
            [one.plain in at for one in three],
        )
        print(f"{name:30} {' '.join(f'{_percent(cell):>7}' for cell in cells)}", flush=True)


def rounds(repetitions: int) -> None:
    print(f"\nrounds of {2 * EACH} s, a set-up per setting, a test per round; restart: standard deviation of set-ups")
    print(f"{'noise':18} {'restart':>7} {'wrong':>7} {'covered':>8} {'equivalent':>11}")
    for name, noise in NOISES.items():
        for restart in (0.0, 0.01, 0.03):
            found = studied(noise, repetitions, TEN, 0.0, restart, seed=3)
            wrong = [any(each.low > 0 or each.high < 0 for each in tests) for tests in found]
            covered = [tests[-1].low <= 0 <= tests[-1].high for tests in found]
            equivalent = [any(each.low > -MARGIN and each.high < MARGIN for each in tests) for tests in found]
            cells = (_percent(wrong), _percent(covered), _percent(equivalent))
            print(f"{name:18} {restart:>7} {cells[0]:>7} {cells[1]:>8} {cells[2]:>11}", flush=True)


def planned(repetitions: int) -> None:
    print("\nrounds with a standard deviation of 3% of the differences: power")
    random = np.random.default_rng(4)
    for effect, budget in ((0.05, FIVE), (0.05, TEN), (0.03, TEN)):
        found = [_better(random.normal(math.log1p(effect), 0.03, budget)) for _ in range(repetitions)]
        print(f"+{100 * effect:.0f}% in {budget} rounds, {budget * 2 * EACH} s: {_percent(found)}")
    for budget in (FIVE, TEN):
        effect = minimum_detectable(0.03, budget)
        found = [_better(random.normal(effect, 0.03, budget)) for _ in range(repetitions)]
        print(f"the minimum detectable effect of {budget} rounds, {100 * math.expm1(effect):.1f}%: {_percent(found)}")


def whole_studies(repetitions: int) -> None:
    """Simulate studies with an A/A control and closed variants; the comparisons share the error rate."""
    repetitions = min(repetitions, MOST_STUDIES)
    print(
        f"\nstudies of 4 variants vs a baseline, at most 12 rounds, tests from round 4, {repetitions} per row;\n"
        "closed variants drop out; standard deviation of set-ups 2%. wrong: better or worse without effect;\n"
        "A/A: the control differs; covered: all intervals; visits: share of the visits of 12 rounds"
    )
    print(
        f"{'':18} no effects {'':16} +10%, +5%, none, none\n"
        f"{'noise':18} {'wrong':>7} {'A/A':>7} {'covered':>8}   "
        f"{'wrong':>7} {'covered':>8} {'+10%':>7} {'+5%':>7} {'visits':>7}"
    )
    effects = (math.log(1.1), math.log(1.05), 0.0, 0.0)
    for name, noise in NOISES.items():
        null = studies(noise, repetitions, (0.0,) * 4, 12, 0.02, seed=6)
        mixed = studies(noise, repetitions, effects, 12, 0.02, seed=7)
        cells = (
            _percent([_wrong(study, (0, 1, 2, 3)) for study in null]),
            _percent([study.control.outcome in DIFFERENT for study in null]),
            _percent(_covered(null, (0.0,) * 4)),
            _percent([_wrong(study, (2, 3)) for study in mixed]),
            _percent(_covered(mixed, effects)),
            _percent([study.comparisons[0].outcome is Outcome.BETTER for study in mixed]),
            _percent([study.comparisons[1].outcome is Outcome.BETTER for study in mixed]),
            _percent([study.visits / (12 * 6) for study in mixed]),
        )
        print(
            f"{name:18} {cells[0]:>7} {cells[1]:>7} {cells[2]:>8}   "
            f"{cells[3]:>7} {cells[4]:>8} {cells[5]:>7} {cells[6]:>7} {cells[7]:>7}",
            flush=True,
        )


def speeds(repetitions: int) -> None:
    print(
        "\nrounds on a machine whose CPU speed varies by 10%, the rest by 2%, adjusted for the speed and not;\n"
        "wrong: significant at any test without effect (ever: also without a planned end), found: +5% significant"
    )
    head = ("wrong", "plain", "ever", "found", "plain", "covered")
    print(f"{'rate':30} {'rounds':>6} {' '.join(f'{word:>7}' for word in head)}")
    for machine in MACHINES:
        for number in (5, 12):
            none, five = (
                studies_of(machine, repetitions, number, math.log1p(effect), seed=8) for effect in (0.0, 0.05)
            )
            cells = (
                [one.adjusted.low > 0 or one.adjusted.high < 0 for one in none],
                [one.plain.low > 0 or one.plain.high < 0 for one in none],
                [one.ever for one in none],
                [one.adjusted.low > 0 for one in five],
                [one.plain.low > 0 for one in five],
                [one.adjusted.low <= math.log(1.05) <= one.adjusted.high for one in five],
            )
            shown = " ".join(f"{_percent(cell):>7}" for cell in cells)
            print(f"{machine.name:30} {number:>6} {shown}", flush=True)


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


def few(repetitions: int) -> None:
    print("\ntwo vs two runs, a tenfold difference, standard deviation between runs 10%")
    random = np.random.default_rng(5)
    for cells in (4, 10, 24):
        found = [_tenfold(random, cells) for _ in range(repetitions)]
        covered = [each.low <= math.log(10) <= each.high for each in found]
        width = math.exp(float(np.median([(each.high - each.low) / 2 for each in found])))
        print(
            f"{cells} other cells: found {_percent([each.low > 0 for each in found])}, "
            f"covered {_percent(covered)}, x/÷{width:.2f}"
        )


def baselines(repetitions: int) -> None:
    print("\nchecks of 'rate >= 95% of baseline'; fails and passes: share of checks at 100%, and at exactly 95%")
    print(f"{'spread':>7} {'runs':>8} {'fails':>7} {'at 95%':>7} {'passes':>7} {'at 95%':>7} {'covered':>8}")
    for spread in (0.01, 0.03, 0.1):
        for base, found in ((1, 1), (2, 1), (5, 1), (5, 5), (10, 10)):
            same, limit = (
                compared_with_baseline(repetitions, spread, base, found, truth, seed=6) for truth in (1.0, LIMIT)
            )
            cells = (same.failed, limit.failed, same.passed, limit.passed, limit.covered)
            shown = " ".join(f"{_percent(cell):>7}" for cell in cells)
            print(f"{spread:>7} {base:>3} vs {found} {shown}", flush=True)


def neighbours(repetitions: int) -> None:
    print("\nother load on a host with 2 CPUs, sides of 30 s: share of invalid comparisons")
    for case in CASES:
        print(f"{case.name:52} {_percent(spoiled_shares(case, repetitions, seed=7)):>6}", flush=True)


def _better(differences: np.ndarray[tuple[int], np.dtype[np.float64]]) -> bool:
    return sequential(differences, len(differences)).low > 0


def _tenfold(random: np.random.Generator, cells: int) -> Interval:
    others = random.normal(0, 0.1, (cells, 2))
    before, after = random.normal(0, 0.1, (2, 2))
    return few_runs(before, after + math.log(10), PooledVariance.of(others))


def _percent(share: object) -> str:
    return f"{100 * float(np.mean(share)):.1f}"  # type: ignore[arg-type]


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
