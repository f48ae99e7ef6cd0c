"""`cockpit mcp`: an agent's session on the demo, with the SDK's own client."""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.client import ClientRequestContext
from mcp.client.session import ElicitationFnT
from mcp.types import ElicitRequestParams, ElicitResult, TextContent

from cockpit.demo.servers import DemoServers
from cockpit.profiles.reader import read_profile
from cockpit.profiles.trust import accept

CHANGED = {"MaxRequestsPerChild": "10000"}


class Demo:
    """The demo's servers and a trusted profile of them."""

    def __init__(self, world: DemoServers, folder: Path) -> None:
        self.config = world.config_file
        self.ssh_config = world.ssh_config
        self.profile = folder / "demo.toml"
        self.profile.write_text(world.profile_toml())
        accept(read_profile(self.profile))

    @asynccontextmanager
    async def client(self, *flags: str, person: ElicitationFnT | None = None) -> AsyncIterator[Client]:
        arguments = ["-P", "-m", "cockpit", "mcp", "--ssh-config", str(self.ssh_config), *flags]
        server = StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ))
        # The default is the stderr of the time of the import.
        with (self.profile.parent / "stderr").open("w") as errors:
            async with Client(stdio_client(server, errors), elicitation_callback=person) as client:
                yield client


@pytest.fixture
async def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Demo]:
    for name in ("STATE", "DATA", "CONFIG"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name))
    async with DemoServers() as world:
        yield Demo(world, tmp_path)


async def call(client: Client, tool: str, **arguments: Any) -> Any:
    """Return the result of a tool, or the text of its error."""
    answer = await client.call_tool(tool, arguments)
    if answer.is_error:
        assert isinstance(answer.content[0], TextContent)
        return answer.content[0].text
    assert answer.structured_content is not None
    return answer.structured_content["result"]


async def test_agent_previews_applies_and_undoes(demo: Demo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('imported from the working directory')")
    monkeypatch.chdir(tmp_path)
    before = demo.config.read_text()
    profile = str(demo.profile)
    async with demo.client("--allow-changes", "--yes") as client:
        names = {row["name"] for row in await call(client, "list_profiles")}
        assert "spare-servers" in names
        known = {row["name"]: row["value"] for row in await call(client, "show_settings", profile=profile)}
        assert known["MaxRequestsPerChild"] == "20"
        [preview] = await call(client, "preview_change", profile=profile, values=CHANGED)
        assert "+    MaxRequestsPerChild 10000\n" in preview["diff"] and demo.config.read_text() == before
        assert "unknown knob 'Nothing'" in await call(client, "apply_change", profile=profile, values={"Nothing": "1"})
        assert "names do not begin with -" in await call(client, "read_recording", recording="--format=html")
        elsewhere = await call(client, "run_check", profile="http://other.example/", thresholds=["p99 < 1s"])
        assert "load is sent to the targets of profiles only" in elsewhere
        [change] = await call(client, "apply_change", profile=profile, values=CHANGED)
        assert change["outcome"] == "applied" and "MaxRequestsPerChild 10000" in demo.config.read_text()
        [past] = await call(client, "change_history", profile=profile)
        await call(client, "undo_change", profile=profile, change=past["name"])
        assert demo.config.read_text() == before


async def test_person_is_asked_before_a_change(demo: Demo) -> None:
    before = demo.config.read_text()
    questions: list[str] = []

    async def decline(context: ClientRequestContext, question: ElicitRequestParams) -> ElicitResult:
        questions.append(question.message)
        return ElicitResult(action="accept", content={"approved": False})

    change = {"profile": str(demo.profile), "values": CHANGED}
    async with demo.client("--allow-changes", person=decline) as client:
        assert (
            await call(client, "apply_change", **change)
            == "Error executing tool apply_change: the person declined; nothing was changed"
        )
    assert questions == [f"Change MaxRequestsPerChild=10000 on the hosts of {demo.profile}?"]
    async with demo.client("--allow-changes") as client:
        assert "this client cannot ask: start `cockpit mcp` with --yes" in await call(client, "apply_change", **change)
    async with demo.client() as client:
        assert "apply_change" not in {tool.name for tool in (await client.list_tools()).tools}
    assert demo.config.read_text() == before
