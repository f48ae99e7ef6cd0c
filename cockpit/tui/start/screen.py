"""The start screen: running servers, recent recordings, the user's profiles, first steps, and shipped profiles."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.events import Resize
from textual.screen import Screen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from cockpit import __version__
from cockpit.model.errors import UsageError
from cockpit.model.text import sanitize
from cockpit.profiles.catalogue import ProfileEntry
from cockpit.profiles.profile import Profile
from cockpit.profiles.trust import is_trusted
from cockpit.tui.dialogs.help import HelpScreen
from cockpit.tui.dialogs.prompt import ConfirmScreen, FilterScreen, PromptScreen
from cockpit.tui.key_help import keys_of
from cockpit.tui.key_names import bindings, footer_entries, key_entry, spots_of, with_spots
from cockpit.tui.key_table import FOOTER_START, FOOTER_START_ALWAYS, AppKey, StartKey
from cockpit.tui.palette import Command
from cockpit.tui.start.choices import (
    BEGIN,
    Choice,
    ChoiceGroup,
    StartChoice,
    StartChoices,
    Widths,
    about,
    command_words,
    heading,
    row,
    sections,
    url_of,
    widths,
)
from cockpit.tui.start.profile_files import delete, edit
from cockpit.tui.start.trust import TrustScreen
from cockpit.tui.terminal.styled_line import EMPTY, Line, content, join_fitting, left_and_right
from cockpit.tuning.discovery.local_servers import LocalServer

# Minimum height for empty lines between the sections, and for more recordings.
_HIGH = 30
_RECORDINGS, _RECORDINGS_LOW = 5, 3
# Seconds for which the first list waits for the running servers.
_SERVERS_WITHIN = 0.5
# Seconds between two checks for new or edited profiles.
_WATCH_INTERVAL = 1.0
# Below this height the description has one line.
_LOW = 18


class StartScreen(Screen[None]):
    """Ends the app with a Choice, or None.

    `load` returns the choices and is called in a thread; `stamp` returns a value that differs after a profile was
    added or edited. `servers` returns the running servers of this machine, in a thread too. `check_url` raises
    UsageError for a text that is not a URL with flags. `message` is about the previous session. `at` is selected first,
    if it exists. `ssh_config` is used for the hosts of new profiles.
    """

    BINDINGS: ClassVar[list[BindingType]] = bindings(StartKey)
    DEFAULT_CSS = """
    StartScreen { layout: vertical; background: $background; }
    StartScreen #top { height: 1; background: $panel; padding: 0 1; text-wrap: nowrap; }
    StartScreen #offers {
        height: 1fr; padding: 0 1; border: none; background: $background; color: $cockpit-text;
        scrollbar-size: 1 1; scrollbar-gutter: stable;
    }
    StartScreen #offers:focus { background-tint: transparent; border: none; }
    StartScreen #offers > .option-list--option-disabled { color: $cockpit-text; }
    StartScreen #offers > .option-list--option-highlighted {
        color: $cockpit-strong; background: $cockpit-band; text-style: none;
    }
    StartScreen #about { height: 6; padding: 0 2; border-top: solid $cockpit-rule; color: $cockpit-text; }
    StartScreen.-low #about { height: 5; }
    StartScreen.-tiny #about { height: 3; }
    StartScreen #message { height: auto; max-height: 2; padding: 0 2; color: $cockpit-strong; text-style: bold; }
    StartScreen #message.-bad { color: $cockpit-warn; }
    StartScreen #message.-none { display: none; }
    StartScreen #keys { height: 1; background: $panel; padding: 0 1; text-wrap: nowrap; link-style: none; }
    """

    def __init__(
        self,
        load: Callable[[], StartChoices],
        *,
        check_url: Callable[[str], object] = url_of,
        stamp: Callable[[], object] = lambda: None,
        servers: Callable[[], Sequence[LocalServer]] = tuple,
        message: str = "",
        bad: bool = False,
        at: Choice | None = None,
        ssh_config: Path | None = None,
        now: Callable[[], dt.datetime] = dt.datetime.now,
    ) -> None:
        super().__init__()
        self._load = load
        self._check_url = check_url
        self._stamp = stamp
        self._find_servers = servers
        self._seen: object = None
        self._now = now
        self._ssh_config = ssh_config
        self._at = at
        self._message = (message, bad)
        self._offers: StartChoices | None = None
        self._text = ""
        self._all_recordings = False
        # Lines of the list; None: a heading.
        self._lines: list[tuple[Line, StartChoice | None]] = []
        self._marked: int | None = None

    def compose(self) -> ComposeResult:
        yield Static(id="top")
        yield OptionList(id="offers", compact=True)
        yield Static(id="about")
        yield Static(id="message", classes="-none")
        yield Static(id="keys")

    async def on_mount(self) -> None:
        self.show_message(*self._message)
        self.fill()
        self.query_one(OptionList).focus()
        self._servers = asyncio.create_task(asyncio.to_thread(self._find_servers))
        self.run_worker(self._find())
        self.run_worker(self._watch())

    def on_resize(self, event: Resize) -> None:
        self.set_class(event.size.height < _HIGH, "-low")
        self.set_class(event.size.height < _LOW, "-tiny")
        self.call_after_refresh(self.fill)

    async def _watch(self) -> None:
        """Reload the choices whenever a profile was added, removed or edited, and after a slow search for servers."""
        while True:
            await asyncio.sleep(_WATCH_INTERVAL)
            if self._offers is not None and await self._version() != self._seen:
                await self._find()

    async def _version(self) -> object:
        return await asyncio.to_thread(self._stamp), self._servers.done()

    async def _find(self) -> None:
        await asyncio.wait([self._servers], timeout=_SERVERS_WITHIN)
        self._seen = await self._version()
        choices = await asyncio.to_thread(self._load)
        if self._servers.done():
            choices = replace(choices, servers=self._servers.result())
        selected = self.selected
        if selected is not None and (selected is not BEGIN[0] or self._offers is not None):
            # The user may have moved there.
            self._at = selected.choice
        self._offers, self._lines = choices, []
        self.fill()

    @property
    def selected(self) -> StartChoice | None:
        place = self.query_one(OptionList).highlighted
        return self._lines[place][1] if place is not None and place < len(self._lines) else None

    def show_message(self, words: str, bad: bool = False) -> None:
        """Show one line above the keys, until the next message."""
        line = self.query_one("#message", Static)
        line.update(Content(sanitize(words)))
        line.set_class(not words, "-none")
        line.set_class(bad, "-bad")

    def fill(self) -> None:
        """Lay out all choices for the current size; the selection stays."""
        listing = self.query_one(OptionList)
        width = self.size.width - 3
        if width < 8:
            return
        selected = self.selected
        wanted = selected.choice if selected else self._at
        groups = self._sections()
        columns = widths(groups, width)
        self._lines, self._marked = [], None
        listing.clear_options()
        for section in groups:
            self._put(section, columns, width)
        listing.add_options([Option(content([line]), disabled=offer is None) for line, offer in self._lines])
        listing.highlighted = self._place(wanted)
        self._mark(listing.highlighted)
        self._show_keys()
        self._show_about()

    def _sections(self) -> tuple[ChoiceGroup, ...]:
        most = None if self._all_recordings or self._text else self._few_recordings
        return sections(self._offers, self._text, most)

    @property
    def _few_recordings(self) -> int:
        return _RECORDINGS if self.size.height >= _HIGH else _RECORDINGS_LOW

    def _put(self, section: ChoiceGroup, columns: Widths, width: int) -> None:
        lines = self._lines
        if lines and self.size.height >= _HIGH:
            lines.append((EMPTY, None))
        lines.append((heading(section, width), None))
        lines += [((("  ", "key"), *row(offer, columns, width - 2, self._now())), offer) for offer in section.choices]
        if not section.choices:
            words = "loading …" if self._offers is None else section.empty
            lines.append(((("  ", ""), (words, "dim")), None))

    def _mark(self, place: int | None) -> None:
        """Mark the selected line with a sign, because not everybody sees colours."""
        listing = self.query_one(OptionList)
        for at, sign in ((self._marked, "  "), (place, "▸ ")):
            if at is not None and at < len(self._lines):
                listing.replace_option_prompt_at_index(at, content([((sign, "key"), *self._lines[at][0][1:])]))
        self._marked = place

    def _place(self, wanted: Choice | None) -> int | None:
        """Return the position of the wanted choice, else of the first valid one."""
        places = [(place, offer) for place, (_, offer) in enumerate(self._lines) if offer is not None]
        chosen = [place for place, offer in places if offer.choice == wanted]
        first = [place for place, offer in places if offer.opens]
        return next(iter([*chosen, *first]), None)

    def _show_about(self) -> None:
        lines: list[Line] = [(piece,) for piece in about(self.selected, self.size.width)]
        self.query_one("#about", Static).update(content(lines))

    def _show_keys(self) -> None:
        width = self.size.width - 2
        top = (("cockpit", "strong"), ("  load, servers and tuning on one screen", "dim"))
        self.query_one("#top", Static).update(content([left_and_right(top, ((__version__, "dim"),), width)]))
        always = join_fitting(footer_entries(FOOTER_START_ALWAYS), width)
        shown: list[Line] = [((f"filter {self._text!r}, {StartKey.ALL}: show all", "warn"),)] if self._text else []
        keys = join_fitting([*shown, key_entry("Enter", "open"), *footer_entries(FOOTER_START)], width - 16)
        line = left_and_right(keys, always, width)
        self.query_one("#keys", Static).update(with_spots(content([line]), spots_of(line)))

    def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        if self.query_one(OptionList).highlighted != self._marked:
            self._mark(self.query_one(OptionList).highlighted)
        self._show_about()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        _, offer = self._lines[event.option_index]
        if offer is None:
            return
        if not offer.opens:
            self.show_message("invalid file; the reason is shown above", bad=True)
        else:
            self._open(offer)

    def action_begin(self, kind: str) -> None:
        """Start: demo, URL or new profile."""
        if kind == "demo":
            self.app.exit(Choice("demo"))
        elif kind == "new":
            # Imported on demand: asyncssh takes longer than all other imports.
            from cockpit.tui.start.new_profile import NewProfileScreen

            self.app.push_screen(NewProfileScreen(self._ssh_config), self._written)
        elif kind == "url":
            question = "URL to load, and flags of cockpit run: web1:8080/hello.html -c 20 -z 60s"
            prompt = PromptScreen(question, self._check_url)
            prompt.ask(self.app, lambda answer: self.app.exit(Choice("url", answer)))

    def _written(self, path: str | None) -> None:
        if path is not None:
            self.app.exit(Choice("profile", path))

    def commands(self) -> Iterator[Command]:
        for offer in (offer for section in sections(self._offers) for offer in section.choices):
            if offer.opens:
                yield Command(*command_words(offer), partial(self._open, offer))

    def help_screen(self) -> HelpScreen:
        opens = "open it: a profile without load at first; a recording is replayed"
        first = (("Enter", opens), ("↑ ↓", "choose"))
        last = ((str(AppKey.COMMANDS), AppKey.COMMANDS.description), (str(AppKey.THEME), "next theme"))
        return HelpScreen((*first, *keys_of(self), *last))

    def _open(self, offer: StartChoice) -> None:
        if offer.listed and offer.listed.profile:
            self._once_trusted(offer.listed.profile, lambda: self.app.exit(offer.choice))
        elif offer.choice.kind in ("profile", "recording", "server") and offer.choice.what:
            self.app.exit(offer.choice)
        else:
            self.action_begin("url" if offer.server else offer.choice.kind)

    def action_filter(self) -> None:
        """Show only entries with a text, while typing."""

        def typed(text: str) -> None:
            self._text = text.strip()
            self.fill()

        self.app.push_screen(FilterScreen("filter", self._text, typed))

    def action_next_section(self) -> None:
        """Select the first entry of the next section; after the last section, of the first."""
        place = self.query_one(OptionList).highlighted or 0
        offers = [offer for _, offer in self._lines]
        starts = [at for at in range(1, len(offers)) if offers[at] is not None and offers[at - 1] is None]
        following = [at for at in starts if at > place]
        self.query_one(OptionList).highlighted = next(iter([*following, *starts]), None)

    def action_more_recordings(self) -> None:
        """List all recent recordings, or a few again."""
        if self._offers is not None and len(self._offers.recordings) <= self._few_recordings:
            self.show_message("all recent recordings are listed; older ones: cockpit recordings list")
        self._all_recordings = not self._all_recordings
        self.fill()

    def action_doctor(self) -> None:
        """Check the target, hosts, knobs and limits of the selected profile; change nothing."""
        offer = self.selected
        if offer is None or offer.listed is None or offer.listed.profile is None:
            self.show_message(f"select a valid profile first; {StartKey.DOCTOR} checks its target and hosts")
        else:
            from cockpit.tui.start.doctor import DoctorScreen

            profile = offer.listed.profile
            self._once_trusted(profile, lambda: self.app.push_screen(DoctorScreen(profile, self._ssh_config)))

    def action_edit(self) -> None:
        """Edit the selected profile, then reload the list."""
        if (entry := self._selected_profile(f"{StartKey.EDIT} edits it")) is not None:
            self._do_to_file(partial(edit, self.app), entry.path)

    def action_delete(self) -> None:
        """Delete the selected profile, after confirmation."""
        entry = self._selected_profile(f"{StartKey.DELETE} deletes it")
        if entry is None:
            return
        if entry.origin == "shipped":
            self.show_message(f"{entry.name}: shipped profiles cannot be deleted", bad=True)
            return
        question = f"Delete the profile {sanitize(str(entry.path))}? Its recordings stay."
        confirm = ConfirmScreen(Content(question), "delete it", "keep it")
        confirm.ask(self.app, lambda _: self._do_to_file(delete, entry.path))

    def _selected_profile(self, effect: str) -> ProfileEntry | None:
        offer = self.selected
        if offer is None or offer.listed is None:
            self.show_message(f"select a profile first; {effect}")
            return None
        return offer.listed

    def _do_to_file(self, work: Callable[[Path], None], path: Path) -> None:
        try:
            work(path)
        except UsageError as error:
            self.show_message(str(error), bad=True)
        else:
            self.show_message("")
        self.run_worker(self._find())

    def _once_trusted(self, profile: Profile, go_on: Callable[[], object]) -> None:
        """Call `go_on` once the profile is trusted."""

        def answered(accepted: bool | None) -> None:
            if accepted:
                go_on()
            else:
                self.show_message(f"{profile.name}: not trusted; nothing was run and no host was contacted")

        if is_trusted(profile):
            go_on()
        else:
            self.app.push_screen(TrustScreen(profile), answered)

    def action_all(self) -> None:
        """Show all entries again."""
        self._text, self._all_recordings = "", False
        self.show_message("")
        self.fill()
