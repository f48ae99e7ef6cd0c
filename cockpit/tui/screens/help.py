"""Every key in words, and how to read the figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from cockpit.session.controls import Action
from cockpit.tui.words import key_name

_SCREEN_KEYS = (
    ("t", "open the tuning panel: values in force, change them, take changes back"),
    ("v", "latency as a histogram or as a table of percentiles"),
    ("↑ ↓", "choose a row of the runs table: latency shows that row; Esc follows the newest again"),
    ("b", "make the chosen row the baseline that “vs base” compares with"),
    ("tab", "look at the next host"),
    ("p", "the host alone, with as many of its processes as fit; again to go back"),
    ("s", "sort processes by PID or by %CPU"),
    ("?", "this help"),
    ("q  ^C", "end: load stops, the recording is closed, the terminal is as before"),
)

_READING = (
    (
        "throughput",
        "Replies a second. A letter with a thread below it is a change, ▸ a note, ! above the chart a lost host; "
        "a number on the time axis is where that row of the runs table begins. No dots: no load was running.",
    ),
    ("▒ on the axis", "In that second the load generator was the bottleneck, not the server: do not trust it."),
    ("x on the axis", "In that second some requests failed."),
    (
        "service",
        "Time from the first byte sent (or the connection begun) to the last byte read. A closed load waits for each "
        "reply before it sends the next request, so users of a busier site would wait longer than this says.",
    ),
    (
        "vs base",
        "Plain difference of the two rates. One run against one other proves nothing yet: repeat both. "
        "“≠ load” means that the two rows were not under the same load.",
    ),
    ("births/s", "Processes born a second while the row was counted, all hosts together."),
    ("gen!", "Beside a row: the generator was saturated during part of it."),
    ("short", "Beside a row: it lasted less than five seconds."),
    ("stop", "Beside a row: stopped by hand before its end."),
    ("part", "Beside a row: a load worker was lost, the figures are not whole."),
    ("failed", "Beside a row: the run could not be carried out; the line below the table says why."),
    ("us sy io st id", "CPU of all cores as sar -u: user (nice with it), system, waiting for disks, stolen, idle."),
    ("io", "As sar -b: transfers a second, of them reads and writes; 512-byte blocks read and written a second."),
    ("mem", "As free -m. “avail” is what programs could still get."),
    ("rss, own", "Memory of all processes shown: rss counts shared pages once per process, own leaves them out."),
    ("%CPU", "Of one core, over the last interval (ps shows the average over a process's life)."),
    ("+ before a PID", "The process was not there one sample ago."),
)


class HelpScreen(ModalScreen[None]):
    """Scrolls; any of its keys closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,q,enter", "dismiss(None)", "close"),
    ]
    DEFAULT_CSS = """
    HelpScreen { align: center middle; background: transparent; }
    HelpScreen > VerticalScroll {
        width: 84; max-width: 100%; height: auto; max-height: 100%;
        padding: 0 1; border: solid $cockpit-chart; background: $surface;
    }
    HelpScreen Static { width: 1fr; }
    """

    def __init__(self, actions: Sequence[Action]) -> None:
        super().__init__()
        self.actions = actions

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Static(help_table(self.actions))


def help_table(actions: Sequence[Action]) -> Table:
    """All keys of the session and of the screen, then how to read what is shown."""
    table = Table.grid(padding=(0, 2))
    table.add_column(width=14)
    table.add_column()
    entries = [
        *((" ".join(key_name(key) for key in action.keys), action.label) for action in actions),
        *_SCREEN_KEYS,
        ("", ""),
        *_READING,
        ("", ""),
        ("Esc", "closes this"),
    ]
    for name, words in entries:
        table.add_row(Text(name, style="bold"), Text(words))
    return table
