"""Colours of the screen: few, blue and orange, which colour-blind eyes tell apart. No meaning hangs on them alone."""

from __future__ import annotations

from textual.theme import Theme

# What the widgets' own styles refer to, beside Textual's variables. A theme overrides what it likes.
VARIABLES = {
    "cockpit-text": "#d3d7de",
    "cockpit-strong": "#ffffff",
    "cockpit-dim": "#8b949e",
    "cockpit-rule": "#4a525e",
    "cockpit-chart": "#58a6e0",
    "cockpit-mark": "#e6a54a",
    "cockpit-warn": "#e6a54a",
    "cockpit-alarm": "#ff8c42",
}

DARK = Theme(
    name="cockpit-dark",
    primary="#58a6e0",
    secondary="#8b949e",
    accent="#e6a54a",
    warning="#e6a54a",
    error="#ff8c42",
    success="#58a6e0",
    foreground="#d3d7de",
    background="#12161c",
    surface="#171c24",
    panel="#1d2430",
    dark=True,
)
