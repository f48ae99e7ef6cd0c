"""Commands on a pseudo-terminal: exit codes, messages after the screen, signals, hangups, the pager, and Ctrl-Z."""

import contextlib
import io
import os
import re
import shlex
import signal
import sys
import termios
from pathlib import Path

import pytest

from cockpit.cli.terminal import emit_text
from cockpit.model import events as ev
from cockpit.recording.reader import Recording
from tests.cli.terminals import COCKPIT, cockpit_on_terminal, on_terminal, wait_for_responses
from tests.commands import cockpit


@pytest.mark.parametrize(("key", "code"), [(b"\x03", 130), (b"\x11", 0)])
def test_exit_code_of_replay(key: bytes, code: int) -> None:
    with cockpit_on_terminal("replay", RECORDING) as screen:
        screen.until(b"REPLAY")
        screen.type(key)
        assert screen.end() == code, screen.shown


@pytest.mark.parametrize("kept", ["in the library", "in a file", "nowhere"])
def test_recording_and_replay_command_are_printed_after_screen(url: str, tmp_path: Path, kept: str) -> None:
    file = tmp_path / "my own.cockpit"
    flags = {"in the library": (), "in a file": ("--record", file), "nowhere": ("--no-record",)}[kept]
    state = {"XDG_STATE_HOME": str(tmp_path)}
    with cockpit_on_terminal("run", url, "-n", "50", "--start", *flags, environment=state) as screen:
        screen.until(b"LIVE idle")
        screen.type(b"q")
        assert screen.end() == 0
    assert b"\x1b[?1000h" in screen.shown, "the screen captures the mouse by default"
    output = screen.shown.decode()
    assert ("cockpit: recorded in" in output) is (kept != "nowhere")
    if kept == "in the library":
        name = output.partition("replay it: cockpit replay ")[2].split()[0]
        assert (tmp_path / "webcockpit/recordings" / f"{name}.cockpit").is_file()
    if kept == "in a file":
        assert f"replay it: cockpit replay '{file}'" in output and file.is_file()


def test_lite_screen_in_ascii_without_mouse(url: str) -> None:
    options = ("-n", "50", "--lite", "--ascii", "--no-mouse")
    with cockpit_on_terminal("run", url, *options, size=(100, 30)) as screen:
        screen.until(b"--no-lite")
        screen.until(b"No runs yet")
        screen.type(b" ")
        screen.until(b"req/s")
        screen.type(b"q")
        assert screen.end() == 0
        drawn = screen.shown[: screen.shown.index(b"\x1b[?1049l")]
        assert drawn.isascii()
        assert b"lite" in drawn
        assert b"\x1b[?1000h" not in drawn, "the mouse is not captured"


@pytest.mark.parametrize("command", ["demo", "run"])
def test_screen_is_shown_with_stderr_redirected(url: str, tmp_path: Path, command: str) -> None:
    log = tmp_path / "stderr"
    arguments = ("demo",) if command == "demo" else ("run", url, "-n", "50", "--start")
    with cockpit_on_terminal(*arguments, environment={"XDG_STATE_HOME": str(tmp_path)}, err=log) as screen:
        screen.until(b"No runs yet" if command == "demo" else b"baseline")
        screen.type(b"\x11")
        assert screen.end() == 0
    text = log.read_text()
    assert "recorded in" in text and "\x1b" not in text
    assert f"replay it: cockpit replay {'demo' if command == 'demo' else '127.0.0.1'}-" in text


def test_demo_and_topic_without_terminal() -> None:
    done = cockpit("demo")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "cockpit: demo: stdin and stdout must be a terminal; redirect stderr only (2>file)\n"
    done = cockpit("help", "load")
    assert done.returncode == 0 and done.stdout.startswith("# load:") and "\x1b" not in done.stdout


PAGER = "sh -c 'grep -c . >/dev/null && echo the pager was here'"


