"""The user's private keys, with and without a passphrase."""

from __future__ import annotations

import binascii
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import asyncssh

from cockpit.hosts.ssh.prompts import Keyring
from cockpit.model.errors import UsageError

_OPENSSH = b"-----BEGIN OPENSSH PRIVATE KEY-----"
_MAGIC = b"openssh-key-v1\0"
# Headers of encrypted keys in the other formats.
_ENCRYPTED = (b"Proc-Type: 4,ENCRYPTED", b"-----BEGIN ENCRYPTED PRIVATE KEY-----")


@dataclass
class OfferedKeys:
    """Keys to offer to a server, in order: unencrypted files (`plain`), then `encrypted` ones: the decrypted key if the
    keyring has it, else the public key. `accepted`: encrypted files that the server accepts.

    `without_public_key` are encrypted files with an unknown public key, which cannot be offered before they are
    decrypted. `invalid` files cannot be read as keys.
    """

    keyring: Keyring
    plain: list[Path] = field(default_factory=list)
    encrypted: dict[Path, asyncssh.SSHKey] = field(default_factory=dict)
    accepted: set[Path] = field(default_factory=set)
    without_public_key: list[Path] = field(default_factory=list)
    invalid: list[Path] = field(default_factory=list)

    def needed(self) -> list[Path]:
        """Return the files whose passphrase is needed."""
        return [path for path in self.encrypted if path in self.accepted] or self.without_public_key

    def pairs(self) -> list[object]:
        """Return the keys for asyncssh, which asks `require` for the passphrase of a key that the server accepts."""
        files = [str(path) for path in self.plain if path.suffix != ".pub"]
        decrypted = self.keyring.keys
        return [*files, *((decrypted.get(p, str(p)), _certificate(p) or key) for p, key in self.encrypted.items())]

    def require(self, file: str) -> None:
        """Note that the server accepts an encrypted key; without a passphrase, the next key or method is tried."""
        self.accepted.add(Path(file))


def sort_keys(identities: Sequence[Path], keyring: Keyring) -> OfferedKeys:
    keys = OfferedKeys(keyring)
    for path in identities:
        if path in keyring.keys:
            keys.encrypted[path] = keyring.keys[path]
            continue
        kind = _kind(path)
        if kind != "encrypted":
            (keys.plain if kind == "plain" else keys.invalid).append(path)
        elif (public := _public_key(path)) is not None:
            keys.encrypted[path] = public
        else:
            keys.without_public_key.append(path)
    return keys


def decrypt(path: Path, passphrase: str) -> asyncssh.SSHKey:
    """Decrypt a key. Raises KeyEncryptionError or KeyImportError for a wrong passphrase, UsageError for the file."""
    try:
        return asyncssh.import_private_key(path.read_bytes(), passphrase)
    except OSError as error:
        raise UsageError(f"{path}: {error}") from None


def _kind(path: Path) -> Literal["plain", "encrypted", "invalid"]:
    """Return the kind of a key file. A public key without a private one is plain: it selects the agent's key."""
    try:
        data = path.read_bytes()
    except OSError:
        return "invalid"
    if _is_encrypted(data):
        return "encrypted"
    try:
        asyncssh.import_private_key(data)
    except asyncssh.KeyImportError:
        return "plain" if path.suffix == ".pub" else "invalid"
    return "plain"


def _is_encrypted(data: bytes) -> bool:
    """Read it from the headers of PEM, PKCS #8 or OpenSSH."""
    if any(mark in data for mark in _ENCRYPTED):
        return True
    with suppress(ValueError):
        return _openssh_fields(data)[0] != b"none"
    return False


def _public_key(path: Path) -> asyncssh.SSHKey | None:
    """Read the public key from the .pub file, or from the key file: OpenSSH's format has it unencrypted."""
    with suppress(OSError, asyncssh.KeyImportError):
        return asyncssh.read_public_key(path.with_name(path.name + ".pub"))
    with suppress(OSError, ValueError, IndexError):
        public = _openssh_fields(path.read_bytes())[3]
        kind = public[4 : 4 + int.from_bytes(public[:4])]
        return asyncssh.import_public_key(kind + b" " + binascii.b2a_base64(public))
    return None


def _openssh_fields(data: bytes) -> list[bytes]:
    """Return cipher, key derivation, its options, and public key of a private key in OpenSSH's format.

    Raises ValueError for another format.
    """
    begin = data.index(_OPENSSH) + len(_OPENSSH)
    body = binascii.a2b_base64(data[begin : data.index(b"-----END", begin)])
    if not body.startswith(_MAGIC):
        raise ValueError("not OpenSSH's format")
    fields, at = [], len(_MAGIC)
    for gap in (0, 0, 0, 4):  # the number of keys precedes the public key
        at += gap
        end = at + 4 + int.from_bytes(body[at : at + 4])
        fields.append(body[at + 4 : end])
        at = end
    return fields


def _certificate(path: Path) -> asyncssh.SSHCertificate | None:
    with suppress(OSError, asyncssh.KeyImportError):
        return asyncssh.read_certificate(path.with_name(path.name + "-cert.pub"))
    return None
