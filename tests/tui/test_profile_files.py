"""Profiles are written, edited and deleted on the start screen, with a real survey of the demo's host over SSH."""

import asyncio
import os
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from textual.pilot import Pilot
from textual.widgets import Input, Static

from cockpit.demo.servers import DemoServers
from cockpit.hosts.target_host import is_on_host
from cockpit.model.host.samples import HostConfig
from cockpit.profiles import catalogue
from cockpit.profiles.reader import read_profile
from cockpit.setup.profile_draft import HERE, host_name, hosts_named
from cockpit.tui.dialogs.checklist import Checklist, ChecklistItem
from cockpit.tui.dialogs.prompt import ConfirmScreen
from cockpit.tui.start.app import StartApp
from cockpit.tui.start.choices import Choice, StartChoices
from cockpit.tui.start.new_profile import FoundServersScreen, NewProfileScreen
from cockpit.tui.start.screen import StartScreen
from tests.cli.terminals import on_terminal
from tests.cli.test_headless import COCKPIT
from tests.commands import cockpit
from tests.tui.driving import press, until, wait_idle
from tests.tui.screens import rendered_text
from tests.tui.test_start import exit_choice, running_start_app, start_app, start_screen, widget_text

ROOT = Path(__file__).parents[2]
PROFILE = 'question = "{}"\n[target]\nurl = "http://127.0.0.1:1/"\n'


@pytest.fixture(autouse=True)
def workdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create two profiles in the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("aaa", "bbb"):
        (tmp_path / f"{name}.toml").write_text(PROFILE.format(f"What of {name}?"))
    return tmp_path


def choices() -> StartChoices:
    return StartChoices(catalogue.listed())


async def select(pilot: Pilot[Choice], name: str) -> None:
    """Move down to a profile."""
    while selected(pilot) != name:
        await press(pilot, "down")


def selected(pilot: Pilot[Choice]) -> str:
    """Return the name of the selected profile."""
    item = start_screen(pilot).selected
    return item.listed.name if item is not None and item.listed is not None else ""


async def test_profile_files_are_listed_edited_and_deleted(workdir: Path) -> None:
    app = start_app(choices(), stamp=catalogue.stamp)
    app._first._load = choices
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: "What of bbb?" in widget_text(pilot, "OptionList"))
        await select(pilot, "bbb")
        for question in ("Is it new?", "Is it edited?"):
            (workdir / "abc.toml").write_text(PROFILE.format(question))
            await until(pilot, lambda question=question: question in widget_text(pilot, "OptionList"))  # type: ignore[misc]
        assert selected(pilot) == "bbb"
        await pilot.press("delete")
        await until(pilot, lambda: isinstance(app.screen, ConfirmScreen))
        assert "bbb.toml" in str(app.screen.query(Static).first().content)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is start_screen(pilot))
        assert (workdir / "bbb.toml").exists()
        await pilot.press("delete")
        await until(pilot, lambda: isinstance(app.screen, ConfirmScreen))
        await pilot.press("y")
        await until(pilot, lambda: "What of bbb?" not in widget_text(pilot, "OptionList"))
        assert not (workdir / "bbb.toml").exists() and (workdir / "aaa.toml").exists()
        await select(pilot, "atime")
        await pilot.press("delete")
        await until(pilot, lambda: "shipped profiles cannot be deleted" in widget_text(pilot, "#message"))


def test_editor_gets_terminal_and_list_is_refreshed(workdir: Path) -> None:
    editor = workdir / "editor.sh"
    editor.write_text('#!/bin/sh\nstty -a | grep -c " icanon" \nsed -i "s/What of/What became of/" "$1"\n')
    editor.chmod(0o755)
    environment = {
        "EDITOR": str(editor),
        "VISUAL": "",
        "PYTHONPATH": str(ROOT),
        "XDG_STATE_HOME": str(workdir),
        "TEXTUAL_ANIMATIONS": "none",
    }
    with on_terminal(COCKPIT, environment=environment) as terminal:
        terminal.until(b"What of bbb?")
        terminal.type(b"/aaa\r")
        terminal.until(b"Esc: show all")
        terminal.shown = b""
        terminal.type(b"E")
        shown = terminal.until(b"became of aaa?")
        assert b"\x1b[?1049l" in shown and b"1\r\n" in shown, "the editor has the terminal in canonical mode"
        assert "What became of aaa?" in (workdir / "aaa.toml").read_text()
        assert "What of bbb?" in (workdir / "bbb.toml").read_text()
        terminal.type(b"q")
        assert terminal.end() == 0


@asynccontextmanager
async def profile_form(
    ssh_config: Path, url: str, size: tuple[int, int] = (120, 40)
) -> AsyncIterator[tuple[Pilot[Choice], StartApp]]:
    """Open the form for a new profile, with the URL typed."""
    async with running_start_app(StartChoices(), size, ssh_config=ssh_config) as (pilot, app):
        await pilot.press("n")
        await until(pilot, lambda: isinstance(app.screen, NewProfileScreen) and isinstance(app.focused, Input))
        await pilot.press(*url)
        await wait_idle(pilot)
        yield pilot, app


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world() -> AsyncIterator[DemoServers]:
    async with DemoServers() as started:
        yield started


