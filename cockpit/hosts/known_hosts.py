"""Whether a server's key is the known one. asyncssh says only that it is not trusted; unknown and changed differ."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from asyncssh import SSHKey, SSHKnownHosts

from cockpit.hosts.asking import OfferedKey
from cockpit.model.errors import HostError

Keys = list[SSHKey]


@dataclass(frozen=True)
class KnownKey:
    """A key that known_hosts has for a host, and the file and line (from 1) that it stands in."""

    file: Path
    line: int
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
        for number, known in _lines(file):
            # These are what the key must be: an entry without the port may be another server of the same name.
            self.expected += [KnownKey(file, number, key) for key in self._take(known, self.lookup)]
            if port != 22:
                self._take(known, host)

    def _take(self, known: SSHKnownHosts, name: str) -> Sequence[SSHKey]:
        keys, authorities, revoked, *_ = known.match(name, "", None)
        self.trusted += keys
        self.authorities += authorities
        self.revoked += revoked
        return keys


def _lines(file: Path) -> Iterator[tuple[int, SSHKnownHosts]]:
    """Each by itself with its number, since one line that does not read must not hide the others."""
    try:
        text = file.read_text(errors="replace")
    except OSError:
        return
    for number, line in enumerate(text.split("\n"), 1):
        known = SSHKnownHosts()
        try:
            known.load(line)
        except ValueError:
            continue
        yield number, known


def offered(where: str, lookup: str, key: SSHKey, file: Path, hashed: bool) -> OfferedKey:
    """An unknown key with the line of `file` that would make it known; `hashed` hides the host's name in it."""
    public = " ".join(key.export_public_key().decode().split()[:2])
    name = _hashed(lookup) if hashed else lookup
    return OfferedKey(where, key.get_algorithm(), key.get_fingerprint(), file, f"{name} {public}")


def accept(key: OfferedKey) -> None:
    """Appends the line to its file, which is made where it is not there. Raises HostError where that fails."""
    try:
        key.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(key.file, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "rb+", buffering=0) as file:
            begun = file.seek(0, os.SEEK_END) == 0 or _ends_a_line(file.fileno())
            file.write(f"{'' if begun else chr(10)}{key.line}\n".encode())
    except OSError as error:
        raise HostError(f"{key.where}: its key cannot be kept in {key.file}: {error.strerror}") from None


def _ends_a_line(descriptor: int) -> bool:
    return os.pread(descriptor, 1, os.fstat(descriptor).st_size - 1) == b"\n"


def _hashed(name: str) -> str:
    """As `ssh-keygen -H` writes it: |1|salt|HMAC-SHA1 of the name under it."""
    salt = os.urandom(20)
    digest = hmac.new(salt, name.encode(), hashlib.sha1).digest()
    return "|1|" + "|".join(base64.b64encode(part).decode() for part in (salt, digest))
