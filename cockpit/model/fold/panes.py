"""The part of fold for tails, status pages and CPU profiles."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from cockpit.model import access
from cockpit.model import events as ev
from cockpit.model.fold.restarts import mark_reload
from cockpit.model.host.state import HostState, StatusPane, TailLine, TailPane
from cockpit.model.stacks import KEPT_SLICES, ProfilerChanged, StackSlice
from cockpit.model.state import State, with_host, with_last_segment
from cockpit.model.status_metrics import rates, weighted
from cockpit.model.sums import MeanGroup

# Number of lines kept per tail, and seconds kept per access log.
TAIL_LINES = 500
ACCESS_SECONDS = 5.0


def panes_of(host: HostState) -> HostState:
    return replace(
        host,
        tails=tuple(TailPane(command=command) for command in host.config.tail),
        pages=tuple(StatusPane(page=page) for page in host.config.status),
    )


def tail_text(state: State, event: ev.TailText) -> State:
    tail = _tail(state, event.host, event.tail)
    if tail is None:
        return state
    before = tail.lines[:-1] if event.continues else tail.lines
    lines = (*before, *(TailLine(event.t, text) for text in event.lines))
    return _with_tail(
        state, event.host, event.tail, replace(tail, lines=lines[-TAIL_LINES:], skipped=tail.skipped + event.skipped)
    )


def tail_changed(state: State, event: ev.TailChanged) -> State:
    tail = _tail(state, event.host, event.tail)
    if tail is None:
        return state
    return _with_tail(state, event.host, event.tail, replace(tail, condition=event.condition, detail=event.detail))


def access_counts(state: State, event: ev.AccessCounts) -> State:
    tail = _tail(state, event.host, event.tail)
    if tail is None:
        return state
    kept = tuple(counts for counts in tail.counts if counts.t > event.t - ACCESS_SECONDS)
    state = _with_tail(state, event.host, event.tail, replace(tail, counts=(*kept, event)))
    # Only the first of several access logs counts for the host's metrics.
    tails = enumerate(state.hosts[event.host].tails)
    if event.tail != next((at for at, pane in tails if access.is_access_log(pane.counts)), None):
        return state
    return _add_to_window(state, event.host, event.t - event.seconds, access.means(event))


def status_read(state: State, event: ev.StatusRead) -> State:
    host = state.hosts.get(event.host)
    if host is None or event.page >= len(host.pages):
        return state
    before = host.pages[event.page]
    if event.detail:
        return _with_page(state, event, replace(before, detail=event.detail))
    seconds = event.t - before.t if before.t is not None else 0.0
    since = rates(before.page.kind, before.values, event.values, seconds)
    after = replace(before, t=event.t, values=event.values, rates=since, text=event.text, detail="")
    return mark_reload(_widen_window(_with_page(state, event, after), event, before), event, before)


def stack_slice(state: State, event: StackSlice) -> State:
    host = state.hosts.get(event.host)
    return with_host(state, replace(host, slices=(*host.slices, event)[-KEPT_SLICES:])) if host else state


def profiler_changed(state: State, event: ProfilerChanged) -> State:
    host = state.hosts.get(event.host)
    return with_host(state, replace(host, profiler=event)) if host else state


def _with_page(state: State, event: ev.StatusRead, page: StatusPane) -> State:
    host = state.hosts[event.host]
    pages = (*host.pages[: event.page], page, *host.pages[event.page + 1 :])
    return with_host(state, replace(host, pages=pages))


def _widen_window(state: State, event: ev.StatusRead, before: StatusPane) -> State:
    """Add the means since the previous reading to the host's window in the last segment."""
    # Only the first of several pages of a kind counts for the host's metrics.
    first = next(at for at, pane in enumerate(state.hosts[event.host].pages) if pane.page.kind == before.page.kind)
    if before.t is None or event.page != first:
        return state
    means = weighted(before.page.kind, before.values, event.values, event.t - before.t)
    return _add_to_window(state, event.host, before.t, means)


def _add_to_window(state: State, host: str, begin: float, means: Iterable[MeanGroup]) -> State:
    """Add means over the time from `begin` to now to the host's window in the last segment, if that has the host and
    `begin` is within it."""
    segment = state.segment
    window = segment.hosts.get(host) if segment else None
    if segment is None or window is None or begin < segment.start:
        return state
    if segment.end is not None and begin >= segment.end:
        return state
    wider = replace(window, sums=window.sums.plus(means))
    return with_last_segment(state, replace(segment, hosts={**segment.hosts, host: wider}))


def _tail(state: State, host: str, tail: int) -> TailPane | None:
    known = state.hosts.get(host)
    return known.tails[tail] if known and tail < len(known.tails) else None


def _with_tail(state: State, name: str, place: int, tail: TailPane) -> State:
    host = state.hosts[name]
    tails = (*host.tails[:place], tail, *host.tails[place + 1 :])
    return with_host(state, replace(host, tails=tails))
