"""A host as a pane: title, condition, metrics with the names of sar and free, and a list below."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from textwrap import wrap

from cockpit.model.events import HostCondition
from cockpit.model.host.state import HostPoint, HostState, TailPane
from cockpit.model.text import clock, count_text, milliseconds, sanitize, share_words, si, size
from cockpit.tui.draw_context import PROCESSES, SAR, Detail, DrawContext, details_of, name_of
from cockpit.tui.hosts.details import draw_detail
from cockpit.tui.hosts.history import STEADY, history_lines
from cockpit.tui.hosts.processes import IN_FULL, entries, percent, process_details
from cockpit.tui.hosts.tails import brief_tail, draw_tail
from cockpit.tui.terminal.styled_line import (
    EMPTY,
    DrawnList,
    Line,
    Piece,
    Spot,
    clip,
    fit,
    join_fitting,
    length,
    pairs,
    right,
    rule,
)

# Lines of a host without a list: title and seven lines of metrics.
FIGURES = 8
# Minimum lines of a host with a list; of its metrics, and their share of a taller pane.
WHOLE = 12
MIN_METRICS = 7
_METRICS = 0.55
# Lines of a pane per line of the CPU's chart, with tails and without.
_PER_CPU_LINE = (9, 5)

_MIB = 1024 * 1024

# Minimum width (cells) for all metrics of sar.
_ROOMY = 72

# Seconds without an answer after which possible causes are shown.
_LONG = 10.0

# Minimum lines of all metrics below other lists.
_METRIC_LINES = 8
# Minimum lines of a tail below the list; step in which the lines for processes change.
_STRIP = 2
# Maximum lines of a message in a tail below the list.
_WRAPPED = 3
_STEP = 4


def host_pane(host: HostState, context: DrawContext, width: int, height: int) -> DrawnList:
    """Return the parts of the host that fit: title, metrics, condition, list, tails; if there is room, details of the
    first process and more lists."""
    lines = [title(host, context, width)]
    head = Spot(0, 0, width, "open_host")
    role = "" if host.condition == HostCondition.UP else "dim"
    if context.detail(host) == SAR:
        lines += condition(host, context, width)
        below = draw_detail(host, context, context.detail(host), role, width, height - len(lines))
        return below._replace(lines=[*lines, *below.lines][:height], spots=(head,))
    if host.point:
        most = max(MIN_METRICS, round(_METRICS * height))
        lines += metric_lines(host, context, role, width, most, height // _PER_CPU_LINE[not host.tails])
    lines += [*condition(host, context, width), *_unprofiled(host, width)]
    if host.point is None and host.condition in (HostCondition.UP, HostCondition.CONNECTING):
        lines += _waiting(host, context, width)
    room = height - len(lines)
    tails = [tail for at, tail in enumerate(host.tails) if Detail("tail", at) != context.detail(host)]
    reserved = room // 3 if tails else 0
    needed = min(room - reserved, _list_height(host, context) or room)
    more = _more(host, context, role, width, room - reserved - needed)
    strips = _strips(tails, width, room - needed - len(more))
    below = draw_detail(host, context, context.detail(host), role, width, room - len(strips) - len(more))
    left = room - len(strips) - len(below.lines) - len(more)
    listed = entries(host, context.view) if context.detail(host) == PROCESSES and below.lines else []
    facts = process_details(listed[0], width)[1 : left + 1] if listed and not context.view.list_focused else []
    gap = [EMPTY] * (left - len(facts)) if strips else []
    spots = (head, *(spot.moved(0, len(lines)) for spot in below.spots))
    return below._replace(lines=[*lines, *below.lines, *facts, *more, *gap, *strips][:height], spots=spots)


def _more(host: HostState, context: DrawContext, role: str, width: int, room: int) -> list[Line]:
    """Return the other lists that fit below the chosen one, each with a title, and the start of all metrics."""
    lines: list[Line] = []
    for detail in (*details_of(host), SAR):
        without_data = detail.kind in ("disks", "nets") and not getattr(host, detail.kind)
        if detail == context.detail(host) or detail.kind in ("tail", "processes") or without_data:
            continue
        left = room - len(lines) - 1
        drawn = draw_detail(host, context, detail, role, width, left if detail == SAR else room).lines
        if (_METRIC_LINES if detail == SAR else 2) <= len(drawn) <= left:
            lines += [rule(((name_of(detail), "title"),), (), width), *drawn]
    return lines


def _unprofiled(host: HostState, width: int) -> list[Line]:
    """Return why the host cannot be profiled."""
    if host.profiler is None or host.profiler.condition != "failed":
        return []
    text = f"not profiled: {sanitize(host.profiler.detail)}"
    return [((part, "warn"),) for part in wrap(text, max(12, width), max_lines=3, placeholder=" …")]


def _waiting(host: HostState, context: DrawContext, width: int) -> list[Line]:
    """Return a text for a host without metrics yet, with possible causes after some seconds."""
    if host.condition == HostCondition.UP:
        return [(("waiting for data", "dim"),)]
    waited = max(0.0, context.hosts_now - host.since)
    if waited < _LONG:
        hint = "; you can start the load already" if context.extent is None else ""
        text, role = f"waiting for its first sample{hint}", "dim"
    else:
        over_ssh = host.config.ssh is not None and not host.config.via
        check = "that its SSH port is reachable from here" if over_ssh else "that its probe can start"
        text = f"no answer for {seconds_or_minutes(waited)}; check that the host is up and {check}. cockpit retries."
        role = "warn"
    return [EMPTY, *(((part, role),) for part in wrap(text, max(12, width)))]


def _list_height(host: HostState, context: DrawContext) -> int:
    """Return the lines that the process table needs, in steps, so that a process that exits moves nothing below; 0 for
    other lists, which take what is left."""
    if context.detail(host) != PROCESSES:
        return 0
    details = IN_FULL if host is context.host and context.view.list_focused else 0
    return -(-(len(entries(host, context.view)) + 1 + details) // _STEP) * _STEP


def _strips(tails: Sequence[TailPane], width: int, room: int) -> list[Line]:
    """Return the newest lines of the tails that fit in `room` lines."""
    shown = tails[: room // _STRIP]
    if not shown:
        return []
    each, over = divmod(room, len(shown))
    lines: list[Line] = []
    for place, tail in enumerate(shown):
        height = each + (place < over)
        lines += draw_tail(brief_tail(tail, width, min(_WRAPPED, height - 1)), 0, None, width, height).lines
    return lines


def title(host: HostState, context: DrawContext, width: int) -> Line:
    """Return name and address; on the right CPU time of the probe, and round-trip time."""
    selected = host is context.host and len(context.hosts) > 1
    name: Line = ((f"{'▸ ' if selected else ''}{sanitize(host.config.name)}", "title"),)
    place = f"  {sanitize(host.config.place)}"
    if context.view.frozen is not None:
        return rule((*name, (place, "dim")), ((f" FROZEN at {clock(context.hosts_now)} ", "alarm"),), width)
    point = host.point
    word, _, badge = condition_words(host, context)
    if word or point is None or host.seen is None:
        return rule((*name, (place, "dim")), ((f" {word} " if word else "", badge),), width)
    parts: list[Line] = [
        ((f"probe {1000 * point.probe_cpu:.0f} ms", "dim"),),
        ((f"rtt {1000 * point.round_trip:.0f} ms", "dim"),),
    ]
    if host.profiler is not None and host.profiler.condition == "running":
        cost = host.slices[-1].cost / (host.slices[-1].t - host.slices[-1].start) if host.slices else 0.0
        parts.append(((f"profiled{f' {share_words(cost)}' if cost else ''}", "dim"),))
    every = slow_interval(host)
    if every is not None:
        parts.insert(0, ((f"every {every:.1f} s", "warn"),))
    facts = join_fitting(parts, width - length(name) - 8, " · ")
    whole = length(name) + len(place) + length(facts) + 8 <= width
    return rule((*name, (place, "dim")) if whole else name, facts, width)


def slow_interval(host: HostState) -> float | None:
    """Return the seconds between samples if a slow connection exceeds the configured interval, else None."""
    every = host.sample.interval if host.sample else 0.0
    return every if every > host.config.interval else None


def condition(host: HostState, context: DrawContext, width: int) -> list[Line]:
    """Return the details of a condition in the title, and what cockpit does; [] for a host that is up."""
    word, rest, _ = condition_words(host, context)
    if not word:
        return []
    lines: list[Line] = [((text, "strong"),) for text in wrap(rest, max(12, width), max_lines=5, placeholder=" …")]
    more = ["retrying every few seconds"] if host.condition == HostCondition.LOST else []
    if host.condition in (HostCondition.SLOW, HostCondition.LOST) and host.seen is not None:
        more.append(f"metrics of {clock(host.seen)}")
    return [*lines, (("; ".join(more), "warn"),)] if more else lines


def condition_words(host: HostState, context: DrawContext) -> tuple[str, str, str]:
    """Return (word, detail, role); the word is empty for a host that is up."""
    detail = sanitize(host.detail)
    ago = seconds_or_minutes(max(0.0, context.hosts_now - host.since))
    match host.condition:
        case HostCondition.CONNECTING:
            return "connecting …", detail, "warn"
        case HostCondition.ASKING:
            return "ASKING", detail or "waiting for your answer", "alarm"
        case HostCondition.SLOW:
            waited = max(0.0, context.hosts_now - (host.since if host.seen is None else host.seen))
            return "SLOW", seconds_or_minutes(waited) + (f": {detail}" if detail else ""), "alarm"
        case HostCondition.LOST:
            return "LOST", f"{ago} ago" + (f": {detail}" if detail else ""), "alarm"
        case HostCondition.REFUSED:
            return "REFUSED", detail, "alarm"
        case _:
            return "", "", ""


def seconds_or_minutes(seconds: float) -> str:
    """Return e.g. `12 s`, `3 min`."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def metric_lines(
    host: HostState, context: DrawContext, role: str, width: int, height: int, tall: int = 1
) -> list[Line]:
    """Return the metrics in reading order; the least important lines are left out if they do not fit. `tall`: lines of
    the CPU's chart."""
    point = host.points[-1]
    ranked = [
        *((1, line) for line in traffic_lines(host, context)),
        *history_lines(host, context, role, width, tall),
        (1, _weighed(host, lambda point: _cpu(point, width), role, "cpu")),
        (6, _weighed(host, lambda point: _memory(point, width), role, "mem")),
        *_group(host, role, width),
        *_net_faults(point),
        (5, _weighed(host, _load, role, "load")),
        *((1, line) for line in processes_line(host, point, role, width)),
    ]
    kept = sorted(range(len(ranked)), key=lambda at: ranked[at][0])[: max(0, height)]
    return [clip(ranked[at][1], width) for at in sorted(kept)]


