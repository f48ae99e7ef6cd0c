"""Commands of the main screen with an argument: settings, load and help."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from cockpit.model.errors import UsageError
from cockpit.model.load.plan import LoadPlan
from cockpit.model.state import KnobState
from cockpit.model.text import sanitize
from cockpit.session.loop import Session
from cockpit.tui.dialogs.help import HelpEntry
from cockpit.tui.key_table import AppKey, MainKey
from cockpit.tui.load_fields import LoadParser, plan_from, texts_of
from cockpit.tui.palette import Command
from cockpit.tui.tuning.changes import active_value

if TYPE_CHECKING:
    from cockpit.session.live_load import LiveLoad

# By command: its field of the load form, its format there and an example.
_LOAD = {
    "rate": ("load", "{}/s", "500"),
    "connections": ("load", "{}", "50"),
    "duration": ("duration", "{}", "60s"),
}


def setting_command(session: Session, show_panel: Callable[[dict[str, str]], object]) -> Command:
    """Return `set NAME VALUE`; `show_panel` shows the diff of the new value, before it is applied."""
    settings = session.shown.knobs

    def split(text: str) -> tuple[KnobState | None, str]:
        name = max((name for name in settings if text == name or text.startswith(f"{name} ")), key=len, default="")
        return settings.get(name), text[len(name) :].strip()

    def parsed(text: str) -> dict[str, str]:
        if session.controls.tuning is None:
            raise UsageError("settings are read-only in this session")
        setting, value = split(text)
        if setting is None:
            names = ", ".join(map(sanitize, settings)) or "none in this profile"
            raise UsageError(f"{text.partition(' ')[0] or 'set NAME VALUE'}: unknown setting; settings: {names}")
        knob = setting.knob
        known = (f"{knob.name} is {active_value(setting)}", knob.allowed and f"allowed: {knob.allowed}", knob.help)
        problem = knob.format_error(value) if value else "; ".join(filter(None, ("type a value", *known)))
        if setting.known and value == setting.value:
            problem = f"{knob.name} is {value} already"
        if problem:
            raise UsageError(problem)
        return {knob.name: value}

    def complete(text: str) -> Iterable[str]:
        setting, _ = split(text)
        if setting is None or text == setting.knob.name:
            return (f"{name} " for name in settings)
        return (f"{setting.knob.name} {choice}" for choice in setting.knob.choices)

    words = f"{MainKey.TUNE}   shows the diff of a new value, Enter applies it"
    return Command("set", words, lambda text: show_panel(parsed(text)), "NAME VALUE", complete, parsed)


def changeable_load(session: Session, parse: LoadParser | None) -> tuple[LiveLoad, LoadParser]:
    """Return the load of the session and the parser of its flags. Raises UsageError if it cannot be changed."""
    load, tuning = session.controls.load, session.controls.tuning
    if load is None or parse is None:
        raise UsageError("the load cannot be changed: this session is not live, or a study sets the load")
    if tuning is not None and tuning.running_rounds:
        raise UsageError(f"rounds are running under this load; {MainKey.ROUNDS}: stop them")
    return load, parse


def load_commands(
    session: Session, parser: LoadParser | None, apply: Callable[[LoadPlan], object]
) -> Iterator[Command]:
    """Yield `rate`, `connections` and `duration`, which change the load as the load form does. `apply` sets a plan."""

    def command(name: str, field: str, form: str, example: str) -> Command:
        def plan(text: str) -> LoadPlan:
            load, parse = changeable_load(session, parser)
            if not text:
                raise UsageError(f"{name}: type a value, e.g. {name} {example}")
            amount = text.removesuffix("/s") if name == "rate" else text
            if name == "connections" and text.endswith("/s"):
                raise UsageError(f"connections: {text} is a rate; type rate {text.removesuffix('/s')}")
            before = texts_of(load.plan)
            try:
                return plan_from(load.plan, {**before, field: form.format(amount)}, parse)
            except UsageError as error:
                raise UsageError(f"{name}: {error.problem}") from None

        words = f"{MainKey.LOAD}   {name} of the load, e.g. {example}; a running load changes at once"
        if field == "duration":
            words = f"{MainKey.LOAD}   duration of the next run, e.g. {example}"
        return Command(name, words, lambda text: apply(plan(text)), "VALUE", check=plan)

    return (command(name, *options) for name, options in _LOAD.items())


def help_command(entries: Sequence[HelpEntry], show: Callable[[Sequence[HelpEntry]], object]) -> Command:
    """Return `help TOPIC`, which shows the entries with a text; without a topic, all entries."""

    def matching(text: str) -> list[HelpEntry]:
        about = [entry for entry in entries if text.casefold() in " ".join(entry).casefold()]
        if not about:
            raise UsageError(f"{text}: not in the help; all entries: {AppKey.HELP_SIGN}")
        return about

    def complete(text: str) -> Iterable[str]:
        return (name for name, words in entries if words)

    words = f"{AppKey.HELP_SIGN}   keys of the focused pane, definitions of metrics; or only the entries with a text"
    return Command("help", words, lambda text="": show(matching(text)), "TOPIC", complete, matching)
