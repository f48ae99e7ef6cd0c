"""Commands of the main screen beside its bindings: the session's actions, views, hosts, markers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from cockpit.model.text import clock, neutral
from cockpit.session.controls import Action
from cockpit.tui.action_keys import action_key_name
from cockpit.tui.charts.markers import words_of
from cockpit.tui.draw_context import LATENCY_VIEWS, Detail, DrawContext, View, details_of
from cockpit.tui.keys import name_of
from cockpit.tui.palette import Command


def main_commands(
    scene: DrawContext,
    begin: Callable[[Action], None],
    answer: Callable[[Action, str], None],
    look: Callable[[View], None],
) -> Iterator[Command]:
    """`begin` runs an action, with a prompt if it has one; `answer` runs it with the given answer."""
    for action in scene.actions:
        asks = f"   asks: {action.prompt}" if action.prompt else ""
        yield Command(action.label, f"{action_key_name(action)}{asks}", partial(begin, action))
    for view in LATENCY_VIEWS:
        yield Command(f"view latency as {view}", "v: next view", _looking(look, scene, latency=view))
    yield from _hosts(scene, look)
    jump = next((action for action in scene.actions if action.name == "jump"), None)
    if jump is not None:
        for marker in scene.state.markers:
            title = f"jump to {neutral(marker.sign)} {words_of(marker)}".rstrip()
            yield Command(title, f"{clock(marker.t)}   {marker.kind}", partial(answer, jump, f"{marker.t:.1f}s"))


def _hosts(scene: DrawContext, look: Callable[[View], None]) -> Iterator[Command]:
    for place, host in enumerate(scene.hosts):
        name = neutral(host.config.name)
        if len(scene.hosts) > 1:
            yield Command(f"show {name}", "tab: next host", _looking(look, scene, host=place))
        for detail in details_of(host):
            details = {**scene.view.details, host.config.name: detail}
            what = f"{name}: {_title(host.config.tail, detail)}"
            yield Command(
                what,
                "d: next list below the host",
                _looking(look, scene, host=place, details=details, averages=False),
            )


def _title(tails: tuple[str, ...], detail: Detail) -> str:
    if detail.kind == "tail" and detail.place < len(tails):
        return f"tail {neutral(tails[detail.place], 60)}"
    number = f" {detail.place + 1}" if detail.kind == "page" else ""
    return f"{name_of(detail)}{number}"


def _looking(look: Callable[[View], None], scene: DrawContext, **changes: object) -> Callable[[], None]:
    return partial(look, replace(scene.view, **changes))  # type: ignore[arg-type]
