"""The keys of the hosts: selection, list below the metrics, position in it."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType

from cockpit.tui import navigation
from cockpit.tui.charts.keys import OverTime
from cockpit.tui.dialogs.prompt import FilterScreen
from cockpit.tui.hosts.panes import HostPanes


class OverHosts(OverTime):
    """A screen with hosts beside its charts, or below them as a line each."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "host(1)", "next host"),
        Binding("shift+tab", "host(-1)", "host before"),
        Binding("p", "room", "larger"),
        Binding("d", "detail(1)", "next detail"),
        Binding("D", "detail(-1)", "detail before"),
        Binding("enter", "enter", "into the detail"),
        Binding("w", "averages", "averages"),
        Binding("f", "freeze", "freeze"),
        Binding("slash", "filter", "filter"),
        Binding("s", "order", "sort"),
        Binding("S", "turn", "sort the other way"),
        Binding("pageup", "page(-1)", "page up"),
        Binding("pagedown", "page(1)", "page down"),
        Binding("g", "far(-1)", "top"),
        Binding("G", "far(1)", "bottom"),
    ]

    def found_out(self, name: str) -> None:
        """No hint is needed for that any more."""
        raise NotImplementedError

    def hosts_beside(self) -> bool:
        """Whether there is room for hosts beside the charts."""
        raise NotImplementedError

    def action_order(self) -> None:
        """The next order of the processes."""
        self._look(navigation.next_order(self.view))

    def action_turn(self) -> None:
        """The processes the other way round."""
        self._look(navigation.turned(self.view))

    def action_filter(self) -> None:
        """Only some of the processes, as one types."""
        if not self._has_hosts():
            return
        before = self.view.filter

        def typed(text: str) -> None:
            self._look(navigation.filtered(self.view, text))

        def answered(text: str | None) -> None:
            typed(before if text is None else text)

        self.app.push_screen(FilterScreen("processes with", before, typed), answered)

    def action_host(self, step: int) -> None:
        """Looks at the next host."""
        self._look(navigation.next_host(self.scene(), step))

    def action_room(self) -> None:
        """The selected host on the whole screen, then all of them, then back."""
        if self._has_hosts():
            self._look(navigation.next_room(self.scene()))

    def action_detail(self, step: int) -> None:
        """Next list below the selected host."""
        self.found_out("detail")
        if self._has_hosts():
            scene = self.scene()
            self._look(navigation.next_detail(scene, step) if self._in_sight() else navigation.first_detail(scene))

    def action_enter(self) -> None:
        """The arrows act on that detail, or on the runs table again."""
        if self._has_hosts():
            self._look(navigation.entered(self.scene(), alone=not self.hosts_beside()))

    def action_averages(self) -> None:
        """Averages of the selected segment instead of every list."""
        if self._has_hosts():
            scene = self.scene()
            self._look(navigation.averages(scene) if self._in_sight() else navigation.averages_alone(scene))

    def action_freeze(self) -> None:
        """Freeze what is shown of the hosts, or continue."""
        if self._has_hosts():
            self._look(navigation.frozen(self.scene()))

    def _in_sight(self) -> bool:
        """Whether a host is more than a line, or will be in the next frame."""
        return self.view.room != "column" or self.hosts_beside()

    def _has_hosts(self) -> bool:
        if not self.session.shown.hosts:
            self.say("no host is watched: [[host]] in a profile adds one; cockpit new writes a profile with yours")
        return bool(self.session.shown.hosts)

    def action_page(self, step: int) -> None:
        """A page up or down in the detail."""
        if self._inside():
            self._scroll(step * max(1, self.query_one(HostPanes).reach.page - 1))

    def action_far(self, step: int) -> None:
        """To the first or the last line of the detail."""
        if self._inside():
            self._scroll(step * (self.query_one(HostPanes).reach.most + 1))

    def _inside(self) -> bool:
        return self.view.inside and bool(self.session.shown.hosts)

    def _scroll(self, lines: int) -> None:
        self._look(navigation.scrolled(self.scene(), lines, self.query_one(HostPanes).reach))
