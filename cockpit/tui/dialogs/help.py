"""The help screen: all keys, and definitions of the metrics."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content

from cockpit.metrics.catalogue import LATENCIES
from cockpit.session.controls import Action
from cockpit.tui.dialogs.long_text import LongText
from cockpit.tui.dialogs.prompt import Dialog
from cockpit.tui.key_names import action_key, close_binding, key_hints
from cockpit.tui.key_table import HELP, DialogKey, MainKey, SessionKey, Shortcut, ViewKey
from cockpit.tui.terminal.styled_line import Line, fit

# Keys or metric, and description; a heading starts with a dash.
HelpEntry = tuple[str, str]

# Width of the page and of its first column in cells.
_WIDTH, _NAME = 84, 14


# Definitions of metrics and signs; line ends and indentation of a text are not significant.
READING = {
    "throughput": """Responses/s. A letter with a line below it is a change, ▸ a note, ! above the chart a lost host, R
    a restart of the server's parent process, ± a manual change of the load; a number on the time axis is the start of
    that segment of the runs table (one cell beside, or left out, if it would hide another sign). No dots: no load was
    running. Failed requests are stacked above the others as x. When the load stops, the charts stop.""",
    "NO RESPONSE": """Requests are in flight, and none was answered for the time shown: the server is stopped, or its
    queue is full. The latencies shown are of earlier responses.""",
    "TARGET DOWN": """All requests of the newest second failed without a response; since: time of the run. Counts by
    kind or status are of the segment. FAILING: some requests failed, or all with an unexpected status.""",
    "in flight": "Requests sent and not answered yet; in brackets the age of the oldest.",
    "■ stall, 0": "A second with requests in flight and no response: ■ on the axis, 0 in the chart.",
    "0:07/0:10": "Elapsed and planned time of the run; only the elapsed time if the run has no planned end.",
    "✓ ✗": """A threshold of the profile holds, or failed, in this run so far; the dashed line is its limit. ?: no data
    yet. Thresholds without a line are below the chart, and failed ones in the header.""",
    "▒ on the axis": "In that second the load generator was the bottleneck, not the server: ignore its values.",
    "x": """Failed requests: in the chart above the others, on the axis below their second. Zoomed out, a single such
    second marks its cell. Latencies in red: the segment has failed requests, which are
    missing there or were fast.""",
    "good/s": "While requests fail: expected responses/s of the newest second, beside the share of failed requests.",
    "cell": """The time per cell of the charts is at the right end of the axis. From 4 s/cell on, a column covers
    several seconds: solid up to their minimum of responses/s, a dot for the mean, a dot for the maximum.""",
    "heat map": """Latency upwards, ms at the lower edge of each line; time as in the chart above. ░ ▒ ▓ █: share of the
    responses at that time with that latency. ─ is p50, ═ is p99, ≡ both. > and <: the cell at the edge includes
    everything beyond. p99 is amber near the limit of its threshold, red beyond it. The line “fail” marks failed
    requests (x) and seconds without any response (■).""",
    "service": f"""{LATENCIES["service"].capitalize()}. Closed load waits for each response before it sends the next
    request, so users of a busier site would wait longer.""",
    "╌ ━": """In the first line of the chart: a change in progress. ╌ from its request, ━ from its reload until it is
    active (its letter) or rolled back.""",
    "verdict": f"""The segment vs the segment before the change, in the same run; a new run vs the baseline. ▲ better, ▼
    worse: the rate, or the named metric. ≈ equivalent. ? inconclusive; wait: keep the load running. ≥ ≤: at least and
    at most, because the generator was saturated or other programs took CPU. ≠ load, lost, errors: invalid;
    {MainKey.COMPARE} shows the reason.""",
    "├─●─┤": """In the verdict: the effect on a metric with its interval; left of the zero line is worse, right is
    better. ┊ ┊: margins of equivalence; an interval between them is equivalent. ○: first estimate, no interval yet. ◂
    ▸: beyond the scale, whose ends are labelled below. ▲? ▼?: likely; the bar shows the time still needed.""",
    "spawns": "Processes spawned per second during the segment, sum of all hosts.",
    "%busy tps …": f"""Averages of the servers over the segment; several hosts as web1/app1. {ViewKey.METRICS} shows
    the averages of all metrics.""",
    "2 notes": f"""Reasons to read the segment's metrics with care, e.g. a saturated generator: amber if one of them
    alters how a metric is read. {MainKey.COMPARE} shows them.""",
    "us sy io st id": "CPU of all cores as sar -u: user (with nice), system, waiting for disks, stolen, idle.",
    "io": "As sar -b: transfers/s, read and write transfers/s; 512-byte blocks read and written per second.",
    "mem": "As free -m. avail: memory that programs can still allocate without swapping.",
    "net": "As sar -n DEV, sum without the loopback and virtual interfaces. err/s and drop/s are shown if not 0.",
    "load": "Tasks that run or wait for a disk, averaged over 1, 5 and 15 minutes.",
    "run, blocked": "Running tasks, and tasks that wait for a disk, at the time of the sample.",
    "procs": "Processes whose name matches `processes` of the host. + and - are spawned/s and exited/s, Z is defunct.",
    "rss, rss−shr": """Memory of all processes shown. rss counts shared pages (libraries, shared memory) in every
    process: the sum can be many times the memory in use. rss−shr leaves out file-backed and shared-memory pages, but
    pages shared since fork still count in every process. pss divides each shared page by its users, and its sum is
    right: prefer it if it is shown (it needs the same user or root).""",
    "≤ 4 unseen": """At most this many processes were spawned and exited between two samples: the host created more
    processes and threads than the samples show.""",
    "4 of others excluded": """Processes of servers of the same name that do not listen on the target's port; not
    counted.""",
    "all servers of that name": """The server that listens on the target's port could not be determined: all are
    counted.""",
    "×32": """32 identical processes (parent, user, command) in one line: %CPU as minimum–maximum, memory as their mean,
    %MEM, THR and TIME summed, START and AGE of the oldest. R×3: three of them are running.""",
    "STAT": "As ps prints it: R running, S sleeping, D waiting for a disk, Z defunct; N low priority.",
    "USER, PSS": """The effective user; resident memory with each shared page divided by its users, read rarely. –:
    unknown.""",
    "VSZ": "Address space of the process; most of it need not be in memory.",
    "RSS": "Memory of the process in RAM, shared pages included.",
    "%CPU": "Per cent of one core over the last interval (ps shows the average over a process's life).",
    "+ before a PID": "The process is new in this sample. Orange: defunct, not yet reaped by its parent.",
    "probe, rtt": "CPU time of the probe on the host per sample; round-trip time of request and answer.",
    "every 2 s": "Beside a host: samples are less frequent than requested, because the connection is slow.",
    "SLOW, LOST": "SLOW: connected, but the answer is overdue. LOST: no connection; cockpit retries every few seconds.",
    "REFUSED": "The host or its key was refused for the reason shown. A changed key is always refused.",
    "hidepid": "/proc of the host hides processes of other users: some processes might not be shown.",
    "LOOKING BACK": f"The past of this session; load and recording continue. {SessionKey.END} returns to live.",
    "lite": """Beside the clock: one frame every two seconds and no trends, as requested or because the connection to
    this terminal is slow. Metrics and recording are complete. --no-lite: all frames.""",
    "paused": f"You scrolled back in a tail; {MainKey.BACK} continues with the newest line.",
    "skipped": "Lines of a tail that arrived too fast to be stored.",
}


class HelpScreen(Dialog[None]):
    """A scrollable help page; the keys of the focused pane are first."""

    BINDINGS: ClassVar[list[BindingType]] = [close_binding(MainKey.HELP, "enter")]
    DEFAULT_CSS = "HelpScreen { background: $background; } HelpScreen > LongText { width: 84; }"

    def __init__(self, entries: Sequence[HelpEntry], title: str = "keys") -> None:
        super().__init__()
        self.entries = entries
        self.heading = title

    def compose(self) -> ComposeResult:
        room = LongText(lambda width: lines_of(self.entries, width))
        room.border_title = Content(self.heading)
        room.border_subtitle = key_hints(("↑ ↓", " scroll"), (DialogKey.CLOSE, " close"))
        room.fit(min(_WIDTH, self.app.size.width))
        yield room


def help_entries(actions: Sequence[Action], focus: Sequence[Shortcut | str] = (), title: str = "") -> list[HelpEntry]:
    """Return the keys `focus` of the focused pane (named `title`), all other keys, then the metrics."""
    shown = [(str(key), HELP[key]) for key in focus]
    first = [(f"— {title}", ""), *shown, ("", ""), ("— everywhere", "")] if shown else []
    entries = first + [(str(action_key(action)), action.label) for action in actions]
    entries += [(str(key), words) for key, words in HELP.items() if key not in focus]
    return [*entries, ("", ""), ("— metrics", ""), *READING.items()]


def lines_of(entries: Sequence[HelpEntry], width: int) -> list[Line]:
    """Lay entries out in two columns, `width` cells wide; an entry that starts with a dash is a heading."""
    lines: list[Line] = []
    for name, words in entries:
        if name.startswith("— "):
            lines.append(((" " * (_NAME + 2), ""), (name.removeprefix("— "), "title")))
            continue
        for left, right in zip_longest(_wrapped(name, _NAME), _wrapped(words, width - _NAME - 2), fillvalue=""):
            lines.append(((fit(left, _NAME) + "  ", "strong"), (right, "")))
    return lines


def _wrapped(text: str, width: int) -> list[str]:
    """Break between words; several times as fast as `textwrap`, which is most of the time that help takes to open."""
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + len(word) >= width:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".lstrip()
    return lines
