"""All keys of the terminal interface. Bindings, footer, help, guide and texts are derived from this table.

One class per screen or dialog. Keys have Textual's names; texts show their printed names. Pure, without Textual.
"""

from __future__ import annotations

from enum import Enum

_NAMES = (
    "plus minus comma full_stop colon slash question_mark left_square_bracket right_square_bracket left right up down "
    "pageup pagedown home end escape enter equals_sign greater_than_sign less_than_sign shift+tab tab delete"
)
_PRINTED = "+ - , . : / ? [ ] ← → ↑ ↓ PgUp PgDn Home End Esc Enter = > < Shift+Tab Tab Delete"
_KEYS = dict(zip(_NAMES.split(), _PRINTED.split(), strict=True))
_NAMED = {printed: key for key, printed in _KEYS.items()}
# Keys that work on several screens.
_BASELINE, _FILTER, _HELP, _QUIT, _THEME = "b", "slash", "question_mark", "q", "T"


def key_name(key: str) -> str:
    """Return e.g. `+` for `plus`, `^S` for `ctrl+s`, `F1` for `f1`."""
    if key.startswith("ctrl+"):
        return "^" + key.removeprefix("ctrl+").upper()
    return _KEYS.get(key, key.upper() if key[1:].isdigit() else key)


def key_named(printed: str) -> str:
    """Return e.g. `plus` for `+`, `ctrl+s` for `^S`."""
    if printed.startswith("^"):
        return "ctrl+" + printed[1:].lower()
    return _NAMED.get(printed, printed if len(printed) == 1 else printed.lower())


class Shortcut(Enum):
    """A key with its action.

    `description` is its entry in lists of keys, `label` its word in the footer, where it is shown if at least
    `hosts` hosts are watched.
    """

    def __init__(self, key: str, action: str, description: str = "", label: str = "", hosts: int = 0) -> None:
        self.key, self.action, self.description, self.label, self.hosts = key, action, description, label, hosts

    def __str__(self) -> str:
        return key_name(self.key)


class SessionKey(Shortcut):
    """Keys of the session's actions, by name; each session has descriptions for its own actions."""

    TOGGLE = "space", "toggle"
    ANSWER = "k", "answer"
    KEEP = "y", "keep"
    UNFINISHED = "U", "unfinished"
    MORE = "plus", "more"
    LESS = "minus", "less"
    MARK = "m", "mark"
    CAPACITY = "C", "capacity"
    DURATIONS = "W", "durations"
    PROFILE = "O", "profile"
    BACK = "left", "back"
    FORWARD = "right", "forward"
    BACK_10 = "comma", "back_10"
    FORWARD_10 = "full_stop", "forward_10"
    BACK_TENTH = "pageup", "back_tenth"
    FORWARD_TENTH = "pagedown", "forward_tenth"
    HOME = "home", "home"
    END = "end", "end"
    PREVIOUS = "left_square_bracket", "previous"
    NEXT = "right_square_bracket", "next"
    FASTER = "greater_than_sign", "faster"
    SLOWER = "less_than_sign", "slower"


class AppKey(Shortcut):
    """Keys of every screen."""

    LEAVE = "ctrl+q", "leave", "quit"
    INTERRUPT = "ctrl+c", "leave(True)", "quit"
    REDRAW = "ctrl+l", "redraw", "redraw"
    SUSPEND = "ctrl+z", "suspend_process", "suspend; fg continues"
    COMMANDS = "ctrl+p", "command_palette", "search all commands", "commands"
    COMMAND_LINE = "colon", "command_line", "type a command or a time", "command"
    HELP = "f1", "help", "help"
    HELP_SIGN = _HELP, "help", "help"
    THEME = _THEME, "next_theme", "theme"