def traffic_lines(host: HostState, context: DrawContext) -> list[Line]:
    """Return the users' requests of a host in the selected segment, if those of several hosts are counted."""
    segment = context.segment
    log = segment.logs.get(host.config.name) if segment and len(segment.logs) > 1 else None
    if segment is None or log is None:
        return []
    times = [(f"  p{percent} ", milliseconds(log.service.percentile(percent))) for percent in (50, 99)]
    rate = ("req/s ", right(si(log.rate(segment.seconds)), 5))
    return [pairs([rate, *(times if log.service.count else ()), *((("  ms", ""),) if log.service.count else ())])]


def _weighed(host: HostState, values: Callable[[HostPoint], list[tuple[str, str]]], role: str, head: str) -> Line:
    """Return names and values of the newest sample; values that have not changed for some samples are dim."""
    line: list[Piece] = [(fit(head, 5), "dim")]
    before = values(host.points[-STEADY]) if len(host.points) >= STEADY else []
    for at, (name, value) in enumerate(values(host.points[-1])):
        steady = at < len(before) and before[at] == (name, value)
        line += [(name, "dim"), (value, "dim" if steady else role)]
    return tuple(line)


def _cpu(point: HostPoint, width: int) -> list[tuple[str, str]]:
    """Return CPU shares as sar -u; in a narrow pane with the short names of vmstat and top."""
    cpu = point.cpu
    if cpu is None:
        return [("", "waiting for data")]
    if width < _ROOMY:
        shares = (("us ", cpu.user + cpu.nice), ("  sy ", cpu.system), ("  io ", cpu.iowait), ("  st ", cpu.steal))
        return [*((name, right(f"{share:.0f}", 2)) for name, share in shares), ("  id ", right(f"{cpu.idle:.0f}", 2))]
    return [(f"{' ' if at else ''}%{name} ", right(percent(getattr(cpu, name)), 4)) for at, name in enumerate(_SHARES)]


