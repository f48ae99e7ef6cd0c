"""The load form: the plan of the next run; connections or rate apply to the active run at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input, Static

from cockpit.model.errors import UsageError
from cockpit.model.load.plan import LoadPlan, url_without_password
from cockpit.model.text import sanitize
from cockpit.tui.dialogs.checklist import Checklist, ChecklistItem
from cockpit.tui.dialogs.prompt import Dialog, one_line_input
from cockpit.tui.key_names import bindings, click_hint
from cockpit.tui.key_table import DialogKey, key_names
from cockpit.tui.load_fields import (
    FIELDS,
    KEEPALIVE,
    NO_KEEPALIVE,
    FormField,
    LoadParser,
    field_of,
    plan_from,
    texts_of,
)

if TYPE_CHECKING:
    from cockpit.session.live_load import LiveLoad


class LoadForm(Dialog[LoadPlan]):
    """Form for a load plan; ends with the changed plan. `parse` parses the fields."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(DialogKey.CLOSE.key, "dismiss(None)", "cancel"),
        *bindings([DialogKey.ABOVE, DialogKey.BELOW]),
        Binding("enter", "go", "apply"),
    ]
    DEFAULT_CSS = """
    LoadForm > VerticalScroll { width: 78; }
    LoadForm Horizontal { height: 1; }
    LoadForm Input, LoadForm Checklist { width: 1fr; height: 1; }
    LoadForm Checklist, LoadForm Checklist > .option-list--option-highlighted { background: $surface; }
    LoadForm Input:focus { background: $cockpit-band; }
    LoadForm .name { width: 12; color: $cockpit-dim; }
    LoadForm .error { display: none; height: auto; padding: 0 0 0 12; color: $cockpit-warn; }
    LoadForm #effect { height: auto; min-height: 2; margin-top: 1; color: $cockpit-strong; }
    """

    def __init__(self, load: LiveLoad, parse: LoadParser) -> None:
        super().__init__()
        self.plan = load.plan
        self._active = load.active
        self._parse = parse
        self._before = texts_of(load.plan)

    def compose(self) -> ComposeResult:
        with VerticalScroll(can_focus=False) as room:
            room.border_title = "load"
            fields = f"Tab {key_names(DialogKey.ABOVE, DialogKey.BELOW)} next field"
            close = click_hint(DialogKey.CLOSE, "cancel")
            room.border_subtitle = f"[@click=screen.go]Enter apply[/]   {fields}   {close}"
            for field in FIELDS:
                yield Horizontal(Static(field.name, classes="name"), self._place(field))
                yield Static(classes="error", id=f"error-{_id(field.name)}")
            yield Static(id="effect")

    def _place(self, field: FormField) -> Widget:
        text = self._before[field.name]
        if field.name == "keep-alive":
            return Checklist([ChecklistItem("reuse connections", KEEPALIVE, text == KEEPALIVE)])
        hint = field.hint
        if field.name == "body" and not text and self.plan.content:
            hint = f"{len(self.plan.content)} bytes, not shown; type to replace them"
        if field.name == "load steps" and not text and self.plan.stages:
            hint = f"{len(self.plan.stages)} steps of different length; type to replace them"
        return one_line_input(text, _id(field.name), hint)

    def on_mount(self) -> None:
        self._field("load").focus()
        self._check()

    def on_input_changed(self, event: Input.Changed) -> None:
        self._check()

    def on_checklist_changed(self, event: Checklist.Changed) -> None:
        self._check()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.action_go()

    def action_go(self) -> None:
        """Apply the plan if all fields are valid, otherwise focus the invalid field."""
        checked = self._check()
        if isinstance(checked, LoadPlan):
            self.dismiss(checked)
        elif checked:
            self._field(checked).focus()

    def _field(self, name: str) -> Widget:
        return self.query_one(Checklist) if name == "keep-alive" else self.query_one(f"#{_id(name)}", Input)

    def _check(self) -> LoadPlan | str:
        """Show the effect of the fields, or the error below its field.

        Returns the plan, or the name of the invalid field; "" if the error concerns several fields.
        """
        texts = {field.name: self._text(field.name) for field in FIELDS}
        invalid, words = "", ""
        try:
            plan = plan_from(self.plan, texts, self._parse)
        except UsageError as error:
            invalid, words = field_of(error.subject), error.problem
            plan = None
        for field in FIELDS:
            line = self.query_one(f"#error-{_id(field.name)}", Static)
            line.display = plan is None and field.name == invalid
            if line.display:
                line.update(Content(sanitize(words, 300)))
        effect = "\n".join(self._effect(plan)) if plan else "" if invalid else sanitize(words, 300)
        self.query_one("#effect", Static).update(Content(effect))
        return invalid if plan is None else plan

    def _text(self, name: str) -> str:
        field = self._field(name)
        if isinstance(field, Checklist):
            return KEEPALIVE if field.selected else NO_KEEPALIVE
        return field.value if isinstance(field, Input) else ""

    def _effect(self, plan: LoadPlan) -> Iterator[str]:
        """Yield the changes that apply at once, the changes for the next run, and the request."""
        after = texts_of(plan)
        changed = [name for name, text in after.items() if text != self._before[name]]
        if plan.content != self.plan.content and "body" not in changed:
            changed.append("body")
        if not changed:
            yield "no changes yet"
            return
        now = [name for name in changed if name == "load" and self._active and self._active.adjustable(plan)]
        next_run = [name for name in changed if name not in now]
        if now:
            until = "" if plan.ramp_to is None else ", a ramp to the end of the run"
            yield f"now and in the next run: load {self._before['load']} → {after['load']}{until}"
        if next_run:
            yield f"{'next run only' if self._active else 'next run'}: {', '.join(next_run)}"
        yield sanitize(f"{plan.method} {url_without_password(plan.url)}", 76)


def _id(name: str) -> str:
    return name.lower().replace(" ", "-")
