"""The wizard for a new profile: page 1 asks for target and hosts, page 2 lists the servers and settings found there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input, Static

from cockpit.hosts.ssh.aliases import aliases
from cockpit.hosts.ssh.prompts import Keyring, PromptQueue
from cockpit.model.errors import CockpitError, UsageError, naming
from cockpit.model.text import sanitize
from cockpit.model.units import parse_count, parse_duration
from cockpit.profiles.trust import accept_written
from cockpit.profiles.writing import Draft, profile_text, write_profile
from cockpit.setup.profile_draft import HERE, HostSurvey, draft_of, hosts_named, place_for, survey
from cockpit.tui.background import Background
from cockpit.tui.dialogs.checklist import Checklist, ChecklistItem
from cockpit.tui.dialogs.host_prompt import CHECK_INTERVAL, ask_user
from cockpit.tui.dialogs.prompt import one_line_input
from cockpit.tui.key_names import bindings, key_hints
from cockpit.tui.key_table import AppKey, DialogKey, key_names
from cockpit.tui.start.choices import url_of
from cockpit.tui.terminal.styled_line import fit

_STYLE = """
    Horizontal { height: 1; }
    VerticalScroll { scrollbar-size: 1 1; }
    Input { background: $panel; width: 1fr; }
    Input:focus { background: $cockpit-band; }
    .name { width: 14; color: $cockpit-dim; }
    .head { height: 1; color: $cockpit-strong; text-style: bold; margin-top: 1; }
    .quiet { color: $cockpit-dim; }
    .short { width: 12; }
    .label { width: auto; padding: 0 2; color: $cockpit-dim; }
    #keepalive { width: 1fr; height: 1; }
    #top { height: 1; background: $panel; padding: 0 1; color: $cockpit-strong; text-style: bold; }
    #body { height: 1fr; padding: 0 2; }
    #message { height: auto; max-height: 3; padding: 0 2; text-style: bold; }
    #message.-bad { color: $cockpit-warn; }
    #keys { height: 1; background: $panel; padding: 0 1; color: $cockpit-dim; }