async def test_url_and_host_make_tunable_profile(workdir: Path, world: DemoServers) -> None:
    async with profile_form(world.ssh_config, world.url) as (pilot, app):
        hosts = app.screen.query_one("#hosts", Checklist)
        hosts.focus()
        assert "[ ] this machine" in rendered_text(app) and "[ ] demo" in rendered_text(app)
        await pilot.press("down", "space", "enter")
        await until(pilot, lambda: isinstance(app.screen, FoundServersScreen))
        await wait_idle(pilot)
        assert "the demo's prefork server" in rendered_text(app)
        assert re.search(r"\[x\] MaxSpareServers +10 ", rendered_text(app))
        await pilot.press("space", "tab", *"Is it?")
        await wait_idle(pilot)
        assert 'question = "Is it?"' in rendered_text(app)
        await pilot.press("enter")
        assert await exit_choice(pilot, app) == Choice("profile", str(workdir / "config/webcockpit/profiles/demo.toml"))
        profile = read_profile(workdir / "config/webcockpit/profiles/demo.toml")
        assert (profile.question, profile.plan.url, profile.plan.duration) == ("Is it?", world.url, 30.0)
        assert [host.ssh for host in profile.hosts] == ["demo"]
        assert [knob.name for knob in profile.knobs] == ["MaxSpareServers", "MaxRequestsPerChild", "MaxClients"]
        doctor = await asyncio.to_thread(cockpit, "doctor", "demo", "--ssh-config", world.ssh_config)
        assert doctor.returncode == 0, doctor.stdout + doctor.stderr


async def test_unknown_server_on_target_port_selects_no_knobs(world: DemoServers) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        async with profile_form(world.ssh_config, f"http://127.0.0.1:{server.getsockname()[1]}/") as (pilot, app):
            app.screen.query_one("#hosts", Checklist).focus()
            await pilot.press("space", "enter")
            await until(pilot, lambda: isinstance(app.screen, FoundServersScreen))
            await wait_idle(pilot)
            found = app.screen
            own = (await asyncio.to_thread(Path("/proc/self/comm").read_text)).strip()
            assert f"the target's port is served by {own}" in rendered_text(app)
            assert f"port {urlsplit(world.url).port}" in found.surveyed[0].words, "port of the demo"
            assert found.draft().knobs == ()
            assert [host.processes for host in found.draft().hosts] == [(own,)]
            # Apache has no such setting; an Apache may run on this machine beside the demo's server.
            knobs = found.query_one("#knobs", Checklist)
            while knobs.selected != ["here\nMaxClients"]:
                await press(pilot, "space")
                if knobs.selected != ["here\nMaxClients"]:
                    await press(pilot, "space", "down")
            assert found.draft().hosts[0].watched.startswith("demo-http-"), "the tuned server is watched"
            preview = found.query_one("#text", Static)
            await until(pilot, lambda: 'directive = "MaxClients"' in str(preview.content))


@pytest.mark.parametrize(
    ("url", "ssh", "expected"),
    [
        ("http://127.0.0.1:81/", None, True),
        ("http://localhost/", None, True),
        ("http://[::1]/", None, True),
        (f"http://{socket.gethostname()}/", None, True),
        ("http://web1/", None, False),
        ("http://192.0.2.1/", None, False),
        ("http://[2001:db8::1]/", None, False),
        ("http://web1.example.com/", "root@web1", True),
        ("http://web1.example.com/", "web1.example.com:2222", True),
        ("http://web1/", "root@web2", False),
        ("http://www.example.com/", "alias", True),
        ("http://example.com/", "alias", False),
        ("http://127.0.0.1/", "alias", False),
        ("http://localhost:8080/", "127.0.0.1:2222", True),
        ("http://[fe80::7]/", "root@[fe80::7]", True),
    ],
)
def test_url_is_matched_to_host(url: str, ssh: str | None, expected: bool, workdir: Path) -> None:
    (workdir / "ssh").write_text("Host alias\n  HostName www.example.com\n")
    assert is_on_host(url, HostConfig(name="h", ssh=ssh), workdir / "ssh") is expected


async def test_existing_file_is_replaced_only_after_confirmation(workdir: Path) -> None:
    own = workdir / "profiles"
    own.mkdir()
    (own / "web1.toml").write_text("precious")
    async with profile_form(workdir / "none", "web1:8080") as (pilot, app):
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, FoundServersScreen))
        file = app.screen.query_one("#file", Input)
        assert file.value == "profiles/web1-2.toml", "an unused name in the folder of the profiles"
        file.value = "profiles/web1"
        await wait_idle(pilot)
        for name, message in (
            ("~nosuchuser/x.toml", "~nosuchuser/x.toml: "),
            (f"{'x' * 252}", "cannot be written: File name too long"),
            (".", "file: type a name"),
        ):
            file.value = name
            await wait_idle(pilot)
            await pilot.press("enter")
            await until(pilot, lambda message=message: message in " ".join(rendered_text(app).split()))  # type: ignore[misc]
        file.value = "profiles/web1"
        await wait_idle(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: "exists already. Enter again: replace it" in rendered_text(app))
        assert (own / "web1.toml").read_text() == "precious"
        await pilot.press("enter")
        assert await exit_choice(pilot, app) == Choice("profile", "profiles/web1.toml")
        assert read_profile(own / "web1.toml").plan.url == "http://web1:8080/"