class MainKey(Shortcut):
    """Keys of the main screen."""

    TUNE = "t", "tune", "tune", "tune"
    LOAD = "equals_sign", "load", "load form", "load"
    VIEW = "v", "view", "view", "view"
    BASELINE = _BASELINE, "baseline", "baseline", "baseline"
    COMPARE = "c", "compare", "compare", "compare"
    ROUNDS = "r", "rounds", "rounds", "rounds"
    CHECK = "x", "check", "check", "check"
    GENERATORS = "L", "machines", "load generators"
    UNDO = "ctrl+u", "undo", "undo the last change"
    UP = "up", "up_or_down(-1)", "up", "scroll", 1
    DOWN = "down", "up_or_down(1)", "down"
    BACK = "escape", "back", "back", "back"
    THEME = _THEME, "app.next_theme", "theme"
    HELP = _HELP, "help", "help", "help"
    QUIT = _QUIT, "close", "quit", "quit"


class ViewKey(Shortcut):
    """Keys of the main screen for hosts, the list below each, and the time shown."""

    NEXT_HOST = "tab", "host(1)", "next host", "host", 2
    PREVIOUS_HOST = "shift+tab", "host(-1)", "previous host"
    ROOM = "p", "room", "larger", "full", 1
    NEXT_DETAIL = "d", "detail(1)", "next list of the host", "list", 1
    PREVIOUS_DETAIL = "D", "detail(-1)", "previous list of the host"
    FOCUS = "enter", "enter", "focus the list", "focus", 1
    METRICS = "a", "metrics", "all metrics", "metrics", 1
    FREEZE = "f", "freeze", "freeze", "freeze", 1
    FILTER = _FILTER, "filter", "filter", "filter", 1
    SORT = "s", "order", "sort", "sort", 1
    REVERSE = "S", "turn", "reverse the order", "reverse", 1
    FOLD = "z", "fold", "show each process", "unfold", 1
    PAGE_UP = "pageup", "page(-1)", "page up"
    PAGE_DOWN = "pagedown", "page(1)", "page down"
    TOP = "g", "far(-1)", "top"
    BOTTOM = "G", "far(1)", "bottom"
    CURSOR = "e", "cursor", "chart cursor", "cursor"
    ZOOM_IN = "i", "zoom(-1)", "zoom in", "zoom"
    ZOOM_OUT = "o", "zoom(1)", "zoom out"
    MARKERS = "l", "markers", "list of markers", "markers"
    BOARD = "A", "board", "evaluations of a search", "all evaluations"
    STACKS = "H", "stacks", "CPU profile", "CPU profile"


class ChartKey(Shortcut):
    """Keys of the chart cursor; they override the session's actions on the same keys."""

    LEFT = "left", "moved", "", "move"
    RIGHT = "right", "moved"
    PAGE_LEFT = "pageup", "moved"
    PAGE_RIGHT = "pagedown", "moved"
    PREVIOUS = "left_square_bracket", "to_marker", "", "marker"
    NEXT = "right_square_bracket", "to_marker"
    JUMP = "enter", "jump", "", "jump"
    LEAVE = "escape", "leave", "", "back"


class SearchKey(Shortcut):
    """Keys of the main screen during a search."""

    PAUSE = "P", "pause", "pause or resume the search", "pause"
    SKIP = "K", "skip", "skip the running evaluation", "skip"
    FINISH = "F", "finish", "end the search and prove the best", "finish and prove"


class TuningKey(Shortcut):
    """Keys of the tuning panel."""

    CLOSE = "escape", "close", "close", "close"
    UP = "up", "move(-1)", "previous knob"
    DOWN = "down", "move(1)", "next knob"
    SECTION = "tab", "section(1)", "next part", "history, actions"
    PREVIOUS_SECTION = "shift+tab", "section(-1)", "previous part"
    APPLY = "ctrl+s", "apply", "apply"
    GUARD = "ctrl+g", "guard", "guard", "guard"
    KEEP = "ctrl+y", "keep", "keep", "keep"
    UNDO = "ctrl+u", "undo", "undo", "undo last"
    ROUNDS = "ctrl+f", "rounds", "rounds", "rounds"
    REREAD = "ctrl+r", "reread", "read again", "read"
    FILTER = _FILTER, "filter", "filter", "filter"


class CompareKey(Shortcut):
    """Keys of the comparison of a segment."""

    LEFT = "left", "segment(-1)", "previous segment"
    RIGHT = "right", "segment(1)", "next segment"
    BASELINE = _BASELINE, "baseline", "baseline"
    METHOD = "m", "method", "method"


