"""Relative changes as factors: `×9.7`, `÷164`."""

from __future__ import annotations

from cockpit.model.text import si

# Changes from these shares on, upwards and downwards, are shown as a factor.
FACTOR_FROM, QUOTIENT_FROM = 1.0, -0.5


def is_factor(change: float) -> bool:
    """Return whether a relative change doubles or halves its metric."""
    return change >= FACTOR_FROM or change <= QUOTIENT_FROM


def factor_words(change: float) -> str:
    """Return a relative change above −1 as a factor: `×1.02`, `×9.7`, `÷164`."""
    return f"×{factor_text(1 + change)}" if change >= 0 else f"÷{factor_text(1 / (1 + change))}"


def factor_text(value: float) -> str:
    """Return a factor. Close to 1 the second decimal counts."""
    if value < 1.995:
        return f"{value:.2f}"
    return f"{value:.1f}" if value < 9.95 else si(value)
