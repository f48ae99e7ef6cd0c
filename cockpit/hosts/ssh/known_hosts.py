"""Known host keys. asyncssh only reports an untrusted key; cockpit distinguishes unknown from changed keys."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from asyncssh import KeyImportError, SSHKey, SSHKnownHosts, import_public_key

from cockpit.files import make_private
from cockpit.hosts.ssh.prompts import UnknownHostKey
from cockpit.model.errors import HostError, UsageError

HostKeys = list[SSHKey]
KeyMarker = Literal["", "cert-authority", "revoked"]
# The first bytes of a binary key revocation list, as `ssh-keygen -k` writes it.
_KRL = b"SSHKRL\n\0"


@dataclass(frozen=True)
class KnownKey:
    """A host's key in known_hosts, with the file and line (from 1) of its entry."""

    file: Path
    line: int
    key: SSHKey
    marker: KeyMarker


class KnownHosts:
    """The entries for one host in its known_hosts files; missing files have no entries.

    As in ssh(1), keys are looked up under `[host]:port` for a port other than 22, and under the plain name only if
    `[host]:port` has no key; a HostKeyAlias (`is_alias`) never has a port. Keys revoked under either name are refused,
    as are the keys of the RevokedHostKeys file (`revoked`).
    """

    def __init__(
        self, files: Sequence[Path], host: str, port: int, *, is_alias: bool = False, revoked: Sequence[SSHKey] = ()
    ) -> None:
        self.files = tuple(files)
        self.lookup = host if port == 22 or is_alias else f"[{host}]:{port}"
        names = dict.fromkeys((self.lookup, host))
        matches = [(name, entry) for name in names for entry in _entries(files, name)]
        self.revoked: HostKeys = [*revoked, *(entry.key for _, entry in matches if entry.marker == "revoked")]
        self.trusted = self._first(matches, "")
        self.authorities = self._first(matches, "cert-authority")
        # An entry without the port may belong to another server on the same host.
        self.expected = [entry for name, entry in matches if name == self.lookup and entry.marker == ""]

    def entries(self, _host: str, _address: str, _port: int | None) -> tuple[HostKeys, HostKeys, HostKeys]:
        """Return trusted keys, trusted authorities and revoked keys, for asyncssh; by name only, as in ssh(1)."""
        return self.trusted, self.authorities, self.revoked

    def _first(self, matches: Sequence[tuple[str, KnownKey]], marker: str) -> HostKeys:
        """Return the keys with this marker under the first name that has any."""
        named = [(name, entry.key) for name, entry in matches if entry.marker == marker]
        return [key for name, key in named if name == named[0][0]]


def _entries(files: Sequence[Path], name: str) -> Iterator[KnownKey]:
    for file in files:
        for number, known in _lines(file):
            trusted, authorities, revoked, *_ = known.match(name, "", None)
            kinds: dict[KeyMarker, Sequence[SSHKey]] = {"": trusted, "cert-authority": authorities, "revoked": revoked}
            for marker, keys in kinds.items():
                yield from (KnownKey(file, number, key, marker) for key in keys)


def read_revoked(host: str, file: Path) -> HostKeys:
    """Read the public keys of a RevokedHostKeys file, one per line. Raises UsageError."""
    subject = f"{host}: RevokedHostKeys {file}"
    try:
        data = file.read_bytes()
    except OSError as error:
        raise UsageError(f"{subject}: {error.strerror}; ssh refuses every host key without it") from None
    if data.startswith(_KRL):
        raise UsageError(f"{subject}: binary KRLs are not supported; list the public keys, one per line")
    keys: HostKeys = []
    for number, line in enumerate(data.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith(b"#"):
            try:
                keys.append(import_public_key(line))
            except KeyImportError:
                raise UsageError(f"{subject}: line {number} is not a public key") from None
    return keys


def _lines(file: Path) -> Iterator[tuple[int, SSHKnownHosts]]:
    """Yield each line with its number, parsed alone, so that an invalid line does not hide others."""
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


def unknown_host_key(where: str, lookup: str, key: SSHKey, file: Path, hashed: bool) -> UnknownHostKey:
    """Return an unknown key with its line for `file`; `hashed`: the line has a hash of the host's name."""
    public = " ".join(key.export_public_key().decode().split()[:2])
    name = _hashed(lookup) if hashed else lookup
    return UnknownHostKey(where, key.get_algorithm(), key.get_fingerprint(), file, f"{name} {public}")


def add_known_host(key: UnknownHostKey) -> None:
    """Append the line to its file, creating it if needed. Raises HostError."""
    try:
        make_private(key.file.parent)
        descriptor = os.open(key.file, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "rb+", buffering=0) as file:
            at_line_start = file.seek(0, os.SEEK_END) == 0 or _ends_with_newline(file.fileno())
            file.write(f"{'' if at_line_start else chr(10)}{key.line}\n".encode())
    except OSError as error:
        raise HostError(f"the host key cannot be written to {key.file}: {error.strerror}", subject=key.where) from None


def _ends_with_newline(descriptor: int) -> bool:
    return os.pread(descriptor, 1, os.fstat(descriptor).st_size - 1) == b"\n"


def _hashed(name: str) -> str:
    """Hash a name as `ssh-keygen -H` does: |1|salt|HMAC-SHA1 of the name."""
    salt = os.urandom(20)
    digest = hmac.new(salt, name.encode(), hashlib.sha1).digest()
    return "|1|" + "|".join(base64.b64encode(part).decode() for part in (salt, digest))