class StacksKey(Shortcut):
    """Keys of the CPU profile of a segment."""

    LEFT = "left", "move(-1, 0)", "function to the left", "move"
    RIGHT = "right", "move(1, 0)", "function to the right"
    UP = "up", "move(0, -1)", "caller"
    DOWN = "down", "move(0, 1)", "callee"
    ZOOM_IN = "enter", "zoom_in", "zoom in", "zoom"
    ZOOM_OUT = "o", "zoom_out", "zoom out", "out"
    SEARCH = _FILTER, "search", "highlight functions with a text", "search"
    DIFFERENCE = _BASELINE, "difference", "difference to the baseline, on or off", "baseline"
    COUNTERS = "w", "counters", "kernel counters instead of functions, or back", "counters"
    PREVIOUS = "left_square_bracket", "segment(-1)", "previous segment", "segment"
    NEXT = "right_square_bracket", "segment(1)", "next segment"
    HOST = "tab", "host", "next host", "host", 2
    PAGE_UP = "pageup", "page(-1)", "page up in the list of functions", "list"
    PAGE_DOWN = "pagedown", "page(1)", "page down in the list of functions"
    BACK = "escape", "back", "back", "back"


class StartKey(Shortcut):
    """Keys of the start screen."""

    FILTER = _FILTER, "filter", "filter by a text", "filter"
    NEW = "n", "begin('new')", "write a profile", "new profile"
    URL = "u", "begin('url')", "load a URL", "load a URL"
    DEMO = "j", "begin('demo')", "try it on the demo", "demo"
    DOCTOR = "h", "doctor", "doctor: check a profile", "doctor"
    HISTORY = "X", "app.history", "history of the checks of a profile", "checks"
    EDIT = "E", "edit", "edit a profile in $EDITOR", "edit"
    DELETE = "delete", "delete", "delete a profile"
    SECTION = "tab", "next_section", "go to the next section", "section"
    MORE = "R", "more_recordings", "list more or fewer recordings"
    ALL = "escape", "all", "show all again"
    HELP = _HELP, "app.help", "help", "help"
    QUIT = _QUIT, "app.leave", "quit", "quit"


class DialogKey(Shortcut):
    """Keys of dialogs; each dialog has some of them. QUIT closes dialogs without a text field."""

    CLOSE = "escape", "dismiss(None)", "close"
    QUIT = _QUIT, "dismiss(None)", "close"
    YES = "y", "dismiss(True)", "yes"
    SELECT = "space", "pick", "select or deselect"
    COMPLETE = "tab", "complete", "complete"
    ABOVE = "up", "app.focus_previous", "field above"
    BELOW = "down", "app.focus_next", "field below"