"""

_Value = TypeVar("_Value")

_HINTS = ((DialogKey.SELECT, " select"), (DialogKey.CLOSE, " back"), (AppKey.HELP, " help"))
_FIELDS = key_names(DialogKey.ABOVE, DialogKey.BELOW)


@dataclass(frozen=True)
class ProfileForm:
    url: str
    concurrency: int
    duration: str
    keepalive: bool
    hosts: tuple[str, ...]


class _Page(Screen[str | None]):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(DialogKey.CLOSE.key, "dismiss(None)", "back"),
        *bindings([DialogKey.ABOVE, DialogKey.BELOW]),
    ]

    def show_message(self, words: str, bad: bool = False) -> None:
        line = self.query_one("#message", Static)
        line.update(Content(sanitize(words, 400)))
        line.set_class(bad, "-bad")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.action_go()

    def action_go(self) -> None:
        """Go to the next page, or finish."""
        raise NotImplementedError


def _row(name: str, *fields: Widget) -> Horizontal:
    return Horizontal(Static(name, classes="name"), *fields)


class NewProfileScreen(_Page):
    """Page 1: target and hosts. Ends with the path of the written profile, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "go", "inspect the hosts")]
    DEFAULT_CSS = f"NewProfileScreen {{ background: $background; {_STYLE} #hosts {{ height: auto; max-height: 12; }} }}"

    def __init__(self, ssh_config: Path | None = None, url: str = "") -> None:
        super().__init__()
        self.ssh_config = ssh_config
        self.questions = PromptQueue()
        self._url = url
        self._keyring = Keyring()
        self._inspecting = False
        self._background = Background()

    def compose(self) -> ComposeResult:
        known = [HERE, *aliases(self.ssh_config)]
        yield Static("write a profile   1 of 2: target and hosts", id="top")
        with VerticalScroll(id="body", can_focus=False):
            yield Static("load", classes="head")
            yield _row("URL", one_line_input(self._url, "url", "http://web1/hello.html"))
            with Horizontal():
                yield Static("connections", classes="name")
                yield one_line_input("20", "concurrency", classes="short")
                yield Static("for", classes="label")
                yield one_line_input("30s", "duration", classes="short")
                yield Static("", classes="label")
                yield Checklist([ChecklistItem("keep connections alive", "yes", True)], id="keepalive")
            yield Static(f"servers to watch and tune ({DialogKey.SELECT}: select)", classes="head")
            yield Checklist([ChecklistItem(sanitize(name), name) for name in known], id="hosts")
            yield _row("other hosts", one_line_input("", "others", "root@web9, 10.0.0.7:2222"))
            yield Static(
                "Their processes, ports and configuration are read over SSH, to find settings. "
                "Nothing is changed there. Without hosts the profile only generates load.",
                classes="quiet",
            )
        yield Static(id="message")
        yield Static(key_hints(("Enter", " inspect the hosts"), (f"Tab {_FIELDS}", " next field"), *_HINTS), id="keys")

    def on_mount(self) -> None:
        self.query_one("#url", Input).focus()
        self.set_interval(CHECK_INTERVAL, self._attend)

    def _attend(self) -> None:
        ask_user(self.app, self, lambda: self.questions.first)

    def action_go(self) -> None:
        """Inspect the hosts."""
        if self._inspecting:
            return
        try:
            form = self._read_form()
        except UsageError as error:
            self.show_message(str(error), bad=True)
            return
        self._inspecting = True
        names = ", ".join(form.hosts)
        self.show_message(f"inspecting {names} …" if names else "")
        self._background.run(self, self._inspect(form))

    async def on_unmount(self) -> None:
        await self._background.end()

    def _read_form(self) -> ProfileForm:
        """Read the fields. Raises UsageError and focuses the invalid field."""
        url = self._parsed("url", url_of)
        concurrency = self._parsed("concurrency", parse_count)
        self._parsed("duration", parse_duration)
        if concurrency < 1:
            raise UsageError("connections: must be at least 1")
        others = self.query_one("#others", Input).value.split(",")
        return ProfileForm(
            url=url,
            concurrency=concurrency,
            duration=self.query_one("#duration", Input).value.strip(),
            keepalive=bool(self.query_one("#keepalive", Checklist).selected),
            hosts=tuple(
                name.strip() for name in (*self.query_one("#hosts", Checklist).selected, *others) if name.strip()
            ),
        )

    def _parsed(self, name: str, parse: Callable[[str], _Value]) -> _Value:
        field = self.query_one(f"#{name}", Input)
        try:
            return parse(field.value.strip())
        except (ValueError, UsageError) as error:
            field.focus()
            raise UsageError(f"{name}: {error}") from None

    async def _inspect(self, form: ProfileForm) -> None:
        try:
            configs = hosts_named(form.hosts)
            surveys = (survey(config, form.url, self.ssh_config, self.questions, self._keyring) for config in configs)
            surveyed = await asyncio.gather(*surveys)
        finally:
            self._inspecting = False
        self.show_message("")
        if self.is_attached:
            self.app.push_screen(FoundServersScreen(form, surveyed), self._written)

    def _written(self, path: str | None) -> None:
        if path is not None:
            self.dismiss(path)


