"""Texts of the tuning panel: active values, the pending change, and earlier changes with their outcome."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cockpit.analysis.words.timeline import change_label
from cockpit.model.knobs import Knob, ServerAction, not_yet_active
from cockpit.model.state import Change, KnobState, State
from cockpit.model.text import clock, sanitize
from cockpit.session.tuning import Preview
from cockpit.tui.key_table import DialogKey, SessionKey, TuningKey
from cockpit.tui.terminal.styled_line import Line

# Signs of a diff's changed lines.
_CHANGED = ("+", "-")


def panel_title(past: float | None) -> str:
    """Return the panel's title; `past` is the time (s) of the shown earlier state, None: now."""
    if past is None:
        return "tuning"
    return f"tuning as it was at {clock(past)} · now: {TuningKey.CLOSE}, then {SessionKey.END}"


def active_value(state: KnobState) -> str:
    if not state.known:
        return "unreadable" if state.detail else "not read yet"
    value = "unset" if state.value is None else sanitize(state.value)
    return value if state.active else f"{value} (not yet active)"


def hint(state: KnobState) -> str:
    """Return the placeholder of an empty field: the reason for a missing value, or the allowed values."""
    knob = state.knob
    if state.detail:
        return sanitize(state.detail)
    if knob.choices:
        return f"{DialogKey.SELECT}: choose from {len(knob.choices)}"
    return sanitize(knob.allowed)


def details(state: KnobState) -> str:
    """Return the knob's help if any, its file and name, the allowed values, and the commands for a new value."""
    knob = state.knob
    section = f" in <{sanitize(knob.section)}>" if knob.section else ""
    allowed = sanitize(knob.allowed.replace(", ", " ")) or ("one word" if knob.in_file else "one line")
    where = f":{sanitize(knob.file)}" if knob.file else ""
    name = sanitize(knob.directive or knob.key or knob.mount or knob.get or knob.kind)
    commands = " · ".join(
        f"{step}: {sanitize(command)}" for step, command in (("test", knob.test), ("reload", knob.reload)) if command
    )
    price = f"a change is only written: {knob.activation}" if knob.written_only else f"{knob.effective_cost}, no reload"
    if commands and knob.needs_restart:
        commands += f" · {knob.activation}"
    last = f"could not be read: {sanitize(state.detail)}" if state.detail else commands or price
    help_line = f"{knob.help}\n" if knob.help else ""
    return f"{help_line}{sanitize(knob.host)}{where}\n{name}{section} · allowed: {allowed}\n{last}"


def plan_words(state: State, values: Mapping[str, str]) -> str:
    """Return the change as `MinSpareServers 5 → 30, …`."""

    def old(name: str) -> str:
        knob = state.knobs.get(name)
        if knob is None or not knob.known:
            return "?"
        return "unset" if knob.value is None else sanitize(knob.value)

    return ", ".join(f"{sanitize(name)} {old(name)} → {sanitize(value)}" for name, value in values.items())


def preview_lines(previews: Sequence[Preview]) -> list[Line]:
    """Return the diff of a change per host, with its cost and notes."""
    lines: list[Line] = []
    for preview in previews:
        if preview.diff:
            lines.append(((f"{sanitize(preview.host)}, cost: {sanitize(preview.cost)}", "strong"),))
            lines += [((f"! {sanitize(note)}", "warn"),) for note in preview.notes]
            lines += diff_lines(preview.diff)
        else:
            lines.append(((f"{sanitize(preview.host)}: nothing to change, the host has these values already", "dim"),))
    return lines


def diff_lines(diff: str) -> list[Line]:
    """Return the lines of a diff, of which only the new ones are bright."""
    lines = map(sanitize, diff.splitlines())
    return [((line, "strong" if line.startswith("+") and is_changed(line) else "dim"),) for line in lines]


def is_changed(line: str) -> bool:
    """Return whether a line of a diff is removed or added."""
    return line[:1] in _CHANGED and line[:3] not in ("---", "+++")


def action_line(action: ServerAction) -> str:
    times = f", {action.times} times" if action.times > 1 else ""
    return f"{sanitize(action.name)} on {sanitize(action.host)}: {sanitize(action.command, 200)}{times}"


def change_status_words(change: Change, state: State) -> str:
    """Return a change's outcome, or its stage while it is under way."""
    if not change.outcome:
        stage = next(reversed(tuple(change.stages)), "requested")
        if change.confirm_by is not None:
            return f"{stage}, rolled back in {max(0.0, change.confirm_by - state.t):.0f} s unless kept"
        return f"{stage}, under way for {max(0.0, state.t - change.begun):.0f} s"
    if change.outcome == "rolled back":
        return f"rolled back: {sanitize(change.detail)}"
    if change.outcome == "failed":
        return f"FAILED, check the host: {sanitize(change.detail)}"
    undoes = (each for each in state.changes if each.undoes == change.letter)
    undo = next((each for each in undoes if each.outcome in ("applied", "written")), None)
    if undo is not None:
        return f"undone by {undo.letter}"
    parts = [f"active since {clock(change.active_since or change.begun)}"] if change.outcome == "applied" else []
    parts += [pending] if (pending := not_yet_active(inactive_knobs(change, state))) else []
    parts += [f"server: {sanitize(change.detail)}"] if change.detail else []
    return "; ".join(parts)


def inactive_knobs(change: Change, state: State) -> list[Knob]:
    """Return the written knobs that are not active yet."""
    return [state.knobs[name].knob for name in change.inactive if name in state.knobs]


def ending_words(state: State) -> str:
    """Return the work that delays the end of a session."""
    under_way = [
        f"change {change.letter} ({change_status_words(change, state)})"
        for change in state.changes
        if not change.outcome
    ]
    load = ["the end of the load"] if state.running is not None else []
    work = " and ".join((*load, *under_way))
    return f"ending: waiting for {work}" if work else "ending: reading the last samples"


def history_line(change: Change, state: State) -> str:
    return f"{clock(change.begun)}  {sanitize(change_label(change))}: {change_status_words(change, state)}"


def who_words(who: str) -> str:
    return f"uid {sanitize(who)}" if who.partition("@")[0].isdigit() else sanitize(who)


def change_lines(change: Change, state: State) -> list[Line]:
    """Return all facts about a change: outcome, time, user, cost, stages, diff."""
    lines: list[Line] = [((sanitize(change_label(change)), "strong"),), ((change_status_words(change, state), ""),)]
    who = f", by {who_words(change.who)}" if change.who else ""
    cost = f", cost: {sanitize(change.cost)}" if change.cost else ""
    lines.append(((f"requested at {clock(change.begun)} on {sanitize(change.host)}{who}{cost}", "dim"),))
    stages = [f"{name} +{at - change.begun:.1f} s" for name, at in change.stages.items()]
    if change.outcome in ("rolled back", "failed") and change.ended is not None:
        stages.append(f"{change.outcome} +{change.ended - change.begun:.1f} s")
    if stages:
        lines.append(((" · ".join(stages), "dim"),))
    return [*lines, *diff_lines(change.diff)]
