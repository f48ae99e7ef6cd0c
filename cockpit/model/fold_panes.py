"""The part of fold that keeps what tails print and what status pages say."""

from __future__ import annotations

from msgspec.structs import replace

from cockpit.model import events as ev
from cockpit.model.state import HostState, State, StatusPane, TailLine, TailPane

# Lines of a tail that can be looked back at from any instant.
TAIL_LINES = 500


def panes_of(host: HostState) -> HostState:
    """The host with an empty pane for each of its tails and pages."""
    return replace(
        host,
        tails=tuple(TailPane(command=command) for command in host.config.tail),
        pages=tuple(StatusPane(page=page) for page in host.config.status),
    )


def tail_text(state: State, event: ev.TailText) -> State:
    tail = _tail(state, event.host, event.tail)
    if tail is None:
        return state
    lines = (*tail.lines, *(TailLine(event.t, text) for text in event.lines))
    return _with_tail(
        state, event.host, event.tail, replace(tail, lines=lines[-TAIL_LINES:], skipped=tail.skipped + event.skipped)
    )


def tail_changed(state: State, event: ev.TailChanged) -> State:
    tail = _tail(state, event.host, event.tail)
    if tail is None:
        return state
    return _with_tail(state, event.host, event.tail, replace(tail, condition=event.condition, detail=event.detail))


def status_read(state: State, event: ev.StatusRead) -> State:
    host = state.hosts.get(event.host)
    if host is None or event.page >= len(host.pages):
        return state
    before = host.pages[event.page]
    if event.detail:
        after = replace(before, detail=event.detail)
    else:
        after = replace(before, t=event.t, values=event.values, text=event.text, detail="")
    pages = (*host.pages[: event.page], after, *host.pages[event.page + 1 :])
    return replace(state, hosts={**state.hosts, event.host: replace(host, pages=pages)})


def _tail(state: State, host: str, tail: int) -> TailPane | None:
    known = state.hosts.get(host)
    return known.tails[tail] if known and tail < len(known.tails) else None


def _with_tail(state: State, name: str, place: int, tail: TailPane) -> State:
    host = state.hosts[name]
    tails = (*host.tails[:place], tail, *host.tails[place + 1 :])
    return replace(state, hosts={**state.hosts, name: replace(host, tails=tails)})
