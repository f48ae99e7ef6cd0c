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


@dataclass
class Keys:
    """Keys to offer to a server, in order: unencrypted files (`plain`), then encrypted keys (`locked`).

    `without_public_key` are encrypted files with an unknown public key, which cannot be offered before they are
    decrypted. `invalid` files cannot be read as keys.
    """

    plain: list[Path] = field(default_factory=list)
    locked: list[LockedKey] = field(default_factory=list)
    without_public_key: list[Path] = field(default_factory=list)
    invalid: list[Path] = field(default_factory=list)


class LockedKey(asyncssh.SSHKeyPair):
    """An encrypted key, offered by its public key; `accepted`: the server accepts it. It can sign when the keyring has
    the decrypted key."""

    def __init__(self, path: Path, public: asyncssh.SSHKey, keyring: Keyring) -> None:
        algorithms = public.sig_algorithms
        super().__init__(
            public.algorithm, public.algorithm, algorithms, algorithms, public.public_data, None, _certificate(path)
        )
        self.path = path
        self.accepted = False
        self._keyring = keyring

    def get_key_type(self) -> str:
        return "local"

    async def sign_async(self, data: bytes) -> bytes:
        """Sign. Raises ValueError if the key is still encrypted, so that the next key or method is tried."""
        key = self._keyring.keys.get(self.path)
        if key is None:
            self.accepted = True
            raise ValueError("encrypted with a passphrase")
        return key.sign(data, self.sig_algorithm)


def sort_keys(identities: Sequence[Path], keyring: Keyring) -> Keys:
    keys = Keys()
    for path in identities:
        if path in keyring.keys:
            keys.locked.append(LockedKey(path, keyring.keys[path], keyring))
            continue
        kind = _kind(path)
        if kind != "locked":
            (keys.plain if kind == "plain" else keys.invalid).append(path)
        elif (public := _public_key(path)) is not None:
            keys.locked.append(LockedKey(path, public, keyring))
        else:
            keys.without_public_key.append(path)
    return keys


def unlock(path: Path, passphrase: str) -> asyncssh.SSHKey | None:
    """Decrypt a key; None if the passphrase is wrong. Raises UsageError if the file cannot be read."""
    try:
        return asyncssh.import_private_key(path.read_bytes(), passphrase)
    except asyncssh.KeyEncryptionError as error:
        if "nknown" in str(error):  # an unknown cipher
            raise UsageError(f"{path}: {error}") from None
        return None
    except (OSError, asyncssh.KeyImportError) as error:
        raise UsageError(f"{path}: {error}") from None


def _kind(path: Path) -> Literal["plain", "locked", "invalid"]:
    """Return the kind of a key file. A public key without a private one is plain: it selects the agent's key."""
    try:
        asyncssh.import_private_key(path.read_bytes())
    except asyncssh.KeyEncryptionError:
        return "locked"
    except asyncssh.KeyImportError as error:
        if "assphrase" in str(error):
            return "locked"
        return "plain" if path.suffix == ".pub" else "invalid"
    except OSError:
        return "invalid"
    return "plain"


def _public_key(path: Path) -> asyncssh.SSHKey | None:
    """Read the public key from the .pub file, or from the key file: OpenSSH's format has it unencrypted."""
    with suppress(OSError, asyncssh.KeyImportError):
        return asyncssh.read_public_key(path.with_name(path.name + ".pub"))
    with suppress(OSError, ValueError, IndexError):
        return _from_openssh(path.read_bytes())
    return None


def _from_openssh(data: bytes) -> asyncssh.SSHKey:
    begin = data.index(_OPENSSH) + len(_OPENSSH)
    body = binascii.a2b_base64(data[begin : data.index(b"-----END", begin)])
    if not body.startswith(_MAGIC):
        raise ValueError("not OpenSSH's format")
    at = len(_MAGIC)
    for _ in range(3):  # cipher, key derivation and its options
        at += 4 + int.from_bytes(body[at : at + 4])
    at += 4  # number of keys
    blob = body[at + 4 : at + 4 + int.from_bytes(body[at : at + 4])]
    kind = blob[4 : 4 + int.from_bytes(blob[:4])]
    return asyncssh.import_public_key(kind + b" " + binascii.b2a_base64(blob))


def _certificate(path: Path) -> asyncssh.SSHCertificate | None:
    with suppress(OSError, asyncssh.KeyImportError):
        return asyncssh.read_certificate(path.with_name(path.name + "-cert.pub"))
    return None