@pytest.mark.parametrize(
    ("pager", "rows", "paged"),
    [(PAGER, 24, True), ("/nowhere/pager", 24, False), ("'unclosed", 24, False), ("", 24, False), (PAGER, 500, False)],
)
def test_topic_that_does_not_fit_is_paged(pager: str, rows: int, paged: bool) -> None:
    with cockpit_on_terminal("help", "load", size=(80, rows), environment={"PAGER": pager, "LINES": "0"}) as terminal:
        assert terminal.end() == 0
    shown = terminal.shown.decode()
    assert ("the pager was here" in shown) == paged and ("closed load" in shown) != paged
    if not paged:
        assert "# load:" not in shown and "|---|" not in shown and "\x1b[1m" in shown, "formatted, not Markdown"
        assert max(map(len, re.sub(r"\x1b\[[0-9;]*m", "", shown).splitlines())) <= 80


# Terminal modes that a shell without line editing needs.
_COOKED = termios.ICANON | termios.ECHO | termios.ISIG


def test_ctrl_z_suspends_to_shell_and_fg_resumes(tmp_path: Path) -> None:
    command = shlex.join([*COCKPIT, "replay", str(RECORDING), "--paused"])
    environment = {
        "PS1": "shell> ",
        "ENV": "",
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "XDG_STATE_HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path),
        "TEXTUAL_ANIMATIONS": "none",
    }
    with on_terminal(["/bin/sh", "-i"], environment=environment) as terminal:
        terminal.until(b"shell> ")
        terminal.type(command.encode() + b"\n")
        terminal.until(b"throughput")
        assert not termios.tcgetattr(terminal.terminal)[3] & termios.ICANON
        terminal.shown = b""
        terminal.type(b"\x1a")
        shown = terminal.until(b"shell> ")
        assert b"\x1b[?1049l" in shown and b"\x1b[?25h" in shown, "the screen is left, the text cursor is shown"
        assert b"topped" in shown
        assert termios.tcgetattr(terminal.terminal)[3] & _COOKED == _COOKED
        terminal.type(b"echo as before\n")
        terminal.until(b"\nas before")
        terminal.shown = b""
        terminal.type(b"fg\n")
        shown = terminal.until(b"throughput")
        assert b"\x1b[?1049h" in shown
        terminal.until(b"quit")
        terminal.shown = b""
        terminal.type(b"q")
        terminal.until(b"shell> ")
        terminal.type(b"exit\n")
        assert terminal.end() == 0


def test_ctrl_l_redraws_exactly_the_screen_left_by_dialogs() -> None:
    with cockpit_on_terminal("replay", RECORDING, "--paused", "--no-lite") as terminal:
        terminal.until_screen("base now")
        for key, words in ((b"?", "Esc close"), (b"?", "space pause/resume")):
            terminal.type(key)
            terminal.until_screen(words)
        before = terminal.picture()
        terminal.type(b"\x0c")
        terminal.until_redrawn(before)
        terminal.type(b"q")
        assert terminal.end() == 0


def test_ctrl_z_without_job_control_does_not_stop() -> None:
    with cockpit_on_terminal("replay", RECORDING, "--paused") as terminal:
        # It opens at the first load.
        terminal.until_screen("base now")
        terminal.type(b"\x1a")
        terminal.until(b"job control")
        terminal.type(b"q")
        assert terminal.end() == 0


RECORDING = Path(__file__).parents[1] / "recordings" / "spare-servers.cockpit"


def run_end(file: Path) -> tuple[str, int]:
    """Return the end reason and completed requests of the only run; check that the recording was closed."""
    with Recording(file) as recording:
        assert recording.ended and not recording.damage
        events = list(recording.events())
    (end,) = [event for event in events if isinstance(event, ev.RunEnded)]
    return end.reason, sum(event.completed for event in events if isinstance(event, ev.Tick))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_closes_recording_and_restores_terminal(url: str, tmp_path: Path, number: int) -> None:
    file, profile = tmp_path / "session.cockpit", tmp_path / "p.toml"
    profile.write_text(f'[target]\nurl = "{url}"\n')
    with cockpit_on_terminal("run", profile, "--record", file) as screen:
        screen.until(b"throughput")
        os.kill(screen.process.pid, number)
        assert screen.end() == 130
    assert screen.shown.index(b"\x1b[?1049h") < screen.shown.index(b"\x1b[?1049l")
    with Recording(file) as recording:
        assert recording.ended