# An entry of the footer: a key, or several keys with the label of the first.
FooterEntry = Shortcut | tuple[Shortcut, ...]
_ZOOM = (ViewKey.ZOOM_IN, ViewKey.ZOOM_OUT)
_ARROWS = (MainKey.UP, MainKey.DOWN)
_LIST = (*_ARROWS, ViewKey.PAGE_UP, ViewKey.PAGE_DOWN)
FOOTER_LOAD: tuple[FooterEntry, ...] = (MainKey.LOAD,)
FOOTER_SCREEN: tuple[FooterEntry, ...] = (
    *(MainKey.TUNE, MainKey.COMPARE, MainKey.ROUNDS, MainKey.CHECK, MainKey.VIEW, ViewKey.CURSOR, ViewKey.NEXT_HOST),
    *(ViewKey.NEXT_DETAIL, ViewKey.FOCUS, ViewKey.ROOM, ViewKey.METRICS, MainKey.BASELINE),
    *(_ZOOM, ViewKey.MARKERS, ViewKey.STACKS),
)
FOOTER_CHARTS: tuple[FooterEntry, ...] = (
    *((ChartKey.LEFT, ChartKey.RIGHT), ChartKey.LEAVE, (ChartKey.PREVIOUS, ChartKey.NEXT), ChartKey.JUMP),
    *(_ZOOM, ViewKey.MARKERS, MainKey.VIEW),
)
FOOTER_SCROLL: tuple[FooterEntry, ...] = (_LIST, MainKey.BACK)
FOOTER_PROCESSES: tuple[FooterEntry, ...] = (ViewKey.FILTER, ViewKey.SORT, ViewKey.REVERSE, ViewKey.FOLD)
FOOTER_LIST: tuple[FooterEntry, ...] = (
    *(ViewKey.NEXT_DETAIL, ViewKey.FREEZE, ViewKey.ROOM, ViewKey.NEXT_HOST, ViewKey.METRICS),
)
# Keys with priority after the first entry: before the first change, and from then on.
FOOTER_FIRST = (MainKey.COMPARE, MainKey.TUNE, MainKey.LOAD, ViewKey.NEXT_DETAIL)
FOOTER_FIRST_CHANGED = (MainKey.COMPARE, MainKey.TUNE, MainKey.ROUNDS, MainKey.LOAD, ViewKey.NEXT_DETAIL)
FOOTER_STACKS: tuple[FooterEntry, ...] = (
    *((StacksKey.LEFT, StacksKey.RIGHT, StacksKey.UP, StacksKey.DOWN), StacksKey.ZOOM_IN, StacksKey.ZOOM_OUT),
    *(StacksKey.BACK, StacksKey.COUNTERS, StacksKey.SEARCH, StacksKey.DIFFERENCE, (StacksKey.PREVIOUS, StacksKey.NEXT)),
    *((StacksKey.PAGE_UP, StacksKey.PAGE_DOWN), StacksKey.HOST),
)
FOOTER_START: tuple[FooterEntry, ...] = (
    *(StartKey.FILTER, StartKey.SECTION, StartKey.NEW, StartKey.URL, StartKey.DEMO, StartKey.DOCTOR, StartKey.HISTORY),
    *(StartKey.EDIT, AppKey.COMMANDS),
)
FOOTER_START_ALWAYS: tuple[FooterEntry, ...] = (StartKey.HELP, StartKey.QUIT)


def key_names(*keys: Shortcut) -> str:
    """Return e.g. `i o`."""
    return " ".join(map(str, keys))


# Groups of keys that the help lists together.
SELECT, SCROLL = key_names(*_ARROWS), key_names(*_LIST)
MOVE = key_names(ChartKey.LEFT, ChartKey.RIGHT, ChartKey.PAGE_LEFT, ChartKey.PAGE_RIGHT)
MARKERS = key_names(ChartKey.PREVIOUS, ChartKey.NEXT)
DETAILS = key_names(ViewKey.NEXT_DETAIL, ViewKey.PREVIOUS_DETAIL)
SORT = key_names(ViewKey.SORT, ViewKey.REVERSE)
ZOOM = key_names(*_ZOOM)
FAR = key_names(ViewKey.TOP, ViewKey.BOTTOM)

