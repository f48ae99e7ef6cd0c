"""Text of sar in the locales of glibc: dates, times, words for the halves of a day, and decimal points.

A locale is read, or the message names the way out. `locales.tsv` has the forms of 340 locales.
"""

from collections import Counter
from datetime import date
from pathlib import Path

from cockpit.imports.sar_text import parse_sar

ROWS = [
    line.split("\t")
    for line in (Path(__file__).parent / "locales.tsv").read_text("utf-8").splitlines()
    if not line.startswith("#")
]
NATIVE = {"۰": "۱۰", "୨": "୧୦", "၀": "၁၀", "႐": "႑႐"}


def statistics_of(written: str, clock: str, point: str, day: date | None = None) -> list[str]:
    """The end times of intervals in text of sar, whose seconds (or minutes, if the locale prints no seconds) differ."""
    native = next((ten for zero, ten in NATIVE.items() if zero in clock), "10")
    step = native if native in clock else "05"
    digits = str.maketrans("0123456789", "".join(chr(ord(native[1]) + n) for n in range(10)))
    head, _, tail = clock.rpartition(step)
    times = [f"{head}{str(n).translate(digits)}{tail}" for n in (10, 20, 30)]
    title = f"{times[0]} CPU %user %nice %system %iowait %steal %idle"
    rows = [f"{time} all 9.00 0.00 1.00 0.00 0.00 90.00".replace(".00", f"{point}00") for time in times[1:]]
    text = "\n".join((f"Linux 6.1.0 (web1) \t{written} \t_x86_64_\t(2 CPU)", "", title, *rows, ""))
    host = parse_sar(text.splitlines(keepends=True), day=day)
    assert all(one.cpu_load[0].idle == 90 for one in host.statistics)
    return [f"{one.timestamp.date} {one.timestamp.time}"[:13] for one in host.statistics]


def outcome(written: str, morning: str, afternoon: str, point: str) -> str:
    try:
        found = [*statistics_of(written, morning, point), *statistics_of(written, afternoon, point)]
    except ValueError as error:
        return next(word for word in ("--date", "S_TIME_FORMAT=ISO", "sadf") if word in str(error))
    return "read" if found == ["2026-11-24 02"] * 2 + ["2026-11-24 14"] * 2 else "wrong"


def test_each_locale_is_read_or_refused_with_the_way_out() -> None:
    outcomes = Counter[str]()
    for written, morning, afternoon, point, expected, names in ROWS:
        assert outcome(written, morning, afternoon, point) == expected, names
        outcomes[expected] += len(names.split())
    # Undecidable: 12 hours without the half of the day (hy_AM, sm_WS), and 26/11/24 (ne_NP), another day in en_GB.
    assert outcomes["wrong"] == 3


def test_a_date_that_is_not_known_can_be_given() -> None:
    given = [row for row in ROWS if row[4] == "--date"]
    for written, morning, afternoon, point, _, names in given:
        for clock, hour in ((morning, "02"), (afternoon, "14")):
            if "ms_MY" not in names or hour == "02":
                assert statistics_of(written, clock, point, date(2026, 11, 24)) == [f"2026-11-24 {hour}"] * 2, names
