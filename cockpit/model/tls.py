"""What a TLS handshake negotiated."""

from __future__ import annotations

from typing import NamedTuple

_UNKNOWN = "-"


class TlsParameters(NamedTuple):
    """Names as OpenSSL prints them. `group`: of the key exchange; "": unknown (Python before 3.15), or none. `alpn`:
    the application protocol; "": the server chose none."""

    version: str
    cipher: str
    group: str = ""
    alpn: str = ""

    @property
    def key(self) -> str:
        """The four names, joined by spaces: the key of handshake counts."""
        return " ".join(name or _UNKNOWN for name in self)

    @classmethod
    def of_key(cls, key: str) -> TlsParameters:
        """Return the parameters of a key; of an invalid one, the key as the version."""
        names = [name.replace(_UNKNOWN, "", name == _UNKNOWN) for name in key.split(" ")]
        return cls(*names) if len(names) == len(cls._fields) else cls(key, "")

    @property
    def words(self) -> str:
        """E.g. `TLSv1.3 TLS_AES_256_GCM_SHA384 x25519, ALPN h2`."""
        return f"{' '.join(filter(None, self[:3]))}{f', ALPN {self.alpn}' if self.alpn else ''}"
