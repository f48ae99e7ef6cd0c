"""Host key algorithms: those of cockpit, and those that an SSH server offers, which asyncssh does not report.

The offer is in the server's first packet (RFC 4253).
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Sequence
from contextlib import suppress

import asyncssh

from cockpit.model.text import sanitize

# Timeout (s) of the packet, maximum lines before the server's version, and maximum bytes of a packet.
_TIMEOUT, _LINES, _PACKET = 5.0, 50, 35_000
_KEXINIT = 20
# Accepted without HostKeyAlgorithms in ssh_config, after the kinds of the known keys, so that a server with another
# kind counts as changed.
HOST_KEY_KINDS = (
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "rsa-sha2-512",
    "rsa-sha2-256",
)


async def offered_host_keys(host: str, port: int, tunnel: asyncssh.SSHClientConnection | None) -> Sequence[str]:
    """Return the algorithms that a server offers; none if it does not answer like an SSH server."""
    with suppress(OSError, asyncssh.Error, EOFError, ValueError, struct.error, UnicodeError):
        async with asyncio.timeout(_TIMEOUT):
            dial = tunnel.open_connection if tunnel else asyncio.open_connection
            reader, writer = await dial(host, port)
            try:
                writer.write(b"SSH-2.0-cockpit\r\n")
                for _ in range(_LINES):
                    if (await reader.readline()).startswith(b"SSH-"):
                        break
                length, padding = struct.unpack(">IB", await reader.readexactly(5))
                return _host_keys((await reader.readexactly(min(length, _PACKET) - 1))[: -padding or None])
            finally:
                writer.close()
    return ()


def _host_keys(packet: bytes) -> Sequence[str]:
    """Return the second name list after a cookie of 16 bytes. Raises ValueError or struct.error."""
    if packet[:1] != bytes([_KEXINIT]):
        raise ValueError("not a KEXINIT packet")
    at = 17
    for _ in range(2):
        (size,) = struct.unpack_from(">I", packet, at)
        names, at = packet[at + 4 : at + 4 + size], at + 4 + size
    return [sanitize(name, 60) for name in names.decode("ascii").split(",") if name][:20]


def without_common(offered: Sequence[str], accepted: str, named: bool) -> str | None:
    """Return the problem of a server whose offer has none of the accepted algorithms; None if it has one.

    `named`: HostKeyAlgorithms of ssh_config has the accepted ones, which else are all that cockpit accepts by default.
    """
    ours = accepted.removeprefix("+").split(",")
    if not offered or not set(offered).isdisjoint(ours):
        return None
    usable = [name for name in (*HOST_KEY_KINDS, "ssh-rsa") if name in offered]
    if usable:
        way_out = f"set HostKeyAlgorithms +{usable[0]} for this host in ssh_config"
    else:
        way_out = "add a HostKey made with ssh-keygen -t ed25519 to its sshd_config"
    whose = "ssh_config" if named else "cockpit"
    return (
        f"no common host key algorithm: the server offers {', '.join(offered)}; {whose} accepts {', '.join(ours)};"
        f" {way_out}"
    )
