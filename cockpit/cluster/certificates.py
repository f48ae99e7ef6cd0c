"""The TLS certificate of one session, which only the parts of its cluster have and trust."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from distributed.security import Security

# Validity before and after now; clocks of machines may be wrong by hours.
_BEFORE, _AFTER = timedelta(days=2), timedelta(days=32)
_ROLES = ("client", "scheduler", "worker")


class Certificate(msgspec.Struct, frozen=True):
    """A self-signed certificate and its key, as PEM. They are only kept in memory and sent over SSH."""

    certificate: str
    key: str

    def security(self) -> Security:
        """Return Dask's options: all connections are encrypted, and both sides prove that they have the key."""
        from distributed.security import Security

        options: dict[str, Any] = {"require_encryption": True, "tls_ca_file": self.certificate}
        for role in _ROLES:
            options |= {f"tls_{role}_cert": self.certificate, f"tls_{role}_key": self.key}
        return Security(**options)


def session_certificate() -> Certificate:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "cockpit-session")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BEFORE)
        .not_valid_after(now + _AFTER)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return Certificate(certificate.public_bytes(Encoding.PEM).decode(), private.decode())
