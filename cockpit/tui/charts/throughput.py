"""Responses/s over time, with changes, failed requests, stalls and seconds with a saturated generator."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from textual.message import Message

from cockpit.analysis.failures import in_flight
from cockpit.analysis.time_ranges import TimeRange
from cockpit.analysis.timeline import all_markers
from cockpit.analysis.words.timeline import marker_sign, marker_text
from cockpit.model.load.seconds import LoadSecond
from cockpit.model.state import Segment
from cockpit.model.text import age, sanitize, share_words, si, size
from cockpit.session.controls import LoadStatus, PlaybackPhase, PlaybackStatus
from cockpit.tui.charts import braille
from cockpit.tui.charts.cursor import (
    Chart,
    axis_labels,
    marker_text_range,
    values_under_cursor,
    with_cells,
    with_cursor,
)
from cockpit.tui.charts.heat import VARIANT_ROLES
from cockpit.tui.charts.markers import (
    ASKED,
    RELOADING,
    bands_of,
    letters,
    letters_over_shades,
    markers_by_cell,
    shades,
    with_guides,
    with_marker_texts,
)
from cockpit.tui.charts.threshold_lines import is_rate_line, other_thresholds, threshold_cells
from cockpit.tui.charts.window import AXIS, ChartWindow
from cockpit.tui.draw_context import DrawContext
from cockpit.tui.key_names import action_key, no_load_words, start_hint
from cockpit.tui.key_table import MainKey, SessionKey, key_names
from cockpit.tui.terminal.styled_line import EMPTY, Line, Piece, centred, join_fitting, length, right, rule

# Signs on the time axis: saturated generator, failed requests.
_SATURATED = "▒"
_FAILED = "x"
# Signs on the time axis and in the chart: requests in flight and no response.
_STALLED, _ZERO = "■", "0"

# Minimum height (lines) for the state line.
_ROOMY = 10
# Maximum lines of the plot of which markers take none.
_FEW = 5

# Maxima of the axis; their quarters have two digits.
_STEPS = (1, 1.2, 1.4, 1.6, 1.8, 2, 2.4, 2.8, 3.2, 3.6, 4, 4.8, 5.6, 6.4, 7.2, 8)

# Kinds of markers whose sign the legend explains.
_KINDS = (
    ("gap", "host lost"),
    ("restart", "restart"),
    ("setting", "setting changed elsewhere"),
    ("worker", "load worker lost"),
)


def _reason(context: DrawContext) -> Piece:
    """Return why there are no requests."""
    if isinstance(context.status, LoadStatus) and context.status.failure:
        return sanitize(f"The load did not start: {context.status.failure}"), "alarm"
    return no_load_words(context) if context.extent else "No requests sent yet", "text"


class Throughput(Chart):
    """The throughput chart: one second per column of dots, or more if zoomed out."""

    class Resized(Message):
        """The width of the charts changed, whose time axis other panes share."""

    def on_resize(self) -> None:
        super().on_resize()
        self.post_message(self.Resized())

    def draw(self, context: DrawContext, width: int, height: int) -> list[Line]:
        state = context.state
        self.window = window = context.window(width)
        cursor = context.cursor(window)
        if not state.seconds:
            empty = centred([_reason(context), *start_hint(context)], width, height - 1)
            return [rule((("throughput", "title"),), (), width), *empty]
        columns = columns_of(context, window)
        title = _title(context, columns, window, width)
        # Below the plot are the axis, its labels and, in a tall pane, the state line.
        plot = height - 3 - (height >= _ROOMY)
        # An odd line is for the markers, so that the labels of half the maximum are exact.
        apart = plot > _FEW and plot % 2 == 1
        plot -= apart
        if plot < 1:
            return [title]
        most = max((_most(column) for column in columns if column), default=0.0)
        limits = [(result, result.limit or 0.0) for result in context.thresholds if is_rate_line(result)]
        # A limit far above the rate is drawn at the top, so that the rate stays readable.
        top = nice_ceiling(max([most, *(limit for _, limit in limits if limit <= 2 * most)]))
        markers = markers_by_cell(all_markers(state), window)
        signs, shaded = letters(markers, window), shades(bands_of(state), window)
        start, end = marker_text_range(context, window)
        shown = {at: marker for at, marker in markers.items() if start <= marker.t <= end and marker_text(marker)}
        duet = any(column and column.variants for column in columns)
        solid = [None] * len(columns) if duet else columns
        # Filled up to the minimum of several seconds, with dots at their mean and maximum.
        heights = [None if each is None else each.least if each.seconds > 1 else each.ended_rate for each in solid]
        marks = [(each.rate, each.most) if each and each.seconds > 1 else () for each in solid]
        rows = braille.area(heights, top, plot, marks)
        signed = variant_cells(columns, top, plot) if duet else failed_cells(columns, top, plot)
        for result, limit in limits:
            row = plot - 1 - (braille.dots(limit, top, plot * 4) - 1) // 4
            drawn = "".join(signed[row].get(at, (" ", ""))[0] for at in range(window.cells))
            signed[row] = {**signed[row], **threshold_cells(result, drawn)}
        lines = [with_cells(with_guides(row, signs), cells) for row, cells in zip(rows, signed, strict=True)]
        if cursor is not None:
            lines = [with_cursor(line, window.cell(cursor)) for line in lines]
        texts = with_marker_texts(letters_over_shades(shaded, signs), shown, window.cells)
        lines[0] = lines[0] if apart else _with_texts(lines[0], texts)
        lines = [(*_label(at, plot, top), *line) for at, line in enumerate(lines)]
        lines = [((" " * (AXIS + 1), ""), (texts, "mark")), *lines] if apart else lines
        lines.append(((right("0", AXIS), "dim"), ("└", "rule"), *_axis(state.segments, columns, window)))
        lines.append(((" " * (AXIS + 1), ""), *axis_labels(window, cursor, window.scale, _scale(window))))
        return [title, *lines, *([((" ", ""), *state_line(context, width - 1))] if height >= _ROOMY else [])]


def columns_of(context: DrawContext, window: ChartWindow) -> list[TimeRange | None]:
    """Return the load of each column of dots, two per cell; columns shorter than a second show their whole second, and
    those of an odd number of seconds the whole cell."""
    if window.span > 2 and window.span % 2:
        return [context.time_range(window.instant(at // 2), window.span) for at in range(window.cells * 2)]
    span = window.span / 2
    return [context.time_range(window.first + at * span, span if span > 1 else 0.0) for at in range(window.cells * 2)]


def _most(column: TimeRange) -> float:
    """Return the highest rate that is drawn."""
    return max(part.rate for part in column.variants) if column.variants else max(column.most, column.ended_rate)


def variant_cells(columns: Sequence[TimeRange | None], top: float, height: int) -> list[dict[int, Piece]]:
    """Return the cells of two lines, the rates of the variants of a duet, per line from the top."""
    nothing: list[float | None] = [None] * len(columns)
    drawn = []
    for at in (0, 1):
        marks = [(column.variants[at].rate,) if column and len(column.variants) > at else () for column in columns]
        drawn.append(braille.area(nothing, top, height, marks))
    rows: list[dict[int, Piece]] = []
    for first, second in zip(*drawn, strict=True):
        cells = {}
        for at, (left, right_) in enumerate(zip(first, second, strict=True)):
            if left != " " or right_ != " ":
                role = "strong" if left != " " != right_ else VARIANT_ROLES[left == " "]
                cells[at] = (braille.both(left, right_), role)
        rows.append(cells)
    return rows


def failed_cells(columns: Sequence[TimeRange | None], top: float, height: int) -> list[dict[int, Piece]]:
    """Return the cells with signs instead of dots, per line from the top: failed requests, stacked above the others,
    at least one sign per second with a failure; zero responses."""
    rows: list[dict[int, Piece]] = [{} for _ in range(height)]
    for at, column in enumerate(columns):
        if column and column.failed:
            last = braille.dots(column.ended_rate, top, height * 4) - 1
            first = min(last, braille.dots(column.good_rate, top, height * 4) + 1) if column.good_rate > 0 else 0
            for row in range(first // 4, last // 4 + 1):
                rows[height - 1 - row][at // 2] = (_FAILED, "failed")
        elif column and column.stalled == column.seconds:
            rows[-1].setdefault(at // 2, (_ZERO, "failed"))
    return rows


def nice_ceiling(value: float) -> float:
    """Return the next round value, which keeps the scale stable while the rate varies."""
    if value <= 0:
        return 1.0
    power = 10.0 ** (len(str(int(value))) - 1) if value >= 1 else 1.0
    return next((step * power for step in _STEPS if step * power >= value), 10 * power)


def _title(context: DrawContext, columns: Sequence[TimeRange | None], window: ChartWindow, width: int) -> Line:
    """Return the title with the values under the cursor; without a cursor, a legend and the current rate."""
    name: Line = (("throughput", "title"),)
    under = values_under_cursor(context, window)
    end = join_fitting(under, width - length(name) - 6) if under else _legend(context, columns, window)
    return rule(name, end, width)


def _legend(context: DrawContext, columns: Sequence[TimeRange | None], window: ChartWindow) -> Line:
    # If the room is short, the first entries are dropped.
    legend = [("reading …  ", "text")] if context.time_ranges.behind else []
    if any(window.first <= band.effect and band.requested < window.end for band in bands_of(context.state)):
        legend.append((f"{ASKED} change {RELOADING} reload  ", "dim"))
    if any(column and column.saturated for column in columns):
        legend.append((f"{_SATURATED} saturated  ", "warn"))
    now = context.second
    if any(column and column.failed for column in columns) and not (now and now.failed):
        legend.append((f"{_FAILED} failed  ", "failed"))
    if any(column and column.stalled for column in columns):
        legend.append((f"{_STALLED} stall  ", "failed"))
    signs = {
        marker.kind: marker_sign(marker) for marker in context.state.markers if window.first <= marker.t < window.end
    }
    legend += [(f"{signs[kind]} {words}  ", "warn") for kind, words in _KINDS if kind in signs]
    if now is None:
        return (*legend, ("no load now", "dim"))
    if now.variants:
        return (*legend, *_variant_rates(context, now))
    waiting, oldest = in_flight(context.state)
    if waiting and not now.failed:
        streams = f" on {now.connections} connections" if context.state.segments[-1].plan.http2 else ""
        legend.append((f"{waiting} in flight{streams} ({age(oldest)})  ", "text"))
    return (*legend, *_rate(now))


def _variant_rates(context: DrawContext, second: LoadSecond) -> Line:
    """Return the rates of both variants in the colours of their lines."""
    plan = context.state.segments[-1].plan
    pieces = [
        (f"{sanitize(variant.name)} {si(second.part(at).rate)}  ", role)
        for at, (variant, role) in enumerate(zip(plan.variants, VARIANT_ROLES, strict=True))
    ]
    return (*pieces, ("req/s", "text"))


def _rate(second: LoadSecond) -> Line:
    """Return the rate; if requests fail, the share of failures and the rate of expected responses."""
    if not second.failed or second.end <= second.start:
        return ((si(second.rate), "strong"), (" req/s", "text"))
    ended = second.completed + second.errors
    good = (ended - second.failed) / (second.end - second.start)
    failed = f"{_FAILED} {share_words(second.failed / ended)} failed  "
    return ((failed, "failed"), (si(good), "strong"), (" good/s", "text"))


def _scale(window: ChartWindow) -> str:
    return f"min · mean · max   {window.scale}" if window.span > 2 else window.scale


def _with_texts(line: Line, text: str) -> Line:
    """Return the first line of the plot with the letters and texts of the markers over it."""
    if cell_len(text) > len(text):
        return ((text, "mark"),)
    between = [char == " " != text[at - 1] and text[at + 1] != " " for at, char in enumerate(text[:-1])]
    return with_cells(line, {at: (char, "mark") for at, char in enumerate(text) if char != " " or (at and between[at])})


def _label(at: int, plot: int, top: float) -> Line:
    """Return the label of a line of the plot, the rate at its upper edge; only round parts of `top` have one."""
    parts = next((parts for parts in (4, 3, 2) if plot % parts == 0 and float(f"{top / parts:.2g}") == top / parts), 1)
    text = si(top * (plot - at) / plot) if at * parts % plot == 0 else ""
    return ((right(text, AXIS), "dim"), ("┤" if text else "│", "rule"))


def _axis(segments: Sequence[Segment], columns: Sequence[TimeRange | None], window: ChartWindow) -> Line:
    axis = ["─"] * window.cells
    for at, column in enumerate(columns):
        if column and column.saturated:
            axis[at // 2] = _SATURATED
        elif column and column.stalled and axis[at // 2] != _SATURATED:
            axis[at // 2] = _STALLED
        elif column and column.failed and axis[at // 2] == "─":
            axis[at // 2] = _FAILED
    for segment in segments:
        number = str(segment.number)
        place = _room_for(number, axis, window.cell(segment.start))
        if place is not None:
            axis[place : place + len(number)] = number
    return tuple((char, _AXIS_ROLES.get(char, "text")) for char in axis) or EMPTY


_AXIS_ROLES = {"─": "rule", _SATURATED: "warn", _FAILED: "failed", _STALLED: "failed"}


def _room_for(number: str, axis: Sequence[str], at: int) -> int | None:
    """Return a position for a segment's number that hides no other sign, at its start or one cell beside, or at its
    start among equal signs; None if there is no such position."""
    digits = len(number)
    if not 0 <= at <= len(axis) - digits:
        return None
    for place in (at, at + 1, at - 1):
        if 0 <= place <= len(axis) - digits and all(sign == "─" for sign in axis[place : place + digits]):
            return place
    around = axis[max(0, at - 1) : at + digits + 1]
    return at if len(around) > digits and len(set(around)) == 1 and not around[0].isdigit() else None


def state_line(context: DrawContext, width: int) -> Line:
    """Return a saturated generator, the end of the recording, or the last run's summary; otherwise the thresholds
    without a line on a chart, and facts about the responses of the segment."""
    second = context.second
    if second is not None and second.saturated:
        steps = (f"the generator limits the rate: less load ({SessionKey.LESS})", "or more processes (-w, --cpus)")
        return join_fitting((((words, "warn"),) for words in steps), width, ", ")
    if context.view.cursor is not None:
        return EMPTY
    if isinstance(context.status, PlaybackStatus) and context.status.phase is PlaybackPhase.END:
        return _with_keys(("end of the recording", "strong"), _AT_END, width)
    segment = context.segment
    if context.state.running is not None or segment is None or segment.end is None or context.view.segment is not None:
        return join_fitting([*other_thresholds(context), *(_facts(segment) if segment else ())], width)
    return _run_summary(segment, context, width)


def _facts(segment: Segment) -> list[Line]:
    """Return responses, their statuses, new connections/s and bytes/s of a segment."""
    counts = segment.counts
    if not counts.completed or segment.seconds <= 0:
        return []
    statuses = sorted(counts.statuses.items(), key=lambda each: -each[1])
    facts = [(si(counts.completed), "responses")]
    facts += [(share_words(number / counts.completed), f"{status}") for status, number in statuses]
    facts += [(f"{size(counts.bytes_received / segment.seconds)}/s", "received")]
    facts += [(size(counts.bytes_received / counts.completed), "each")] if counts.bytes_received else []
    facts += [(f"{counts.connect.count / segment.seconds:.0f}/s", "connects")]
    # One role, because each piece of the line costs about 40 bytes per second.
    return [((f"{words} {value}", "dim"),) for value, words in facts]


_AT_END = (
    *((str(SessionKey.HOME), "start"), (key_names(SessionKey.PREVIOUS, SessionKey.NEXT), "markers")),
    *((key_names(SessionKey.BACK, SessionKey.FORWARD), "step"), (str(MainKey.QUIT), MainKey.QUIT.label)),
)


def _run_summary(segment: Segment, context: DrawContext, width: int) -> Line:
    """Return how the last run ended, its responses and failures, and the keys for the next step."""
    counted = [each.counts for each in context.state.segments if each.run == segment.run and not each.warmup]
    failures = sum(counts.failed for counts in counted)
    failed = f", {si(failures)} failed" if failures else ""
    planned = segment.reason in ("completed", "stopped")
    how = segment.reason if planned else f"ended: {sanitize(segment.detail or segment.reason)}"
    begin = next((str(action_key(action)) for action in context.actions if action.name == "toggle"), "")
    keys = [(begin, "again")] if begin and context.extent is None else []
    keys += [(str(MainKey.TUNE), MainKey.TUNE.label)] if context.state.knobs and context.extent is None else []
    keys += [(str(MainKey.COMPARE), MainKey.COMPARE.label)] if len(context.state.segments) > 1 else []
    text = f"{_numbered(segment, context)} {how}: {si(sum(counts.completed for counts in counted))} responses{failed}"
    return _with_keys((text, "strong"), tuple(keys), width)


def _numbered(segment: Segment, context: DrawContext) -> str:
    """Return the numbers of the run's segments in the runs table."""
    numbers = [each.number for each in context.state.segments if each.run == segment.run and not each.warmup]
    if len(numbers) < 2:
        return f"segment {segment.number}"
    return f"segments {numbers[0]}–{numbers[-1]}"


def _with_keys(text: tuple[str, str], keys: tuple[tuple[str, str], ...], width: int) -> Line:
    parts: list[Line] = [((key, "key"), (f" {words}", "dim")) for key, words in keys]
    return join_fitting([(text,), *parts], width, "   ")
