"""A certificate authority for tests, and certificates that it signs."""

import datetime
import ipaddress
import os
import ssl
import tempfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from cockpit.model.load.plan import Tls

_DAY = datetime.timedelta(days=1)


class Pair(NamedTuple):
    """A certificate and its key, as files."""

    cert: Path
    key: Path


class Authority:
    """A certificate authority; `cert` is the file of its own certificate."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named("a test's authority")
        self.cert = directory / "ca.pem"
        # Digital signature, and signing of certificates and revocation lists.
        usage = x509.KeyUsage(True, *[False] * 4, True, True, False, False)
        own = self._builder(self._name, self._key).add_extension(x509.BasicConstraints(True, None), critical=True)
        signed = own.add_extension(usage, critical=True).sign(self._key, hashes.SHA256())
        self.cert.write_bytes(signed.public_bytes(Encoding.PEM))

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, days: int = 1) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 10 * _DAY)
            .not_valid_after(now + days * _DAY)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )

    def issue(self, name: str, *addresses: str, days: int = 1) -> Pair:
        """Issue a certificate for a host name and IP addresses that expires in `days`."""
        key = ec.generate_private_key(ec.SECP256R1())
        names: list[x509.GeneralName] = [x509.DNSName(name)]
        names += [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
        builder = self._builder(_named(name), key, days)
        signed = builder.add_extension(x509.SubjectAlternativeName(names), critical=False).sign(
            self._key, hashes.SHA256()
        )
        # Processes that are forked share the directory.
        file = self._directory / f"{name}-{os.getpid()}"
        pair = Pair(file.with_name(f"{file.name}.pem"), file.with_name(f"{file.name}.key"))
        pair.cert.write_bytes(signed.public_bytes(Encoding.PEM))
        pair.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return pair


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


@cache
def _directory() -> tempfile.TemporaryDirectory[str]:
    """Make a directory that is removed with the process."""
    return tempfile.TemporaryDirectory(prefix="cockpit-certificates-")


@cache
def authority() -> Authority:
    """Return an authority for the tests of this process."""
    return Authority(Path(_directory().name))


@cache
def certificate(name: str = "web1.example", address: str = "127.0.0.1", days: int = 1) -> Pair:
    return authority().issue(name, address, days=days)


def trusting() -> Tls:
    return Tls(ca=str(authority().cert))


def server_context(pair: Pair, client_ca: Path | None = None) -> ssl.SSLContext:
    """Return a server's context that, with `client_ca`, requires a certificate of the client."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=client_ca)
    context.load_cert_chain(pair.cert, pair.key)
    if client_ca:
        context.verify_mode = ssl.CERT_REQUIRED
    return context
