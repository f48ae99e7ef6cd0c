"""New profiles written on the screen, with a real survey of the demo's host over SSH."""

from __future__ import annotations

import asyncio
import os
import re
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Static

from cockpit.demo.servers import DemoServers
from cockpit.hosts.target_host import is_on_host
from cockpit.model.hosts import HostConfig
from cockpit.profiles.reader import read_profile
from cockpit.setup.profile_draft import HERE, host_name, hosts_named
from cockpit.tui.dialogs.checklist import Checklist, ChecklistItem
from cockpit.tui.start.app import StartApp
from cockpit.tui.start.choices import Choice, StartChoices
from cockpit.tui.start.new_profile import FoundServersScreen, NewProfileScreen
from cockpit.tui.start.screen import StartScreen
from tests.commands import cockpit
from tests.tui.driving import until, wait_idle
from tests.tui.test_start import exit_choice, running_start_app


@pytest.fixture(autouse=True)
def workdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


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


def rendered_text(app: StartApp) -> str:
    return "\n".join("".join(s.text for s in line) for line in app.screen._compositor.render_strips())


async def test_url_and_host_make_tunable_profile(workdir: Path) -> None:
    async with DemoServers() as world, profile_form(world.ssh_config, world.url) as (pilot, app):
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
        assert await exit_choice(pilot, app) == Choice("profile", str(workdir / "config/cockpit/profiles/demo.toml"))
        profile = read_profile(workdir / "config/cockpit/profiles/demo.toml")
        assert (profile.question, profile.plan.url, profile.plan.duration) == ("Is it?", world.url, 30.0)
        assert [host.ssh for host in profile.hosts] == ["demo"]
        assert [knob.name for knob in profile.knobs] == ["MaxSpareServers", "MaxRequestsPerChild", "MaxClients"]
        doctor = await asyncio.to_thread(cockpit, "doctor", "demo", "--ssh-config", world.ssh_config)
        assert doctor.returncode == 0, doctor.stdout + doctor.stderr


@contextmanager
def other_server() -> Iterator[str]:
    """Listen on a port of this machine as an unknown kind of server; yields the URL."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"


def process_name() -> str:
    """Return the name of this process in the kernel."""
    return Path("/proc/self/comm").read_text().strip()


async def test_unknown_server_on_target_port_selects_no_knobs(workdir: Path) -> None:
    async with DemoServers() as world:
        with other_server() as url:
            async with profile_form(world.ssh_config, url) as (pilot, app):
                app.screen.query_one("#hosts", Checklist).focus()
                await pilot.press("space", "enter")
                await until(pilot, lambda: isinstance(app.screen, FoundServersScreen))
                await wait_idle(pilot)
                found = app.screen
                assert isinstance(found, FoundServersScreen)
                own = process_name()
                assert f"the target's port is served by {own}" in rendered_text(app)
                assert f"port {urlsplit(world.url).port}" in found.surveyed[0].words, "port of the demo"
                assert found.draft().knobs == ()
                assert [host.processes for host in found.draft().hosts] == [(own,)]
                # Apache has no such setting; an Apache may run on this machine beside the demo's server.
                while found.query_one("#knobs", Checklist).selected != ["here\nMaxClients"]:
                    await pilot.press("space")
                    if found.query_one("#knobs", Checklist).selected != ["here\nMaxClients"]:
                        await pilot.press("space", "down")
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
        await pilot.press("enter")
        await until(pilot, lambda: "exists already. Enter again: replace it" in rendered_text(app))
        assert (own / "web1.toml").read_text() == "precious"
        await pilot.press("enter")
        assert await exit_choice(pilot, app) == Choice("profile", "profiles/web1.toml")
        assert read_profile(own / "web1.toml").plan.url == "http://web1:8080/"


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("url", "ftp://x", "url: found 'ftp://x'"),
        ("concurrency", "many", "concurrency: "),
        ("concurrency", "0", "connections: must be at least 1"),
        ("duration", "soon", "duration: "),
    ],
)
async def test_invalid_field_is_reported_at_once(field: str, value: str, message: str, workdir: Path) -> None:
    async with profile_form(workdir / "none", "http://web1/") as (pilot, app):
        app.screen.query_one(f"#{field}", Input).value = value
        await pilot.press("enter")
        await until(pilot, lambda: message in rendered_text(app))
        assert isinstance(app.screen, NewProfileScreen)


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
    assert read_profile(Path(choice.what)).hosts[0].ssh == "root@web9"
    assert "# web9 could not be inspected: " in read_text(choice.what)


def read_text(file: str) -> str:
    return Path(file).read_text()


async def test_escape_returns_to_previous_page(workdir: Path) -> None:
    async with profile_form(workdir / "none", "http://web1/") as (pilot, app):
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, FoundServersScreen))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, NewProfileScreen))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, StartScreen))
        assert not (workdir / "config").exists()


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


async def test_new_command_writes_tunable_profile(workdir: Path) -> None:
    async with DemoServers() as world:
        arguments = ("new", world.url, "--host", "demo", "--ssh-config", world.ssh_config)
        result = await asyncio.to_thread(cockpit, *arguments)
        assert result.returncode == 0, result.stderr
        assert "demo: as " in result.stderr and "the demo's prefork server" in result.stderr
        assert len(read_profile(Path(result.stdout.strip())).knobs) == 4
        refused = await asyncio.to_thread(cockpit, *arguments, "-o", result.stdout.strip())
        assert refused.returncode == 2
        assert "exists already; replace it with --force" in refused.stderr
    assert os.fspath(workdir) in result.stdout


def test_new_command_needs_only_url(workdir: Path) -> None:
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