def _memory(point: HostPoint, width: int) -> list[tuple[str, str]]:
    if not point.memory.total:
        return [("", "unknown")]
    names = next(names for need, names in _MEMORY if width >= need)
    called = {"buff_cache": "buff/cache", "available": "avail" if width < _ROOMY else "available"}
    values = [getattr(point.memory, name) for name in names]
    texts = ["–" if value is None else f"{value / _MIB:.0f}" for value in values]
    heads = (f"{'  ' if at else ''}{called.get(name, name)} " for at, name in enumerate(names))
    return [*zip(heads, texts, strict=True), (" MiB", "")]


def _group(host: HostState, role: str, width: int) -> list[tuple[int, Line]]:
    """Return CPU and memory of the server's control group (a container or unit), if it has its own."""
    values = {name: host.sar.get(f"cgroup.{name}") for name in ("cpu", "quota", "throttled", "kbmemory", "kblimit")}
    if not any(value is not None for value in values.values()):
        return []
    used = "–" if values["cpu"] is None else f"{values['cpu']:.1f}"
    quota = [(" of ", f"{values['quota']:g}")] if values["quota"] else []
    parts: list[Line] = [pairs([("%cpu ", used), *quota], role)]
    if values["throttled"]:
        parts.append(((f"throttled {values['throttled']:.0f}%", "warn"),))
    if values["kbmemory"] is not None:
        limit = [(" of ", size(1024 * values["kblimit"]))] if values["kblimit"] else []
        parts.append(pairs([("mem ", size(1024 * values["kbmemory"])), *limit], role))
    return [(3, (("cgrp ", "dim"), *join_fitting(parts, width - 5)))]


