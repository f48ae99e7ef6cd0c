"""A host reached by a command: `docker exec -i web1`, on this machine or on one over SSH.

The command is any that runs the words after it, with its standard streams: `COMMAND sh -s`. What such commands do
otherwise than SSH: their exit status may not be the program's, so that the program tells its own; they forward no
ports, so that a program there makes a connection. A program there ends with its standard input, as over SSH; they keep
it when their client is stopped or cut off, so that it ends after a time limit by itself.
"""

from __future__ import annotations

import re
import secrets
import shlex
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from cockpit.hosts.program import NotStarted
from cockpit.hosts.shell import SH, Channel, Completed, Shell
from cockpit.hosts.watchdog import IDLE, watchdog
from cockpit.model.errors import HostError
from cockpit.model.text import neutral

# A host's name or address: no option or further address of the program that connects to it.
_HOST = re.compile(r"[A-Za-z0-9_:][A-Za-z0-9_.:%-]*")

# How runtimes of containers, lxc, incus, nsenter and env report that there is no sh.
_NO_SH = re.compile(
    r"""exec: "sh"|executable file [`'"]?sh\b|failed to execute sh\b|['‘`"]sh['’"]: No such file|Command not found"""
)
_WITHOUT_SH = "it has no sh; `cockpit help hosts` has a workaround"

# A connection to $1 port $2, by what the host has; it prints to standard error only if there is none.
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


class CarriedShell:
    """The shell of a host that `command` reaches from another; `name` is the host's, `via` is named in errors."""

    def __init__(self, name: str, outer: Shell, command: str, via: str) -> None:
        self._name = name
        self._outer = outer
        self._command = command
        self._via = via

    async def run(self, program: str, *, input: bytes = b"", timeout: float = 30, interpreter: str = SH) -> Completed:  # noqa: ASYNC109
        mark = f"#cockpit status {secrets.token_hex(8)}"
        # Without input nothing waits for the client.
        limited = _limited(program, timeout + IDLE) if input else f"(\n{program}\n)"
        marked = f"{limited}\nprintf '\\n{mark} %s\\n' $? >&2"
        words = f"{self._command} {interpreter}"
        with self._explained(interpreter):
            done = await self._outer.run(marked, input=input, timeout=timeout, interpreter=words)
        stderr, found, rest = done.stderr.rpartition(f"\n{mark} ".encode())
        # The command may print lines of its own after the program has ended.
        status, ended, _ = rest.partition(b"\n")
        status = status.strip()
        if not (found and ended and status.isdigit()) or len(status) > 3:
            raise HostError("connection lost while a command ran", subject=self._name)
        return Completed(int(status), done.stdout, stderr)

    async def open(self, program: str, interpreter: str = SH) -> Channel:
        with self._explained(interpreter):
            return await self._outer.open(program, f"{self._command} {interpreter}")

    async def open_stream(self, host: str, port: int) -> ProgramWire:
        if not _HOST.fullmatch(host):
            raise HostError(f"invalid host name {neutral(host, 80)!r}", subject=self._name)
        refused = "|| echo 'unreachable from this host' >&2"
        program = f"{_CONNECT}connect {shlex.quote(host)} {port:d} 3>&1 4>&2 5<&0 >/dev/null {refused}"
        return ProgramWire(self._name, f"{host}:{port}", await self.open(_limited(program, IDLE)))

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
    """The program in a subshell that is ended after that many seconds, or at most twice as many."""
    before = f"{watchdog()}idle $$ {seconds:g} &\nwatchdog=$!"
    return f"{before}\n(\n{program}\n)\nstatus=$?\nend_idle $watchdog\n(exit $status)"


class ProgramWire:
    """A connection that a program on the host makes, over its standard streams."""

    def __init__(self, name: str, address: str, channel: Channel) -> None:
        self._name, self._address, self._channel = name, address, channel

    async def read(self, size: int) -> bytes:
        data = await self._channel.read(size)
        if not data and (why := self._channel.stderr.decode("utf-8", "replace").strip()):
            raise HostError(f"{self._address}: {neutral(why.splitlines()[-1], 200)}", subject=self._name)
        return data

    async def write(self, data: bytes) -> None:
        # If it has ended, the end of its output has the reason.
        with suppress(HostError):
            await self._channel.write(data)

    def close(self) -> None:
        self._channel.close()
