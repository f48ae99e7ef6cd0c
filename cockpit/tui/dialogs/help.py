"""Every key in words, and how to read the figures."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from textwrap import wrap
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import ModalScreen

from cockpit.session.controls import Action
from cockpit.tui.action_keys import action_key_name
from cockpit.tui.dialogs.long_text import LongText
from cockpit.tui.terminal.styled_line import Line, fit

# Keys, then what they do; a heading begins with a dash.
Entry = tuple[str, str]

# Cells: of the whole, and of its first column.
_WIDTH, _NAME = 84, 14

_SCREEN_KEYS = (
    (
        "t",
        "the tuning panel: values in force; type others (space: pick from a list), Enter shows the diff and what it "
        "costs, Enter again applies it as one change. ^G guards: undone after 60 s unless ^Y keeps it. ^Z undoes the "
        "last one, ^F measures the typed values in rounds, Tab: earlier changes, actions",
    ),
    (
        "r",
        "rounds: old and new values of the last change in turn under load, in random order, each after its own set-up, "
        "until the verdict is in. The time and the smallest change that is found are announced first. r again stops "
        "them and the values of the start are active; otherwise the new ones are, unless they are worse",
    ),
    ("v", "latency as a histogram, as a heat map over time, or as a table of percentiles"),
    (
        "e",
        "examine the charts over time: ← → PgUp PgDn Home End move a cursor, [ ] take it to a marker or a row, what is "
        "under it is named beside the panes' titles. Enter shows all of the screen as it was then. Esc leads out "
        "again. A click on a chart does it too",
    ),
    ("i  o", "zoom the charts over time in, or out to the whole session; the right end of the axis says the scale"),
    ("l", "list of the markers with their words; Enter takes the cursor to one"),
    ("↑ ↓", "choose a row of the runs table: latency shows that row; Esc follows the newest again"),
    ("b", "make the chosen row the baseline that rows are compared with"),
    (
        "c",
        "compare the row looked at: the verdict, every figure with its interval and by which rules it was found, then "
        "what differs, all figures side by side, latencies over each other; ← → there go to another row",
    ),
    ("tab", "look at the next host"),
    ("d  D", "what stands below its figures: processes, cores, disks, interfaces, each status page, each tail"),
    ("w", "averages of every host over the row looked at, in the place of that"),
    ("p", "the host alone on the whole screen, then all hosts side by side, then as before"),
    (
        "Enter",
        "the arrows go into the detail of the host looked at, whose head lights up: ↑ ↓ PgUp PgDn g G scroll. On the "
        "whole screen (p) they are there already. Esc leads out again",
    ),
    ("f", "freeze the hosts: sort, filter and scroll what was so at that instant; again to go on"),
    ("s  S", "sort processes by the next column; S turns the order round"),
    ("/", "only processes with that text in their PID or command; an empty text shows all again"),
    ("T", "the next theme: dark, light, high contrast; the one chosen last is there the next time"),
    ("^P", "everything there is to do, by name: type a few letters; hosts, views, markers and themes are there too"),
    ("?  F1", "this help: what is in focus comes first"),
    ("q  ^C", "end: load stops, the recording is closed, the terminal is as before"),
)

READING = (
    (
        "throughput",
        "Replies a second. A letter with a thread below it is a change, ▸ a note, ! above the chart a lost host, "
        "R a restart of the server's parent process, ± the load altered by hand; "
        "a number on the time axis is where that row of the runs table begins (one cell beside, or left out, where it "
        "would hide ▒ or x). No dots: no load was running.",
    ),
    ("▒ on the axis", "In that second the load generator was the bottleneck, not the server: do not trust it."),
    ("x on the axis", "In that second some requests failed. Zoomed out, one such second marks its cell."),
    (
        "cell",
        "How much time a cell of the charts is stands at the right end of the axis. From 4 s on each column is several "
        "seconds: solid up to the least replies a second among them, a dot for the mean, a dot for the most.",
    ),
    (
        "heat map",
        "Latency upwards, ms from where a line begins, time as in the chart above. ░ ▒ ▓ █: which share of the "
        "replies of that time took so long. ─ is p50, ═ is p99, ≡ both. > and <: that end holds what is beyond, too.",
    ),
    (
        "service",
        "Time from the first byte sent (or the connection begun) to the last byte read. A closed load waits for each "
        "reply before it sends the next request, so users of a busier site would wait longer than this says.",
    ),
    (
        "░ ▓",
        "Above and behind the chart: a change is carried out. ░ from its request, ▓ from its reload until the server "
        "works by it (its letter) or everything is back.",
    ),
    (
        "verdict",
        "The row vs the one before the change, in the same run; a new run vs the baseline. ▲ better, ▼ worse: the "
        "rate, else the metric that is named. ≈ equivalent. ? inconclusive; wait: keep the load running. ≥ ≤: at "
        "least and at most, because the generator was saturated. ≠ load, altered, gen-sat, lost, errors: invalid; c "
        "says why.",
    ),
    (
        "├─●─┤",
        "In the verdict: the effect on a metric with its interval; left of the zero line is worse, right is better. "
        "┊ ┊: margins of equivalence; an interval between them is equivalent. ○: first impression, no interval yet. "
        "◂ ▸: beyond the scale, whose ends are named below. ▲? ▼?: likely; the bar shows how long to wait.",
    ),
    ("born/s", "Processes born a second while the row was counted, all hosts together."),
    ("cpu %  tps …", "Averages of the servers over the row, of several hosts as web1/app1. w tells all of them."),
    ("start, end", "In the averages: the first and the last 5 s of the row. mem alone is at the row's end."),
    ("gen!", "Beside a row: the generator was saturated during part of it."),
    ("short", "Beside a row: it lasted less than five seconds."),
    ("stop", "Beside a row: stopped by hand before its end."),
    ("part", "Beside a row: a load worker was lost, the figures are not whole."),
    ("failed", "Beside a row: the run could not be carried out; the line below the table says why."),
    ("us sy io st id", "CPU of all cores as sar -u: user (nice with it), system, waiting for disks, stolen, idle."),
    ("io", "As sar -b: transfers a second, of them reads and writes; 512-byte blocks read and written a second."),
    ("mem", "As free -m. “avail” is what programs could still get."),
    (
        "net",
        "As sar -n DEV, all interfaces but the loopback together. err/s and drop/s stand there where there are any.",
    ),
    ("run, blocked", "Tasks that were running, and those that waited for a disk, at that instant."),
    (
        "rss, own",
        "Memory of all processes shown. rss counts what they share (libraries, shared memory) once in every process, "
        "so its sum can be many times what is really used and grow while free memory stays. own counts only what no "
        "other shares: the truth lies between the two, near own plus one share. pss, where it may be read, is that "
        "truth: each shared page counted once, by parts.",
    ),
    (
        "≤ 4 unseen",
        "The host made so many more processes and threads in that second than were seen to be born: of the processes "
        "shown, no more than these can have come and gone between two samples.",
    ),
    ("%CPU", "Of one core, over the last interval (ps shows the average over a process's life)."),
    (
        "+ before a PID",
        "The process was not there one sample ago. Orange: defunct, its parent has not fetched its end.",
    ),
    ("probe, rtt", "CPU time the probe takes on the host for a sample; round trip from asking to the answer."),
    ("every 2 s", "Beside a host: samples come less often than asked, because the line is slow."),
    (
        "SLOW, LOST",
        "SLOW: connected, but the answer is overdue. LOST: no connection; it is tried again every few seconds.",
    ),
    ("REFUSED", "The host or its key was turned down, for the reason that stands there. A changed key always is."),
    (
        "hidepid",
        "/proc of that host hides the processes of others from this user: what is not shown may well be there.",
    ),
    ("LOOKING BACK", "The past of this session; load and recording go on meanwhile. End goes back to live."),
    (
        "lite",
        "Beside the clock: a frame every two seconds and no trends beside figures, asked for or because the line to "
        "this terminal is slow. Nothing is lost of the figures or the recording. --no-lite: all frames all the same.",
    ),
    ("paused", "A tail that one looks back in stands still; Esc goes on with the newest line."),
    ("skipped", "Lines of a tail that came faster than they can be kept."),
)


class HelpScreen(ModalScreen[None]):
    """Scrolls; any of its keys closes it. First the keys of what is in focus, then the rest."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,q,enter", "dismiss(None)", "close"),
    ]
    DEFAULT_CSS = """
    HelpScreen { align: center middle; background: transparent; }
    HelpScreen > LongText {
        width: 84; max-width: 100%; max-height: 100%;
        padding: 0 1; border: solid $cockpit-chart; background: $surface; border-title-color: $cockpit-strong;
    }
    """

    def __init__(self, entries: Sequence[Entry], title: str = "keys") -> None:
        super().__init__()
        self.entries = entries
        self.heading = title

    def compose(self) -> ComposeResult:
        room = LongText(lambda width: lines_of(self.entries, width))
        room.border_title, room.border_subtitle = Content(self.heading), "↑ ↓ scroll   Esc close"
        room.fit(min(_WIDTH, self.app.size.width))
        yield room


def help_entries(actions: Sequence[Action], focus: Sequence[Entry] = (), title: str = "") -> list[Entry]:
    """The keys of what is in focus, which `title` names, all keys of session and screen, then how to read figures."""
    first = [(f"— {title}", ""), *focus, ("", ""), ("— everywhere", "")] if focus else []
    entries = first + [(action_key_name(action), action.label) for action in actions]
    return [*entries, *_SCREEN_KEYS, ("", ""), ("— figures", ""), *READING]


def lines_of(entries: Sequence[Entry], width: int) -> list[Line]:
    """In two columns, `width` cells; an entry that begins with a dash is a heading."""
    lines: list[Line] = []
    for name, words in entries:
        if name.startswith("— "):
            lines.append(((" " * (_NAME + 2), ""), (name.removeprefix("— "), "heading")))
            continue
        names, told = wrap(name, _NAME), wrap(words, max(10, width - _NAME - 2))
        for left, right in zip_longest(names or [""], told or [""], fillvalue=""):
            lines.append(((fit(left, _NAME) + "  ", "strong"), (right, "")))
    return lines
