"""Units of metrics: how values are shown, and how columns and gauges name them. Pure."""

from __future__ import annotations

from typing import NamedTuple

from cockpit.model.text import milliseconds, si, size


class Unit(NamedTuple):
    """A unit. `sign` follows a value as text. Columns of tables for programs end with `column`, and have `per_column`
    times the value, with `digits` decimals; gauges end with `gauge` (base units), and have `per_gauge` times the cell
    of the column. `kind` is the type of a cell."""

    sign: str = ""
    column: str = ""
    gauge: str = ""
    per_column: float = 1.0
    per_gauge: float = 1.0
    digits: int = 3
    kind: type[int] | type[float] | type[bool] = float


NUMBER = Unit()
COUNT = Unit(kind=int)
FLAG = Unit(kind=bool)
PERCENT = Unit(sign="%", column="percent", gauge="ratio", per_gauge=0.01)
BYTES = Unit(sign="B", column="bytes", gauge="bytes", kind=int)
KIBIBYTES = Unit(sign="B", column="KiB", gauge="bytes", per_gauge=1024)
# A latency, shown in milliseconds, and a span of time, shown in seconds.
LATENCY = Unit(sign=" ms", column="ms", gauge="seconds", per_column=1000, per_gauge=0.001, digits=4)
SPAN = Unit(sign=" s", column="s", gauge="seconds")
RATE = Unit(sign="/s", column="per_s", gauge="per_second")
PACKETS = Unit(sign="/s", column="packets_per_s", gauge="packets_per_second")
# 512 bytes.
BLOCKS = Unit(sign="/s", column="blocks_per_s", gauge="bytes_per_second", per_gauge=512)
KIBIBYTES_PER_S = Unit(sign=" KiB/s", column="KiB_per_s", gauge="bytes_per_second", per_gauge=1024)
# Of a disk's requests.
MS = Unit(sign=" ms")


def number_text(unit: Unit, value: float, digits: int = 3) -> str:
    """Return a value without its unit, latencies in ms, with at most `digits` significant digits. Below 5 digits, for
    tables, percentages and spans of time have one decimal, and bytes are as in 61M; else they are in MiB."""
    if unit in (BYTES, KIBIBYTES):
        nbytes = value if unit is BYTES else 1024 * value
        return size(nbytes) if digits < 5 else f"{nbytes / 2**20:.1f}Mi"
    if unit is LATENCY:
        return milliseconds(value) if digits < 5 or value >= 1 else f"{1000 * value:.4g}"
    return f"{value:.1f}" if unit in (PERCENT, SPAN) and digits < 5 else si(value, digits)


def value_text(unit: Unit, value: float, digits: int = 3) -> str:
    """Return a value with its unit: `12 ms`, `548 MiB`."""
    if unit in (BYTES, KIBIBYTES):
        number = number_text(unit, value, digits).removesuffix("i")
        return f"{number[:-1]} {number[-1]}iB" if number[-1].isalpha() else f"{number} B"
    return f"{number_text(unit, value, digits)}{unit.sign}"
