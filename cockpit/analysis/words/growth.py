"""Growth of memory and threads as text."""

from __future__ import annotations

from cockpit.analysis.growth import Growth

_MIB = 2.0**20


def growth_words(growth: Growth) -> str:
    """Return `web1 memory (PSS) +3.1 MiB/h (95% CI 2.8 to 3.4)`."""
    memory = growth.metric == "memory"
    estimate, low, high = (value / _MIB if memory else value for value in growth.per_hour)
    name, unit = ("memory (PSS)", " MiB/h") if memory else (growth.metric, "/h")
    return f"{growth.host} {name} {_signed(estimate)}{unit} (95% CI {_plain(low)} to {_plain(high)})"


def _signed(value: float) -> str:
    return f"+{text}" if (text := _plain(value))[0] not in "−0" else text


def _plain(value: float) -> str:
    """Return a value with one decimal, 0 without a sign."""
    text = f"{abs(value):.1f}"
    return f"−{text}" if value < 0 and float(text) else text
