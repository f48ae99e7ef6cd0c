"""The screen: a reader of a session, live or replayed, that it also runs."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from rich.console import RenderableType
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.app import App
from textual.binding import Binding, BindingType
from textual.command import Provider
from textual.driver import Driver
from textual.filter import Monochrome, NoColor
from textual.notifications import SeverityLevel
from textual.screen import Screen

from cockpit.model.errors import UsageError
from cockpit.model.text import neutral
from cockpit.session import settings
from cockpit.session.loop import EndOfSession, Session
from cockpit.tui import theme
from cockpit.tui.glyphs import Ascii
from cockpit.tui.hints import Hints
from cockpit.tui.keys import show_help
from cockpit.tui.look import Look
from cockpit.tui.palette import STYLE, Everything
from cockpit.tui.screens.main import MainScreen
from cockpit.tui.terminal import Terminal
from cockpit.tui.updates import Picture, Sent

# What ends the screen as ctrl+c does: load stopped, recording closed, terminal as before.
_SIGNALS = (signal.SIGINT, signal.SIGTERM)

# Seconds between two looks whether the terminal is still there.
_LOOK = 1.0

# A terminal that does not take a frame for so long (s) is behind: it misses frames until it has taken it.
_BEHIND = 0.1
# It has to miss so many in a row until the screen becomes lite by itself.
_MISSED = 4
_LITE = "fewer frames and plainer charts (--no-lite: all of them)"


class CockpitApp(App[object]):
    """Runs the session and shows it. `interrupted` is whether ctrl+c or a signal ended it.

    `autostart` names an action of the session's controls to carry out once the screen is up. `hints` are shown to
    those who are new to it. When the session fails, the screen ends and `run()` raises what it failed with.
    """

    TITLE = "cockpit"
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {Everything}
    CSS = STYLE + WITHOUT_COLOURS
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+q", "leave", "quit", priority=True, show=False),
        Binding("ctrl+c", "leave(True)", "quit", priority=True, show=False),
        Binding("f1", "help", "help", priority=True, show=False),
        Binding("question_mark", "help", "help", show=False),
        Binding("ctrl+l", "redraw", "draw anew", priority=True, show=False),
    ]

    def __init__(
        self, session: Session, *, autostart: str = "", hints: Hints | None = None, look: Look | None = None
    ) -> None:
        self.look = look or Look()
        super().__init__(driver_class=Terminal)
        self.session = session
        self.autostart = autostart
        self.hints = hints
        self.interrupted = False
        self.failure: BaseException | None = None
        self.lite = self.look.lite
        self.hung_up = False
        self._missed = 0
        self._picture = Picture()
        self._session_task: asyncio.Task[None] | None = None
        self._leaving: asyncio.Task[None] | None = None
        self.animation_level = "none"
        self._filters = [NoColor() if isinstance(one, Monochrome) else one for one in self._filters]
        if self.look.ascii:
            self._filters.append(Ascii(self.look.encoding))
        for name in theme.NAMES:
            self.register_theme(theme.theme(name, self.look.colours))
        self.theme = self.look.theme

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        super()._display(screen, self._frugal(renderable))

    def _frugal(self, update: RenderableType | None) -> Any:
        """The update as what it takes from the picture that the terminal shows."""
        if not isinstance(self._driver, Terminal) or self._batch_count or not self._running or self._closed:
            return update
        if isinstance(update, LayoutUpdate):
            return Sent(self._picture.whole(update, self.console, self.size))
        return Sent(self._picture.parts(update, self.console)) if isinstance(update, ChopsUpdate) else update

    def action_redraw(self) -> None:
        """The whole screen anew, for a terminal on which something else was written."""
        self._picture.forget()
        self.refresh(layout=True)

    def forget_picture(self) -> None:
        """The terminal may show anything from now on."""
        self._picture.forget()

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return theme.VARIABLES

    def get_default_screen(self) -> MainScreen:
        return MainScreen(self.session, self.autostart, self.hints)

    def on_mount(self) -> None:
        self._session_task = asyncio.create_task(self.session.run())
        self._session_task.add_done_callback(self._session_over)
        self.set_interval(_LOOK, self._look_at_terminal)
        for notice in self.look.notices:
            self.tell(notice, severity="warning")
        if self.lite:
            self.tell(f"lite: {self.look.why}; {_LITE}")

    async def on_unmount(self) -> None:
        if not self._outlives:
            await self._end_session()

    async def run_async(self, **options: Any) -> object:
        with _handled(self._signalled, self.lost_terminal):
            returned = await super().run_async(**{"mouse": self.look.mouse, **options})
            if self._outlives:
                await self._live_on()
        if self.failure is not None:
            raise self.failure
        return returned

    def action_help(self) -> None:
        """The keys of the screen on top."""
        show_help(self)

    def tell(self, words: str, severity: SeverityLevel = "information", timeout: float = 10) -> None:
        """A notice; what servers sent is made harmless."""
        self.notify(neutral(words), severity=severity, timeout=timeout, markup=False)

    def action_leave(self, interrupted: bool = False) -> None:
        """Ends the session, then the screen; asked a second time, does not wait for the session."""
        self.interrupted |= interrupted
        if self._leaving is not None:
            self.exit()
            return
        self.notify("ending …", timeout=60)
        self._leaving = asyncio.create_task(self._leave())

    def action_theme(self, name: str) -> None:
        """Another theme, from now on and in later sessions. Raises UsageError for one that there is not."""
        if name not in theme.NAMES:
            raise UsageError(f"{name!r}: is no theme; there are {', '.join(theme.NAMES)}")
        self.theme = name
        try:
            settings.remember({"theme": name})
            self.tell(f"theme: {name}", timeout=3)
        except UsageError as error:
            self.tell(f"theme: {name}; {error}", severity="warning")

    def action_next_theme(self) -> None:
        """The theme after the one in force."""
        at = theme.NAMES.index(self.theme) if self.theme in theme.NAMES else -1
        self.action_theme(theme.NAMES[(at + 1) % len(theme.NAMES)])

    def keeps_up(self) -> bool:
        """Whether the terminal has taken what was sent to it. Where it often has not, the screen becomes lite."""
        driver: Driver | None = self._driver
        if not isinstance(driver, Terminal) or driver.waiting < _BEHIND:
            self._missed = 0
            return True
        self._missed += 1
        if self._missed >= _MISSED and self.look.may_lite and not self.lite:
            self.lite = True
            self.tell(f"lite: the terminal takes {driver.waiting:.0f} s for a frame; {_LITE}")
        return False

    def lost_terminal(self) -> None:
        """The terminal went away, or SIGHUP says so: the session ends or goes on by itself, as `look.outlive` says."""
        if isinstance(self._driver, Terminal) and self._driver.is_gone():
            self._driver.let_go()
        if self.hung_up:
            return
        self.hung_up = True
        if self._outlives:
            self.exit()
        else:
            self.action_leave(True)

    @property
    def _outlives(self) -> bool:
        return self.hung_up and self.look.outlive and self._leaving is None

    async def _live_on(self) -> None:
        """Without a screen, until what was begun is over, or a signal."""
        if not self.interrupted:
            self._leaving = asyncio.create_task(self._finish())
            await asyncio.wait([self._leaving])
        await self._end_session()

    async def _finish(self) -> None:
        """Until the run has come to its end."""
        with contextlib.suppress(EndOfSession):
            await self.session.until(lambda state: state.running is None)

    def _signalled(self) -> None:
        if self._running:
            self.action_leave(True)
        else:
            self.interrupted = True
            if self._leaving is not None:
                self._leaving.cancel()

    def _look_at_terminal(self) -> None:
        if isinstance(self._driver, Terminal) and self._driver.is_gone():
            self.lost_terminal()

    async def _leave(self) -> None:
        await self._end_session()
        self.exit()

    async def _end_session(self) -> None:
        """What the session fails with is kept by `_session_over`."""
        if self._session_task is not None:
            self._session_task.cancel()
            await asyncio.wait([self._session_task])

    def _session_over(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (failure := task.exception()) is not None:
            self.failure = failure
            self.exit()


@contextlib.contextmanager
def _handled(signalled: Callable[[], None], hung_up: Callable[[], None]) -> Iterator[None]:
    """What is done on SIGINT and SIGTERM, and on SIGHUP. Only the main thread is sent any."""
    loop = asyncio.get_running_loop()
    handlers = {**dict.fromkeys(_SIGNALS, signalled), signal.SIGHUP: hung_up}
    with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
        for number, handler in handlers.items():
            loop.add_signal_handler(number, handler)
    try:
        yield
    finally:
        for number in handlers:
            loop.remove_signal_handler(number)
