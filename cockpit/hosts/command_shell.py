"""A host reached by a command such as `docker exec -i web1`, run on this machine or on a host over SSH.

The command must run the words that follow it, with its standard streams: `COMMAND sh -s`. Differences from SSH:

- Its exit status may differ from the program's, so the program prints its own status.
- It forwards no ports, so a program on the host makes the connection.
- It keeps the program's standard input open if the client is stopped or cut off, so the program has a time limit.
"""

from __future__ import annotations

import re
import secrets
import shlex
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from cockpit.hosts.program import NotStarted
from cockpit.hosts.shell import SH, Channel, Completed, Shell
from cockpit.hosts.watchdog import IDLE, naps, watchdog
from cockpit.model.errors import HostError
from cockpit.model.text import sanitize

# A host name or address that the connecting program cannot take for an option or for another kind of address.
_HOST = re.compile(r"[A-Za-z0-9_:][A-Za-z0-9_.:%-]*")

# Errors of container runtimes, lxc, incus, nsenter and env about a missing sh.
_NO_SH = re.compile(
    r"""exec: "sh"|executable file [`'"]?sh\b|failed to execute sh\b|['‘`"]sh['’"]: No such file|Command not found"""
)
_WITHOUT_SH = "it has no sh; `cockpit help hosts` has a workaround"

# Connects to $1 port $2 with socat, nc or bash; reports on standard error if the host has none of them.
_CONNECT = r"""
connect() {
  if command -v socat; then
    case $1 in *:*) set -- "[$1]" "$2" ;; esac
    socat - "TCP:$1:$2" >&3 2>&4 <&5
  elif command -v nc; then
    nc "$1" "$2" >&3 2>&4 <&5
  elif command -v bash; then
    bash -c 'exec 6<>"/dev/tcp/$1/$2" || exit 1; cat >&6 <&5 & cat <&6 >&3; kill $!' bash "$1" "$2" 2>&4
  else
    echo "no program to connect with; install socat, nc or bash" >&4
  fi
}
"""


class CommandShell:
    """Shell of the host `name`, which `command` reaches from the host of `outer`. Errors name the command as `via`."""

    def __init__(self, name: str, outer: Shell, command: str, via: str) -> None:
        self._name = name
        self._outer = outer
        self._command = command
        self._via = via

    async def run(self, program: str, *, input: bytes = b"", timeout: float = 30, interpreter: str = SH) -> Completed:  # noqa: ASYNC109
        marker = f"#cockpit status {secrets.token_hex(8)}"
        # A program without input never waits for the client, so it needs no time limit.
        limited = _limited(program, timeout + IDLE) if input else f"(\n{program}\n)"
        marked = f"{limited}\nprintf '\\n{marker} %s\\n' $? >&2"
        words = f"{self._command} {interpreter}"
        with self._explained(interpreter):
            done = await self._outer.run(marked, input=input, timeout=timeout, interpreter=words)
        stderr, separator, rest = done.stderr.rpartition(f"\n{marker} ".encode())
        # The command may print more lines after the program has ended.
        status, newline, _ = rest.partition(b"\n")
        status = status.strip()
        if not (separator and newline and status.isdigit()) or len(status) > 3:
            raise HostError("connection lost while a command ran", subject=self._name)
        return Completed(int(status), done.stdout, stderr)

    async def open(self, program: str, interpreter: str = SH) -> Channel:
        with self._explained(interpreter):
            return await self._outer.open(program, f"{self._command} {interpreter}")

    async def open_stream(self, host: str, port: int) -> ProgramConnection:
        if not _HOST.fullmatch(host):
            raise HostError(f"invalid host name {sanitize(host, 80)!r}", subject=self._name)
        refused = "|| echo 'unreachable from this host' >&2"
        program = f"{_CONNECT}connect {shlex.quote(host)} {port:d} 3>&1 4>&2 5<&0 >/dev/null {refused}"
        return ProgramConnection(self._name, f"{host}:{port}", await self.open(_limited(program, IDLE)))

    async def forward_back(self, port: int) -> int:
        raise HostError("no ports can be forwarded from a host that is reached by a command", subject=self._name)

    async def wait_closed(self) -> None:
        await self._outer.wait_closed()

    async def close(self) -> None:
        await self._outer.close()

    @contextmanager
    def _explained(self, interpreter: str) -> Iterator[None]:
        """Name the command in the error if it does not start the interpreter."""
        try:
            yield
        except NotStarted as error:
            way_out = f"; {_WITHOUT_SH}" if _NO_SH.search(error.reason) else ""
            why = f": {error.reason}" if error.reason else ""
            raise HostError(f"`{self._via}` did not start `{interpreter}`{why}{way_out}", subject=self._name) from None


def _limited(program: str, seconds: float) -> str:
    """Return the program in a subshell that is killed after `seconds` to 2 * `seconds` without input."""
    start = f"{watchdog()}idle $$ {' '.join(naps(seconds))} &\nwatchdog=$!"
    return f"{start}\n(\n{program}\n)\nstatus=$?\nend_idle $watchdog\n(exit $status)"


class ProgramConnection:
    """A TCP connection made by a program on the host, over the program's standard streams."""

    def __init__(self, name: str, address: str, channel: Channel) -> None:
        self._name, self._address, self._channel = name, address, channel

    async def read(self, size: int) -> bytes:
        data = await self._channel.read(size)
        if not data and (why := self._channel.stderr.decode("utf-8", "replace").strip()):
            raise HostError(f"{self._address}: {sanitize(why.splitlines()[-1], 200)}", subject=self._name)
        return data

    async def write(self, data: bytes) -> None:
        # If the program has ended, `read` raises the reason.
        with suppress(HostError):
            await self._channel.write(data)

    def close(self) -> None:
        self._channel.close()