async def test_invalid_fields_are_reported_and_escape_returns_to_previous_page(workdir: Path) -> None:
    async with profile_form(workdir / "none", "http://web1/") as (pilot, app):
        for name, value, message in (
            ("url", "ftp://x", "url: found 'ftp://x'"),
            ("concurrency", "many", "concurrency: "),
            ("concurrency", "0", "connections: must be at least 1"),
            ("duration", "soon", "duration: "),
        ):
            field = app.screen.query_one(f"#{name}", Input)
            before, field.value = field.value, value
            await pilot.press("enter")
            await until(pilot, lambda message=message: message in rendered_text(app))  # type: ignore[misc]
            assert isinstance(app.screen, NewProfileScreen)
            field.value = before
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, FoundServersScreen))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, NewProfileScreen))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, StartScreen))
        assert not (workdir / "config").exists()


async def test_unreachable_host_is_reported_and_kept_in_profile(workdir: Path) -> None:
    (workdir / "config").mkdir()
    (workdir / "ssh").write_text("Host web9\n  HostName 127.0.0.1\n  Port 1\n")
    async with profile_form(workdir / "ssh", "http://web9/", (80, 24)) as (pilot, app):
        app.screen.query_one("#others", Input).value = "root@web9"
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, FoundServersScreen))
        await wait_idle(pilot)
        assert "No settings found" in rendered_text(app)
        await pilot.press("enter")
        choice = await exit_choice(pilot, app)
    assert choice is not None
    written = Path(choice.what)
    assert read_profile(written).hosts[0].ssh == "root@web9"
    assert "# web9 could not be inspected: " in await asyncio.to_thread(written.read_text)


def test_host_names_are_valid_and_unique() -> None:
    named = hosts_named(["root@web1.example.com:2222", "web1", " ", "10.0.0.7", "[::1]", HERE])
    assert [(host.name, host.ssh) for host in named] == [
        ("web1", "root@web1.example.com:2222"),
        ("web1-2", "web1"),
        ("10-0-0-7", "10.0.0.7"),
        ("1", "[::1]"),
        ("here", None),
    ]
    assert host_name("...") == "host"
    inside = hosts_named(["kubectl:shop/web-0/nginx", "root@vm1/docker:web1", "root@[::1]:2222/kubectl:shop/web-1"])
    assert [(host.name, host.ssh, host.via) for host in inside] == [
        ("web-0", None, "kubectl:shop/web-0/nginx"),
        ("web1", "root@vm1", "docker:web1"),
        ("web-1", "root@[::1]:2222", "kubectl:shop/web-1"),
    ]


def test_new_command_writes_tunable_profile(workdir: Path, world: DemoServers) -> None:
    arguments = ("new", world.url, "--host", "demo", "--ssh-config", world.ssh_config)
    result = cockpit(*arguments)
    assert result.returncode == 0, result.stderr
    assert "demo: as " in result.stderr and "the demo's prefork server" in result.stderr
    assert len(read_profile(Path(result.stdout.strip())).knobs) == 4
    assert os.fspath(workdir) in result.stdout
    refused = cockpit(*arguments, "-o", result.stdout.strip())
    assert refused.returncode == 2
    assert "exists already; replace it with --force" in refused.stderr
    lost = cockpit("new", world.url, "--host", "root@nohost.invalid", "-o", workdir / "lost.toml")
    assert lost.returncode == 3 and lost.stderr.startswith("cockpit: nohost: cannot resolve nohost.invalid"), (
        lost.stderr
    )
    assert not (workdir / "lost.toml").exists()
    result = cockpit("new", "http://web1/", "-o", workdir / "p.toml", "-c", "5", "-z", "1m")
    assert result.returncode == 0, result.stderr
    plan = read_profile(workdir / "p.toml").plan
    assert (plan.concurrency, plan.duration) == (5, 60.0)


async def test_checklist_shows_selection_and_releases_arrows() -> None:
    async with running_start_app(StartChoices()) as (pilot, app):
        checklist = Checklist([ChecklistItem("one", "1"), ChecklistItem("two", "2", True)])
        await app.screen.mount(checklist, Input(id="after"))
        checklist.focus()
        await pilot.press("space")
        await wait_idle(pilot)
        assert checklist.selected == ["1", "2"]
        await pilot.press("down", "space")
        await wait_idle(pilot)
        assert checklist.selected == ["1"]
        assert "[x] one" in rendered_text(app) and "[ ] two" in rendered_text(app)
        await pilot.press("down")
        await until(pilot, lambda: app.focused is not checklist)