def _net_faults(point: HostPoint) -> list[tuple[int, Line]]:
    """Return errors and drops/s of all interfaces except the loopback, if there are any."""
    net = point.net
    if net is None or not (net.errors or net.drops):
        return []
    return [(1, (("net  ", "dim"), (f"err/s {si(net.errors)}  drop/s {si(net.drops)}", "warn")))]


_SHARES = ("user", "nice", "system", "iowait", "steal", "idle")
# Memory metrics by minimum width.
_MEMORY = (
    (88, ("total", "used", "free", "shared", "buff_cache", "available")),
    (_ROOMY, ("total", "used", "free", "buff_cache", "available")),
    (0, ("used", "free", "available")),
)


def _load(point: HostPoint) -> list[tuple[str, str]]:
    averages = " ".join(f"{load:.2f}" for load in point.load)
    return [("", averages), ("  run ", str(point.running)), ("  blocked ", str(point.blocked))]


def processes_line(host: HostState, point: HostPoint, role: str, width: int) -> list[Line]:
    """Return name, number, churn, defunct processes and memory of the watched processes, as many as fit.

    If /proc of the host hides processes, this is shown instead of "0 procs".
    """
    if not host.config.processes:
        return []
    name: Line = ((sanitize(host.config.watched), "title"),)
    room = width - length(name) - 6
    reading = host.sample.reading if host.sample else None
    if reading is not None and reading.hidden:
        seen = f"{count_text(point.count, 'proc')}, others " if point.count else ""
        return [rule(name, ((f"{seen}hidden by hidepid on /proc", "warn"),), width)]
    parts: list[Line] = [
        ((count_text(point.count, "proc"), role),),
        (("all servers of that name", "warn"),) if reading is not None and reading.excluded is None else (),
        ((churn(point), role),),
        ((f"Z {point.defunct}", "warn" if point.defunct else "dim"),),
        pairs([("rss ", size(point.rss))], role),
        pairs([("rss−shr ", size(point.unshared))], role),
    ]
    if point.pss is not None:
        parts.append(pairs([("pss ", size(point.pss))], role))
    if reading is not None and reading.excluded:
        parts.append(((f"{reading.excluded} of others excluded", "dim"),))
    if point.unseen:
        parts.append(((f"≤ {point.unseen} unseen", "dim"),))
    parts = [part for part in parts if length(part)]
    roomy = sum(length(part) + 2 for part in parts) - 2 <= room
    return [rule(name, join_fitting(parts, room, "  " if roomy else " "), width)]


def churn(point: HostPoint) -> str:
    """Return spawned and exited processes per second, e.g. `+3 -2/s`; "" before the second sample."""
    if point.spawned is None or point.exited is None:
        return ""
    return f"+{point.spawned:.0f} -{point.exited:.0f}/s"
