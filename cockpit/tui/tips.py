"""Tooltips: the definition of the metric or pane under the mouse, as in the help. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.cells import cell_len

from cockpit.metrics.catalogue import PERCENTILES, SAMPLE_METRICS, entry, host_entry
from cockpit.tui.dialogs.help import READING
from cockpit.tui.key_table import AppKey, MainKey, SessionKey, ViewKey, key_names
from cockpit.tui.terminal.styled_line import Line

# Panes by widget class.
_PANES = {
    "TopLine": "Target, mode, session time, recording; gen: CPU of the load processes and their delay behind schedule. "
    "From 95% or 10 ms on, the generator limits the rate, not the server. "
    "Failures replace the target: no response, failed requests by kind or status, and since when.",
    "Throughput": "Complete responses/s, counted by the load processes. "
    f"{MainKey.HELP} explains the signs on the chart.",
    "Latency": "Share of the responses by latency over time, ms, with p50 and p99. "
    f"{MainKey.VIEW}: histogram of the segment.",
    "Runs": "One segment per run, and a new segment at each change under load. "
    f"{key_names(MainKey.UP, MainKey.DOWN)} select a segment, {MainKey.COMPARE} shows its verdict in full.",
    "VerdictStrip": "Did the change help? ▲ better, ▼ worse, ≈ equivalent, ? inconclusive, ! invalid; ▲? ▼? likely, "
    "while the load runs. Right of the zero line is better, ┊ are the margins of equivalence. "
    f"{MainKey.COMPARE}: reason and all metrics.",
    "HostPanes": "The servers: /proc, read over SSH once per second; nothing is installed there. "
    f"{ViewKey.NEXT_HOST}: next host.",
    "HostLines": f"The servers, one line each: /proc, read over SSH. {ViewKey.ROOM} shows one on the whole screen.",
    "TinyScreen": "The latest metrics of load and servers; a larger terminal shows charts.",
    "Position": f"Position in the recording. {AppKey.COMMAND_LINE} goes to a time, "
    f"{SessionKey.PREVIOUS} and {SessionKey.NEXT} go to the previous and next marker.",
    "Footer": f"Keys. {AppKey.COMMANDS} searches all commands.",
}
# Words of the screen for metrics of the catalogue.
_WORDS = {
    "lag": entry("generator.lag_p99"),
    "gen": entry("generator.cpu"),
    "Z": host_entry("processes.defunct"),
    "err": entry("failed.share"),
    "connect": entry("connect.p50"),
    "response": entry("response.mean"),
}
# Words in the names of READING that have another meaning on the screen.
_FILLERS = frozenset(["a", "all", "before", "every", "in", "name", "of", "on", "s", "that", "the"])
_WORD = re.compile(r"\S+")


def _glossary() -> dict[str, str]:
    titles = {metric.title: metric for metric in (*map(entry, ("rate", *PERCENTILES)), *SAMPLE_METRICS)}
    read: dict[str, str] = {}
    # The name of an entry as a whole is preferred to a word of a longer name.
    for name, text in sorted(READING.items(), key=lambda item: " " in item[0]):
        for word in re.split(r"[\s,]+", name):
            if re.search(r"\w\w|%|/s|^[a-z]", word) and word not in _FILLERS:
                read.setdefault(word, " ".join(text.split()))
    return {word: f"{metric.help[0].upper()}{metric.help[1:]}." for word, metric in (titles | _WORDS).items()} | read


_GLOSSARY = _glossary()


def tip(pane: str, lines: Sequence[Line], x: int, y: int) -> str | None:
    """Return the definition of the metric at cell (`x`, `y`) of `lines`, else of the pane."""
    if 0 <= y < len(lines):
        text = "".join(piece for piece, _ in lines[y])
        word = word_at(text, x)
        if word in _GLOSSARY:
            return f"{word}: {_GLOSSARY[word]}"
    return _PANES.get(pane)


def word_at(text: str, x: int) -> str:
    """Return the word at cell `x` of a line, without brackets; "" between words."""
    for word in _WORD.finditer(text):
        start = cell_len(text[: word.start()])
        if start <= x < start + cell_len(word[0]):
            return word[0].strip("─▸▴▾·:()[]")
    return ""