# Help of the main screen's keys; line ends and indentation of a text are not significant.
HELP: dict[Shortcut | str, str] = {
    MainKey.TUNE: f"""tuning panel: active values; type new ones ({DialogKey.SELECT}: choose from a list), Enter shows
    the diff and its cost, Enter again applies them as one change. {TuningKey.GUARD} guard: the change is rolled back
    after 60 s unless {TuningKey.KEEP} keeps it. {TuningKey.UNDO} undoes the last change, {TuningKey.ROUNDS} measures
    the typed values in rounds, {TuningKey.SECTION}: earlier changes, actions;
    {TuningKey.FILTER}: only settings with a text""",
    MainKey.ROUNDS: f"""rounds: alternate the old and the new values of the last change under load, in random order and
    with a set-up before each, until there is a verdict. The maximum duration and the minimum detectable effect are
    shown first. {MainKey.ROUNDS} again stops the rounds and restores the initial values; otherwise the new values stay
    unless they are worse""",
    SessionKey.CAPACITY: """capacity: the highest arrival rate that holds limits such as p99 < 50ms, errors < 0.1%, with
    an interval, by a run of open load; again: stop the search""",
    SessionKey.PROFILE: """profile the CPU of the hosts' servers with perf, on or off; see `cockpit help
    profiling`""",
    SessionKey.DURATIONS: """users' traffic whose log has no durations: log them, by a change with test, reload and
    rollback""",
    MainKey.LOAD: """load form: connections or rate, also a ramp (changes a running load at once), duration, requests,
    load steps, URL, method, headers, body, think time and keep-alive of the next run""",
    MainKey.UNDO: "undo the last change; its diff is shown first",
    MainKey.VIEW: """latency over time as heat map, or of the segment as histogram""",
    ViewKey.CURSOR: f"""chart cursor: {MOVE} move it, {MARKERS} move it to a marker or a segment; the titles of the
    charts show the values there. {ChartKey.JUMP} shows the whole screen at that instant. {ChartKey.LEAVE} leaves. A
    click on a chart does the same""",
    "click": """keys in the footer and in dialogs; a segment (again: compare), a process, a title of the process table
    (sort, again: reverse), a host (again: more room), the verdict, the position bar of a replay (jump there)""",
    ZOOM: "zoom the charts in, or out to the whole session; the scale is at the right end of the axis",
    ViewKey.MARKERS: "list of markers; Enter moves the cursor to one",
    SELECT: f"select a segment of the runs table: latency shows that segment; {MainKey.BACK} follows the newest again",
    MainKey.BASELINE: "make the selected segment the baseline",
    MainKey.COMPARE: f"""compare the selected segment: verdict, every metric with its interval and method, differences
    of the settings, all metrics side by side, both latency distributions;
    {key_names(CompareKey.LEFT, CompareKey.RIGHT)} select another segment, {CompareKey.METHOD} shows the method""",
    MainKey.CHECK: """check 15 s of load (starts a run if none is active) against the thresholds and the last baseline
    of this load""",
    ViewKey.NEXT_HOST: "next host",
    DETAILS: "next, previous list below the host: processes, cores, disks, interfaces, each status page, each tail",
    ViewKey.METRICS: """all metrics of the host in the groups of sar and free: now, and mean and maximum of the selected
    segment""",
    ViewKey.ROOM: "one host on the whole screen, then all hosts side by side, then back",
    ViewKey.FOCUS: f"""focus the host's list; its header is highlighted: {SCROLL} {FAR} scroll. On the whole screen
    ({ViewKey.ROOM}) the list always has the focus. {MainKey.BACK} leaves""",
    ViewKey.FREEZE: "freeze the hosts: sort, filter and scroll the metrics of this instant; again to continue",
    SORT: f"sort processes by the next column; {ViewKey.REVERSE} reverses the order",
    ViewKey.FOLD: "show each of identical processes (×32), or fold them into one line again",
    ViewKey.FILTER: "show only processes with a text in PID or command; an empty text shows all",
    ViewKey.BOARD: "evaluations of a search: all of them, the best so far, the metric along each knob",
    ViewKey.STACKS: f"""CPU profile of the selected segment: call tree and hottest functions, with the difference to its
    baseline; {StacksKey.SEARCH} searches, {StacksKey.ZOOM_IN} zooms in""",
    MainKey.GENERATORS: "load generators: rate, CPU, lag and clock offset of each",
    MainKey.THEME: "next theme: dark, light, high contrast; the last choice is remembered",
    AppKey.COMMANDS: "search all commands; hosts, views, markers and themes too",
    AppKey.COMMAND_LINE: f"""type a command: set NAME VALUE, rate 500, connections 50, duration 60s, note TEXT,
    help TOPIC, or any command of {AppKey.COMMANDS} by its name or the start of it; or a time: 5:20, -30s,
    14:05. Tab completes""",
    AppKey.SUSPEND: "suspend: back to the shell, fg continues. Refused while load, a change or a study is running",
    f"{MainKey.HELP} {AppKey.HELP}": "this help: the focused pane first",
    f"{MainKey.QUIT} {AppKey.INTERRUPT}": "quit: the load stops, the recording is closed, the terminal is restored",
}
