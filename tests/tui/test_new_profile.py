"""A new profile written on the screen, from a real look at the demo's host over SSH."""

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

from cockpit.demo.world import DemoWorld
from cockpit.hosts.target_host import leads_to
from cockpit.model.hosts import HostConfig
from cockpit.profiles.reader import read_profile
from cockpit.setup.profile_draft import HERE, host_name, hosts_named
from cockpit.tui.start.app import StartApp
from cockpit.tui.start.choices import Choice, StartChoices
from cockpit.tui.start.new_profile import Checklist, ChecklistItem, FoundScreen, NewProfileScreen
from cockpit.tui.start.screen import StartScreen
from tests.commands import cockpit
from tests.tui.driving import at_rest, until
from tests.tui.test_start import ended, started


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@asynccontextmanager
async def asked(
    ssh_config: Path, url: str, size: tuple[int, int] = (120, 40)
) -> AsyncIterator[tuple[Pilot[Choice], StartApp]]:
    """The first page, with the URL typed."""
    async with started(StartChoices(), size, ssh_config=ssh_config) as (pilot, app):
        await pilot.press("n")
        await until(pilot, lambda: isinstance(app.screen, NewProfileScreen) and isinstance(app.focused, Input))
        await pilot.press(*url)
        await at_rest(pilot)
        yield pilot, app


def told(app: StartApp) -> str:
    return "\n".join("".join(s.text for s in line) for line in app.screen._compositor.render_strips())


async def test_url_and_host_are_enough_for_a_profile_that_can_be_tuned(elsewhere: Path) -> None:
    async with DemoWorld() as world, asked(world.ssh_config, world.url) as (pilot, app):
        hosts = app.screen.query_one("#hosts", Checklist)
        hosts.focus()
        assert "[ ] this machine" in told(app) and "[ ] demo" in told(app)
        await pilot.press("down", "space", "enter")
        await until(pilot, lambda: isinstance(app.screen, FoundScreen))
        await at_rest(pilot)
        assert "the demo's prefork server" in told(app)
        assert re.search(r"\[x\] MaxSpareServers +10 ", told(app))
        await pilot.press("space", "tab", *"Is it?")
        await at_rest(pilot)
        assert 'question = "Is it?"' in told(app)
        await pilot.press("enter")
        assert await ended(pilot, app) == Choice("profile", str(elsewhere / "config/cockpit/profiles/demo.toml"))
        profile = read_profile(elsewhere / "config/cockpit/profiles/demo.toml")
        assert (profile.question, profile.plan.url, profile.plan.duration) == ("Is it?", world.url, 30.0)
        assert [host.ssh for host in profile.hosts] == ["demo"]
        assert [knob.name for knob in profile.knobs] == ["MaxSpareServers", "MaxRequestsPerChild", "MaxClients"]
        good = await asyncio.to_thread(cockpit, "doctor", "demo", "--ssh-config", world.ssh_config)
        assert good.returncode == 0, good.stdout + good.stderr


