"""Whether a server's key is the known one. asyncssh says only that it is not trusted; unknown and changed differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from asyncssh import SSHKey, SSHKnownHosts

Keys = list[SSHKey]


@dataclass(frozen=True)
class KnownKey:
    """A key that known_hosts has for a host, and the file that it stands in."""

    file: Path
    key: SSHKey


class KnownHosts:
    """The entries for one host in its known_hosts files. Files that are not there hold none."""

    def __init__(self, files: Sequence[Path], host: str, port: int) -> None:
        self.files = tuple(files)
        self.lookup = host if port == 22 else f"[{host}]:{port}"
        self.trusted: Keys = []
        self.authorities: Keys = []
        self.revoked: Keys = []
        self.expected: list[KnownKey] = []
        for file in files:
            self._read(file, host, port)

    def entries(self, _host: str, _address: str, _port: int | None) -> tuple[Keys, Keys, Keys]:
        """What asyncssh asks for: keys to trust, authorities to trust, keys revoked. By name alone, as OpenSSH does."""
        return self.trusted, self.authorities, self.revoked

    def _read(self, file: Path, host: str, port: int) -> None:
        known = _load(file)
        keys, authorities, revoked, *_ = known.match(self.lookup, "", None)
        self.trusted += keys
        self.authorities += authorities
        self.revoked += revoked
        # These are what the key must be: an entry without the port may be another server of the same name.
        self.expected += [KnownKey(file, key) for key in keys]
        if port != 22:
            keys, authorities, revoked, *_ = known.match(host, "", None)
            self.trusted += keys
            self.authorities += authorities
            self.revoked += revoked


def _load(file: Path) -> SSHKnownHosts:
    """Line by line, since one line that does not read must not hide the others."""
    known = SSHKnownHosts()
    try:
        text = file.read_text(errors="replace")
    except OSError:
        return known
    for line in text.splitlines():
        try:
            known.load(line)
        except ValueError:
            continue
    return known
