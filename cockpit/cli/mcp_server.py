"""A server of the Model Context Protocol: an agent uses cockpit's commands as tools. Imported by `cockpit mcp` only.

Each call is one command in a process of its own, with the guards that a person at a terminal has: a profile with
commands must be trusted, a change is tested, and rolled back if the server fails.
"""

import asyncio
import json
import shlex
import signal
import sys
from pathlib import Path
from typing import Annotated, Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context, Elicit, Resolve
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import BaseModel, Field

from cockpit import __version__
from cockpit.model.errors import EXIT_ALL_FAILED, EXIT_GOOD, EXIT_THRESHOLD, EXIT_UNSTABLE
from cockpit.profiles import catalogue
from cockpit.profiles.plan import is_address

_READS = ToolAnnotations(read_only_hint=True)
_LOADS = ToolAnnotations(read_only_hint=False, destructive_hint=False)
_CHANGES = ToolAnnotations(read_only_hint=False, destructive_hint=True)
_INSTRUCTIONS = """\
cockpit measures web servers under load and changes their settings. Begin with list_profiles and show_settings.
preview_change shows what a change would do. compare_in_rounds switches between present and new values under load
and returns a verdict: the way to find out whether a setting helps. An effect is real only if its outcome is better or
worse; report its interval, not only its estimate."""

ProfileName = Annotated[str, Field(description="name of a profile, or the path of its file")]
NewSettings = Annotated[dict[str, str], Field(description="settings and their new values, e.g. {'Timeout': '60'}")]
RecordingName = Annotated[str, Field(description="name of list_recordings, or the path of a recording")]


class ChangeAnswer(BaseModel):
    """The answer of a person to a question before a change."""

    approved: bool = Field(description="whether to change the server")


