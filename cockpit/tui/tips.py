"""What a figure under the mouse is, and where it comes from: the same words as in the help. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.cells import cell_len

from cockpit.tui.dialogs.help import READING
from cockpit.tui.terminal.styled_line import Line

# Panes, by the name of their widget.
_PANES = {
    "TopLine": "What is loaded, in which mode, session time, whether it is recorded; gen: CPU of the load processes "
    "and how late they come to what is due. Above 95 %, or 10 ms late, the generator and not the server sets the pace.",
    "Throughput": "Whole replies a second, as the load processes count them. ? explains the signs on the chart.",
    "Latency": "Latency of the row that is looked at: every reply in it, at three digits. v: other views, "
    "over time among them.",
    "Runs": "A row a run, and a new one at each change under load. ↑ ↓ choose one, c tells its verdict in full.",
    "VerdictStrip": "Did it help? ▲ better, ▼ worse, ≈ equivalent, ? inconclusive, ! invalid; ▲? ▼? likely, while the "
    "load goes on. Right of the zero line is better, ┊ are the margins of equivalence. c: why, and all metrics.",
    "HostPanes": "The servers, as the probe reads /proc over SSH: once a second, nothing installed. tab: the next one.",
    "HostLines": "The servers, a line each, as the probe reads /proc over SSH. p shows one on the whole screen.",
    "TinyScreen": "The newest figures of load and servers; a larger terminal shows their charts.",
    "Position": "Where in the recording the screen is. : jumps, [ and ] go from mark to mark.",
    "Footer": "Keys. ^P finds everything there is to do by name.",
}
_MORE = {
    "p50": "Half of the replies took no longer than this (ms).",
    "p90": "90 % of the replies took no longer than this (ms).",
    "p99": "99 % of the replies took no longer than this (ms): the tail that one user in a hundred sees.",
    "p99.9": "99.9 % of the replies took no longer than this (ms).",
    "max": "The slowest reply (ms).",
    "err": "Requests that failed: no whole reply (refused, reset, timed out), or another than was expected.",
    "req/s": "Whole replies a second, over the row.",
    "lag": "How late the load processes send what is due (99th percentile).",
    "gen": "CPU of each load process, per cent of a core.",
    "connect": "From the beginning of a connection until it stands (with TLS: its handshake too).",
    "response": "From the instant a request was due to its last byte: what a user would have waited, queues included.",
    "load": "Tasks that run or wait for a disk, averaged over 1, 5 and 15 minutes.",
    "procs": "Processes whose name matches `processes` of the host. + and -: born and died a second; Z: defunct.",
    "Z": "Defunct: ended, but their parent has not fetched their end yet.",
    "STAT": "As ps prints it: R running, S sleeping, D waiting for a disk, Z defunct; N low priority.",
    "VSZ": "Address space of the process; most of it need not be in memory.",
    "RSS": "Memory of the process that is in RAM, what it shares with others included.",
}
_WORD = re.compile(r"\S+")


def _glossary() -> dict[str, str]:
    """Every name of the help's list, each word of it by itself."""
    found: dict[str, str] = {}
    for name, words in READING:
        for word in re.split(r"[\s,]+", name):
            if re.search(r"\w\w|%|/s|^[a-z]", word):
                found.setdefault(word, words)
    return found | _MORE


_GLOSSARY = _glossary()


def tip(pane: str, lines: Sequence[Line], x: int, y: int) -> str | None:
    """What to say of cell (`x`, `y`) of a pane that shows `lines`: of the figure there, else of the pane."""
    if 0 <= y < len(lines):
        text = "".join(piece for piece, _ in lines[y])
        word = word_at(text, x)
        if word in _GLOSSARY:
            return f"{word}: {_GLOSSARY[word]}"
    return _PANES.get(pane)


def word_at(text: str, x: int) -> str:
    """The word that covers cell `x` of a line, without what encloses it; "" between words."""
    for found in _WORD.finditer(text):
        start = cell_len(text[: found.start()])
        if start <= x < start + cell_len(found[0]):
            return found[0].strip("─▸▴▾·:()[]")
    return ""
