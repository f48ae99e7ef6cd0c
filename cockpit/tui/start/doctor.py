"""The doctor's findings subject a profile, shown as they arrive."""

from __future__ import annotations

from pathlib import Path
from textwrap import wrap
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from cockpit.model.text import sanitize
from cockpit.profiles.profile import Profile
from cockpit.setup.doctor import diagnose
from cockpit.setup.finding import Finding, Severity, summary_line
from cockpit.tui.background import Background
from cockpit.tui.dialogs.prompt import Dialog
from cockpit.tui.key_names import close_binding, key_hints
from cockpit.tui.key_table import DialogKey, StartKey
from cockpit.tui.terminal.styled_line import fit

_WORDS: dict[Severity, tuple[str, str]] = {
    "ok": ("ok   ", "$cockpit-dim"),
    "note": ("note ", "bold $cockpit-mark"),
    "error": ("ERROR", "bold $cockpit-alarm"),
}
# Width (cells) of the panel, and maximum width of a finding's subject.
_WIDTH, _SUBJECT = 108, 24


class DoctorScreen(Dialog[None]):
    """Shows the findings of `cockpit doctor`; closing the screen stops the checks."""

    BINDINGS: ClassVar[list[BindingType]] = [close_binding(StartKey.DOCTOR, "enter")]
    DEFAULT_CSS = """
    DoctorScreen > VerticalScroll { width: 108; }
    DoctorScreen Static { width: 1fr; height: auto; }
    """

    def __init__(self, profile: Profile, ssh_config: Path | None) -> None:
        super().__init__()
        self.profile = profile
        self.ssh_config = ssh_config
        self.findings: list[Finding] = []
        self.over = False
        self._background = Background()

    def compose(self) -> ComposeResult:
        with VerticalScroll() as room:
            room.border_title = Content(f"doctor: {sanitize(self.profile.name)}")
            room.border_subtitle = key_hints(("↑ ↓", " scroll"), (DialogKey.CLOSE, " close"))
            yield Static(id="text")

    def on_mount(self) -> None:
        self._show()
        self._background.run(self, self._examine())

    async def on_unmount(self) -> None:
        await self._background.end()

    async def _examine(self) -> None:
        async for finding in diagnose(self.profile, self.ssh_config):
            self.findings.append(finding)
            self._show()
        self.over = True
        self._show()

    def on_resize(self) -> None:
        self._show()

    def _show(self) -> None:
        room = min(_WIDTH, self.app.size.width) - 5
        wide = max((len(sanitize(finding.subject, _SUBJECT)) for finding in self.findings), default=0)
        pieces: list[str | tuple[str, str]] = []
        for finding in self.findings:
            word, style = _WORDS[finding.level]
            indent = len(word) + wide + 4
            subject = f"  {fit(sanitize(finding.subject, _SUBJECT), wide)}  "
            pieces += [
                (word, style),
                (subject, "$cockpit-dim"),
                _wrapped(sanitize(finding.text, 400), indent, room),
                "\n",
            ]
            if finding.fix:
                fix = _wrapped(f"→ {sanitize(finding.fix, 400)}", indent, room)
                pieces += [" " * indent, (fix, "$cockpit-chart"), "\n"]
        pieces.append((summary_line(self.findings) if self.over else "checking …", "bold"))
        # No text is left if a finding arrives while the screen closes.
        for text in self.query("#text").results(Static):
            text.update(Content.assemble(*pieces))


def _wrapped(text: str, indent: int, room: int) -> str:
    return f"\n{' ' * indent}".join(wrap(text, max(20, room - indent)) or [""])