@contextmanager
def other_server() -> Iterator[str]:
    """A server that cockpit does not know, on a port of this machine; its URL."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"


def own_name() -> str:
    """The name of this process, as the kernel has it."""
    return Path("/proc/self/comm").read_text().strip()


async def test_where_nothing_known_listens_on_the_port_nothing_is_picked(elsewhere: Path) -> None:
    async with DemoWorld() as world:
        with other_server() as url:
            async with asked(world.ssh_config, url) as (pilot, app):
                app.screen.query_one("#hosts", Checklist).focus()
                await pilot.press("space", "enter")
                await until(pilot, lambda: isinstance(app.screen, FoundScreen))
                await at_rest(pilot)
                found = app.screen
                assert isinstance(found, FoundScreen)
                own = own_name()
                assert f"the target's port is served by {own}" in told(app)
                assert f"port {urlsplit(world.url).port}" in found.surveyed[0].words, "where the demo listens"
                assert found.draft().knobs == ()
                assert [host.processes for host in found.draft().hosts] == [(own,)]
                # No Apache offers this setting: one may run here beside the demo's server.
                while found.query_one("#knobs", Checklist).selected != ["here\nMaxClients"]:
                    await pilot.press("space")
                    if found.query_one("#knobs", Checklist).selected != ["here\nMaxClients"]:
                        await pilot.press("space", "down")
                assert found.draft().hosts[0].watched.startswith("demo-http-"), "what is tuned is watched"
                preview = found.query_one("#text", Static)
                await until(pilot, lambda: 'directive = "MaxClients"' in str(preview.content))


@pytest.mark.parametrize(
    ("url", "ssh", "leads"),
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
def test_whether_a_url_leads_to_a_host(url: str, ssh: str | None, leads: bool, elsewhere: Path) -> None:
    (elsewhere / "ssh").write_text("Host alias\n  HostName www.example.com\n")
    assert leads_to(url, HostConfig(name="h", ssh=ssh), elsewhere / "ssh") is leads


async def test_a_file_that_is_there_is_replaced_only_when_asked_twice(elsewhere: Path) -> None:
    own = elsewhere / "profiles"
    own.mkdir()
    (own / "web1.toml").write_text("precious")
    async with asked(elsewhere / "none", "web1:8080") as (pilot, app):
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, FoundScreen))
        file = app.screen.query_one("#file", Input)
        assert file.value == "profiles/web1-2.toml", "beside those of the folder, under a free name"
        file.value = "profiles/web1"
        await at_rest(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: "exists already. Enter again: replace it" in told(app))
        assert (own / "web1.toml").read_text() == "precious"
        await pilot.press("enter")
        assert await ended(pilot, app) == Choice("profile", "profiles/web1.toml")
        assert read_profile(own / "web1.toml").plan.url == "http://web1:8080/"


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("url", "ftp://x", "url: found 'ftp://x'"),
        ("concurrency", "many", "concurrency: "),
        ("concurrency", "0", "connections: one or more"),
        ("duration", "soon", "duration: "),
    ],
)
async def test_what_makes_no_sense_is_said_at_once(field: str, value: str, said: str, elsewhere: Path) -> None:
    async with asked(elsewhere / "none", "http://web1/") as (pilot, app):
        app.screen.query_one(f"#{field}", Input).value = value
        await pilot.press("enter")
        await until(pilot, lambda: said in told(app))
        assert isinstance(app.screen, NewProfileScreen)


async def test_a_host_out_of_reach_is_said_and_stays_in_the_profile(elsewhere: Path) -> None:
    (elsewhere / "config").mkdir()
    (elsewhere / "ssh").write_text("Host web9\n  HostName 127.0.0.1\n  Port 1\n")
    async with asked(elsewhere / "ssh", "http://web9/", (80, 24)) as (pilot, app):
        app.screen.query_one("#others", Input).value = "root@web9"
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, FoundScreen))
        await at_rest(pilot)
        assert "no readable settings" in told(app)
        await pilot.press("enter")
        choice = await ended(pilot, app)
    assert choice is not None
    assert read_profile(Path(choice.what)).hosts[0].ssh == "root@web9"
    assert "# web9 could not be inspected: " in text_in(choice.what)


def text_in(file: str) -> str:
    return Path(file).read_text()


async def test_escape_goes_back_a_page_at_a_time(elsewhere: Path) -> None:
    async with asked(elsewhere / "none", "http://web1/") as (pilot, app):
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, FoundScreen))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, NewProfileScreen))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, StartScreen))
        assert not (elsewhere / "config").exists()


def test_hosts_are_named_as_a_profile_can_name_them() -> None:
    named = hosts_named(["root@web1.example.com:2222", "web1", " ", "10.0.0.7", "[::1]", HERE])
    assert [(one.name, one.ssh) for one in named] == [
        ("web1", "root@web1.example.com:2222"),
        ("web1-2", "web1"),
        ("10-0-0-7", "10.0.0.7"),
        ("1", "[::1]"),
        ("here", None),
    ]
    assert host_name("...") == "host"
    (inside,) = hosts_named(["kubectl:shop/web-0/nginx"])
    assert (inside.name, inside.ssh, inside.via) == ("web-0", None, "kubectl:shop/web-0/nginx")


async def test_the_command_does_it_without_the_screen(elsewhere: Path) -> None:
    async with DemoWorld() as world:
        arguments = ("new", world.url, "--host", "demo", "--ssh-config", world.ssh_config)
        done = await asyncio.to_thread(cockpit, *arguments)
        assert done.returncode == 0, done.stderr
        assert "demo: as " in done.stderr and "the demo's prefork server" in done.stderr
        assert len(read_profile(Path(done.stdout.strip())).knobs) == 4
        refused = await asyncio.to_thread(cockpit, *arguments, "-o", done.stdout.strip())
        assert refused.returncode == 2
        assert "exists already; --force replaces it" in refused.stderr
    assert os.fspath(elsewhere) in done.stdout


def test_a_url_alone_makes_a_profile_too(elsewhere: Path) -> None:
    done = cockpit("new", "http://web1/", "-o", elsewhere / "p.toml", "-c", "5", "-z", "1m")
    assert done.returncode == 0, done.stderr
    plan = read_profile(elsewhere / "p.toml").plan
    assert (plan.concurrency, plan.duration) == (5, 60.0)


async def test_picks_are_told_by_a_sign_and_let_the_arrows_out() -> None:
    async with started(StartChoices()) as (pilot, app):
        picks = Checklist([ChecklistItem("one", "1"), ChecklistItem("two", "2", True)])
        await app.screen.mount(picks, Input(id="after"))
        picks.focus()
        await pilot.press("space")
        await at_rest(pilot)
        assert picks.selected == ["1", "2"]
        await pilot.press("down", "space")
        await at_rest(pilot)
        assert picks.selected == ["1"]
        assert "[x] one" in told(app) and "[ ] two" in told(app)
        await pilot.press("down")
        await until(pilot, lambda: app.focused is not picks)
