"""A host reached by a command: `docker exec -i web1`, on this machine or on one over SSH.

The command is any that runs the words after it, with its standard streams: `COMMAND sh -s`. What such commands do
otherwise than SSH: their exit status may not be the program's, so that the program tells its own; they forward no
ports, so that a program there makes a connection. A program there ends with its standard input, as over SSH.
"""

from __future__ import annotations

import re
import secrets
import shlex
from contextlib import suppress

from cockpit.hosts.shell import SH, Channel, Completed, Shell
from cockpit.model.errors import HostError
from cockpit.model.text import neutral

# A host's name or address: no option or further address of the program that connects to it.
_HOST = re.compile(r"[A-Za-z0-9_:][A-Za-z0-9_.:%-]*")

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
    echo "there is neither socat, nc nor bash to connect with" >&4
  fi
}
"""


class CarriedShell:
    """The shell of a host that `command` reaches from another; `name` is the host's."""

    def __init__(self, name: str, outer: Shell, command: str) -> None:
        self._name = name
        self._outer = outer
        self._command = command

    async def run(self, program: str, *, input: bytes = b"", timeout: float = 30, interpreter: str = SH) -> Completed:  # noqa: ASYNC109
        mark = f"#cockpit status {secrets.token_hex(8)}"
        told = f"(\n{program}\n)\nprintf '\\n{mark} %s\\n' $? >&2"
        words = f"{self._command} {interpreter}"
        done = await self._outer.run(told, input=input, timeout=timeout, interpreter=words)
        stderr, found, rest = done.stderr.rpartition(f"\n{mark} ".encode())
        # The command may print lines of its own after the program has ended.
        status, ended, _ = rest.partition(b"\n")
        status = status.strip()
        if not (found and ended and status.isdigit()) or len(status) > 3:
            raise HostError("the way there was cut while a command ran", subject=self._name)
        return Completed(int(status), done.stdout, stderr)

    async def open(self, program: str, interpreter: str = SH) -> Channel:
        return await self._outer.open(program, f"{self._command} {interpreter}")

    async def open_stream(self, host: str, port: int) -> ProgramWire:
        if not _HOST.fullmatch(host):
            raise HostError(f"{neutral(host, 80)!r} is no host name", subject=self._name)
        refused = "|| echo 'unreachable from there' >&2"
        program = f"{_CONNECT}connect {shlex.quote(host)} {port:d} 3>&1 4>&2 5<&0 >/dev/null {refused}"
        return ProgramWire(self._name, f"{host}:{port}", await self.open(program))

    async def forward_back(self, port: int) -> int:
        raise HostError("no port leads back from a host that is reached by a command", subject=self._name)

    async def wait_closed(self) -> None:
        await self._outer.wait_closed()

    async def close(self) -> None:
        await self._outer.close()


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