@pytest.mark.parametrize("controlling", [True, False], ids=["SIGHUP", "no SIGHUP"])
@pytest.mark.parametrize("hangup", ["stop", "continue"])
def test_hangup_during_run(url: str, tmp_path: Path, hangup: str, controlling: bool) -> None:
    file = tmp_path / "session.cockpit"
    stops = hangup == "stop"
    flags = (
        "--start",
        "-q",
        "100",
        "--on-hangup",
        hangup,
        "--record",
        file,
        *(("-z", "10m") if stops else ("-n", "200")),
    )
    with cockpit_on_terminal("run", url, *flags, controlling=controlling) as screen:
        screen.until(b"req/s")
        screen.close()
        code = screen.end()
    reason, done = run_end(file)
    assert (code, reason) == ((130, "stopped") if stops else (0, "completed"))
    assert stops or done == 200


def test_run_after_sighup_restores_terminal_and_stops_on_sigterm(url: str, tmp_path: Path) -> None:
    file = tmp_path / "session.cockpit"
    flags = ("--start", "-q", "100", "-z", "10m", "--on-hangup", "continue", "--record", file)
    with cockpit_on_terminal("run", url, *flags) as screen:
        screen.until(b"req/s")
        os.kill(screen.process.pid, signal.SIGHUP)
        screen.until(b"\x1b[?1004l")
        assert screen.shown.index(b"\x1b[?1049h") < screen.shown.index(b"\x1b[?1049l")
        screen.close()
        os.kill(screen.process.pid, signal.SIGTERM)
        assert screen.end() == 130
    assert run_end(file)[0] == "stopped"


def test_repeated_hangup_keeps_summary_and_recording(url: str, tmp_path: Path) -> None:
    file, output = tmp_path / "s.cockpit", tmp_path / "summary"
    flags = ("-z", "10m", "--no-tui", "--record", file)
    with cockpit_on_terminal("run", url, *flags, out=output) as screen:
        wait_for_responses(file, screen.process)
        screen.close()
        for _ in range(20):
            with contextlib.suppress(ProcessLookupError):
                os.kill(screen.process.pid, signal.SIGHUP)
        assert screen.end() == 130
    assert "0 failed" in output.read_text()
    assert run_end(file)[0] == "stopped"


@pytest.mark.parametrize(("arguments", "shown"), [((), b"profiles"), (("replay", RECORDING), b"REPLAY")])
def test_start_screen_and_replay_exit_on_hangup(arguments: tuple[str | Path, ...], shown: bytes) -> None:
    with cockpit_on_terminal(*arguments, controlling=False) as screen:
        screen.until(shown)
        screen.close()
        assert screen.end() == 130


def test_reports_are_coloured_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for isatty, environment, expected in (
        (True, {"NO_COLOR": "", "TERM": "xterm"}, "\x1b[32mok\x1b[m plain\n"),
        (True, {"NO_COLOR": "1", "TERM": "xterm"}, "ok plain\n"),
        (True, {"NO_COLOR": "", "TERM": "dumb"}, "ok plain\n"),
        (False, {"NO_COLOR": "", "TERM": "xterm"}, "ok plain\n"),
    ):
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        stream = io.StringIO()
        monkeypatch.setattr(stream, "isatty", lambda isatty=isatty: isatty)
        monkeypatch.setattr(sys, "stdout", stream)
        emit_text(lambda paint: f"{paint('ok', 'good')} {paint('plain', '')}")
        assert stream.getvalue() == expected