class FoundServersScreen(_Page):
    """Page 2: found servers, settings to tune, preview of the file. Ends with the path of the file, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "go", "write it")]
    DEFAULT_CSS = f"""FoundServersScreen {{ background: $background; {_STYLE}
    #found {{ height: auto; max-height: 6; }}
    #knobs {{ height: auto; max-height: 12; }}
    #preview {{ height: 1fr; min-height: 3; border-left: solid $cockpit-rule; padding: 0 1; margin-top: 1; }}
    &.-low #knobs {{ max-height: 6; }}
    }}"""

    def __init__(self, form: ProfileForm, surveyed: Sequence[HostSurvey]) -> None:
        super().__init__()
        self.form = form
        self.surveyed = surveyed
        self._replace: Path | None = None

    def compose(self) -> ComposeResult:
        knobs = self._offers()
        yield Static("write a profile   2 of 2: servers and settings", id="top")
        with Vertical(id="body"):
            yield Static(Content.assemble(*self._survey_text()), id="found")
            yield Static(f"settings to tune ({DialogKey.SELECT}: select)", classes="head")
            if knobs:
                yield Checklist(knobs, id="knobs")
            else:
                yield Static(
                    "No settings found. Add [[knob]] blocks to the file by hand.",
                    classes="quiet",
                    markup=False,
                )
            yield Static("profile", classes="head")
            yield _row("question", one_line_input("", "question", "the question to answer"))
            yield _row("file", one_line_input(str(place_for(self.form.url, self.surveyed)), "file"))
            with VerticalScroll(id="preview", can_focus=False):
                yield Static(id="text", markup=False)
        yield Static(id="message")
        yield Static(key_hints(("Enter", " write and open"), ("Tab", " next field"), *_HINTS), id="keys")

    def on_mount(self) -> None:
        self.query(Checklist).focus() if self.query(Checklist) else self.query_one("#question", Input).focus()
        self.preview()

    def on_resize(self) -> None:
        self.set_class(self.size.height < 30, "-low")

    def _survey_text(self) -> list[str | tuple[str, str]]:
        if not self.surveyed:
            return [("no hosts: the profile only generates load", "$cockpit-dim")]
        wide = max(len(host.config.name) for host in self.surveyed)
        pieces: list[str | tuple[str, str]] = []
        for host in self.surveyed:
            pieces += ["\n"] if pieces else []
            pieces.append((f"{host.config.name:<{wide}}  ", "bold"))
            words = sanitize(host.words, 300)
            pieces.append((words, "$cockpit-warn") if host.discovered is None else words)
        return pieces

    def _offers(self) -> list[ChecklistItem]:
        offered = [offer for host in self.surveyed if host.discovered for offer in host.discovered.suggested]
        wide = max((len(offer.knob.name) for offer in offered), default=0)
        many = len(self.surveyed) > 1
        items = []
        for offer in offered:
            value = "not set" if offer.value is None else offer.value
            host = f"{offer.knob.host}  " if many else ""
            name, place = fit(offer.knob.name, wide), offer.knob.file or offer.knob.key
            words = f"{name}  {fit(sanitize(value, 60), 14)}  {host}{place}"
            items.append(ChecklistItem(words, f"{offer.knob.host}\n{offer.knob.name}", offer.usual))
        return items

    def draft(self) -> Draft:
        chosen = [name for picks in self.query(Checklist) for name in picks.selected]
        pairs = [(host, knob) for host, _, knob in (name.partition("\n") for name in chosen)]
        return draft_of(
            self.form.url,
            self.surveyed,
            pairs,
            question=self.query_one("#question", Input).value.strip(),
            concurrency=self.form.concurrency,
            duration=self.form.duration,
            keepalive=self.form.keepalive,
        )

    def preview(self) -> None:
        try:
            self.query_one("#text", Static).update(Content(profile_text(self.draft())))
        except CockpitError as error:
            self.show_message(str(error), bad=True)

    def on_checklist_changed(self, event: Checklist.Changed) -> None:
        self.preview()

    def on_input_changed(self, event: Input.Changed) -> None:
        self._replace = None
        self.preview()

    def action_go(self) -> None:
        """Write the file; replace an existing file only if confirmed."""
        asked, again = self._replace, False
        self._replace = None
        try:
            path = profile_file(self.query_one("#file", Input).value)
            again = path.exists() and asked != path
            text = profile_text(self.draft())
            write_profile(path, text, replace=asked == path)
        except CockpitError as error:
            if again:
                self._replace = path
            self.show_message(f"{error}. Enter again: replace it" if again else str(error), bad=True)
            return
        accept_written(text)
        self.dismiss(str(path))


def profile_file(text: str) -> Path:
    """Return the file of a typed name, with the suffix .toml. Raises UsageError."""
    typed = Path(text.strip())
    try:
        path = typed.expanduser()
    except RuntimeError as error:
        raise UsageError(f"{typed}: {error}") from None
    with naming(typed, "be written"):
        if path.name in ("", ".") or path.is_dir():
            raise UsageError("file: type a name, e.g. profiles/mine.toml")
        path = path if path.suffix == ".toml" else path.with_name(f"{path.name}.toml")
        # Raises OSError for a name that no file can have.
        path.exists()
    return path