class _Commands:
    """Runs commands of cockpit. `ssh_config` is passed on to those that reach hosts."""

    def __init__(self, ssh_config: Path | None) -> None:
        self._on_hosts = ["--ssh-config", str(ssh_config)] if ssh_config else []

    async def read(self, *arguments: str, good: tuple[int, ...] = (EXIT_GOOD,)) -> dict[str, Any]:
        """Run a command with --json; return `result`, and `messages` from stderr. Raises ToolError with the command's
        error."""
        process = await asyncio.create_subprocess_exec(
            # -P: do not import modules from the working directory.
            *(sys.executable, "-P", "-m", "cockpit", *arguments),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            output, messages = await process.communicate()
        except asyncio.CancelledError:
            # The command first restores what it has changed.
            process.send_signal(signal.SIGINT)
            await asyncio.shield(process.wait())
            raise
        lines = messages.decode(errors="replace").splitlines()
        if process.returncode not in good:
            raise ToolError("\n".join(lines[-5:]) or f"exit code {process.returncode}")
        return {"result": json.loads(output), "messages": lines[-20:]}

    async def on_hosts(self, *arguments: str, good: tuple[int, ...] = (EXIT_GOOD,)) -> dict[str, Any]:
        return await self.read(*arguments, *self._on_hosts, good=good)


def _assignments(values: dict[str, str]) -> list[str]:
    if not values:
        raise ToolError("no setting to change")
    return [f"{name}={value}" for name, value in values.items()]


def _plain(text: str) -> str:
    """Return an argument that is not a flag. Raises ToolError."""
    if text.startswith("-") or not text:
        raise ToolError(f"{text!r} is no name; names do not begin with -")
    return text


def _profile(name: str) -> str:
    """Return the name of a profile. Raises ToolError for a URL: an agent chooses no target."""
    if is_address(name):
        raise ToolError(f"{name!r} is no profile; load is sent to the targets of profiles only")
    return _plain(name)


def _profile_row(entry: catalogue.ProfileEntry) -> dict[str, str]:
    names = ("name", "origin", "target", "question", "problem")
    return {name: str(getattr(entry, name)) for name in names} | {"path": str(entry.path)}


def make_server(ssh_config: Path | None, *, allow_changes: bool, ask: bool) -> MCPServer:
    """Return the server. Tools that change settings exist only with `allow_changes`; with `ask` a person confirms each
    change in the client."""
    commands = _Commands(ssh_config)
    server: MCPServer = MCPServer("cockpit", version=__version__, instructions=_INSTRUCTIONS, log_level="ERROR")
    _add_reading(server, commands)
    if allow_changes:
        _add_changes(server, commands, _Questions(ask))
    return server


def _add_reading(server: MCPServer, commands: _Commands) -> None:
    @server.tool(annotations=_READS)
    async def list_profiles() -> dict[str, Any]:
        """List the profiles by name, with target and question. A profile has a load, hosts, settings, and perhaps a
        study."""
        return {"result": [_profile_row(entry) for entry in catalogue.listed()]}

    @server.tool(annotations=_READS)
    async def show_settings(profile: ProfileName) -> dict[str, Any]:
        """Read the present values of a profile's settings on its hosts."""
        return await commands.on_hosts("tune", _profile(profile), "show", "--json")

    @server.tool(annotations=_READS)
    async def preview_change(profile: ProfileName, values: NewSettings) -> dict[str, Any]:
        """Show what a change would do (diff, cost, notes) without making it."""
        return await commands.on_hosts("tune", _profile(profile), "set", "--dry-run", "--json", *_assignments(values))

    @server.tool(annotations=_READS)
    async def list_recordings() -> dict[str, Any]:
        """List the recordings of the library, newest first."""
        return await commands.read("recordings", "list", "--json")

    @server.tool(annotations=_READS)
    async def read_recording(recording: RecordingName) -> dict[str, Any]:
        """Return the metrics of all runs of a recording, and its verdicts on changes."""
        return await commands.read("report", "--json", _plain(recording))

    @server.tool(annotations=_READS)
    async def compare_recordings(before: RecordingName, after: RecordingName) -> dict[str, Any]:
        """Compare two recordings of the same load, with intervals. A recording#2 is its second run."""
        return await commands.read("compare", "--json", _plain(before), _plain(after))

    @server.tool(annotations=_LOADS)
    async def run_check(
        profile: ProfileName,
        thresholds: Annotated[list[str], Field(description="limits such as 'p99 < 50ms'")],
        seconds: Annotated[int, Field(ge=1, le=600, description="duration of the load")] = 15,
    ) -> dict[str, Any]:
        """Send a profile's load to its target and check the result against limits."""
        limits = [f"--threshold={limit}" for limit in thresholds]
        arguments = ("check", "--json", "-z", f"{seconds}s", *limits, _profile(profile))
        return await commands.on_hosts(*arguments, good=(EXIT_GOOD, EXIT_ALL_FAILED, EXIT_UNSTABLE, EXIT_THRESHOLD))


class _Questions:
    """Resolvers of a person's approval. With `ask` they are put to the person by the client, else approved."""

    def __init__(self, ask: bool) -> None:
        self._ask = ask

    def _put(self, question: str, context: Context) -> ChangeAnswer | Elicit[ChangeAnswer]:
        if not self._ask:
            return ChangeAnswer(approved=True)
        known = context.client_capabilities
        if known is None or known.elicitation is None:
            raise ToolError("a person must confirm this, and this client cannot ask: start `cockpit mcp` with --yes")
        return Elicit(question, ChangeAnswer)

    def of_change(
        self, profile: ProfileName, values: NewSettings, context: Context
    ) -> ChangeAnswer | Elicit[ChangeAnswer]:
        return self._put(f"Change {shlex.join(_assignments(values))} on the hosts of {profile}?", context)

    def of_rounds(
        self, profile: ProfileName, values: NewSettings, context: Context
    ) -> ChangeAnswer | Elicit[ChangeAnswer]:
        words = shlex.join(_assignments(values))
        return self._put(f"Load the target of {profile}, and switch its hosts to {words} and back?", context)

    def of_undo(self, profile: ProfileName, change: str, context: Context) -> ChangeAnswer | Elicit[ChangeAnswer]:
        return self._put(f"Undo {change or 'the newest change'} on the hosts of {profile}?", context)


def _check(answer: ChangeAnswer) -> None:
    if not answer.approved:
        raise ToolError("the person declined; nothing was changed")


def _add_changes(server: MCPServer, commands: _Commands, questions: _Questions) -> None:
    @server.tool(annotations=_CHANGES)
    async def apply_change(
        profile: ProfileName, values: NewSettings, answer: Annotated[ChangeAnswer, Resolve(questions.of_change)]
    ) -> dict[str, Any]:
        """Change settings; the server's own test must pass, and the change is rolled back if the target fails."""
        _check(answer)
        return await commands.on_hosts("tune", _profile(profile), "set", "--json", *_assignments(values))

    @server.tool(annotations=_CHANGES)
    async def compare_in_rounds(
        profile: ProfileName,
        values: NewSettings,
        answer: Annotated[ChangeAnswer, Resolve(questions.of_rounds)],
        rounds: Annotated[int, Field(ge=4, le=50, description="maximum number of rounds")] = 12,
        seconds: Annotated[int, Field(ge=15, le=120, description="counted seconds per window")] = 15,
    ) -> dict[str, Any]:
        """Send a profile's load while switching between the present and the new values; return the verdict. The old
        values are active afterwards."""
        _check(answer)
        sizes = ("--rounds", str(rounds), "--seconds", str(seconds))
        return await commands.on_hosts("tune", _profile(profile), "rounds", "--json", *sizes, *_assignments(values))

    @server.tool(annotations=_CHANGES)
    async def undo_change(
        profile: ProfileName,
        answer: Annotated[ChangeAnswer, Resolve(questions.of_undo)],
        change: Annotated[str, Field(description="name of the change; empty: the newest")] = "",
    ) -> dict[str, Any]:
        """Undo a change that this user made on the profile's hosts."""
        _check(answer)
        named = [_plain(change)] if change else []
        return await commands.on_hosts("tune", _profile(profile), "undo", "--json", *named)

    @server.tool(annotations=_READS)
    async def change_history(profile: ProfileName) -> dict[str, Any]:
        """List this user's changes on the profile's hosts, newest first."""
        return await commands.on_hosts("tune", _profile(profile), "history", "--json")
