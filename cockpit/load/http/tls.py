"""TLS on non-blocking sockets. Imported only for https targets."""

from __future__ import annotations

import os
import ssl
from collections.abc import Sequence
from contextlib import suppress
from time import monotonic
from typing import Any

from cockpit.load.failures import TLS_CUT, TLS_TROUBLE
from cockpit.load.http.request import ascii_name
from cockpit.model.errors import UsageError
from cockpit.model.load import plan as load
from cockpit.model.tls import TlsParameters

# Minimum time (s) between two attempts to keep a session, and from a handshake to the first attempt on an open
# connection. An attempt takes 0.2 ms, which would be spent for each connection to a server that resumes no session.
_PAUSE = 0.05
# Maximum size (bytes) of a read from the socket, and of the data that is encrypted before it is sent.
_CHUNK = 64 * 1024
# Reads without data, of messages of TLS only, after which a connection is given up: a server may send them for ever.
_MOST_READS = 64
_BUFFER = bytearray(_CHUNK)
_RECEIVED = memoryview(_BUFFER)


def alpn_of(version: load.HttpVersion) -> tuple[str, ...]:
    """Return the protocols to offer by ALPN for a version of HTTP, the preferred one first."""
    return {"1.1": ("http/1.1",), "2": ("h2",), "auto": ("h2", "http/1.1")}[version]


def context_of(tls: load.Tls, alpn: Sequence[str] = ("http/1.1",)) -> ssl.SSLContext:
    """Return an SSL context with the TLS settings of a plan, which offers the protocols `alpn`. Raises UsageError for
    invalid files, and for an invalid server name."""
    if tls.sni:
        ascii_name(tls.sni, "--sni, tls.sni")
    for path in (tls.ca, tls.cert, tls.key):
        if path and not os.path.isfile(path):  # noqa: PTH113
            raise UsageError(f"{path}: no such file; TLS certificates and keys are read from PEM files")
    if tls.key and not tls.cert:
        raise UsageError(f"{tls.key}: client key without a certificate; give the certificate, too")
    try:
        if tls.verify:
            context = ssl.create_default_context(cafile=tls.ca or None)
        else:
            # Without the system's CAs, which a handshake searches even if nothing is verified: 0.1 to 0.4 ms.
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
    except (ssl.SSLError, OSError) as error:
        raise UsageError(f"{tls.ca}: contains no PEM certificates: {_reason(error)}") from None
    # Python before 3.11.4 ignores an end without close_notify by default: cut responses would count as complete.
    context.options &= ~getattr(ssl, "OP_IGNORE_UNEXPECTED_EOF", ssl.Options(0))
    context.set_alpn_protocols(list(alpn))
    if tls.cert:
        try:
            # An empty password, so that OpenSSL does not prompt on the terminal.
            context.load_cert_chain(tls.cert, tls.key or None, password="")
        except (ssl.SSLError, OSError) as error:
            names = f"{tls.cert} and {tls.key}" if tls.key else tls.cert
            raise UsageError(
                f"{names}: not a PEM certificate with its key, without a password: {_reason(error)}"
            ) from None
    return context


def handshake_problem(error: OSError) -> str:
    """Return the problem of a failed TLS handshake, on one line."""
    if isinstance(error, ssl.SSLCertVerificationError):
        ways = "trust its CA (--cacert, tls.ca), or skip the check (--insecure, tls.verify = false)"
        return f"its certificate is not trusted: {error.verify_message}; {ways}"
    if isinstance(error, ssl.SSLEOFError | ConnectionResetError):
        return "the server aborted the TLS handshake"
    return f"the TLS handshake failed: {_reason(error)}"


def _reason(error: OSError) -> str:
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.replace("_", " ").lower()
    return str(error.strerror or error).lower()


def _parameters(tls: ssl.SSLObject) -> TlsParameters:
    cipher = tls.cipher()
    # Since Python 3.15.
    group = getattr(tls, "group", None)
    return TlsParameters(
        tls.version() or "",
        cipher[0] if cipher else "",
        (group() if group else "") or "",
        tls.selected_alpn_protocol() or "",
    )


class TlsWrapper:
    """Wraps connected sockets in TLS. All new connections resume `session`, until the server refuses it."""

    def __init__(self, tls: load.Tls, host: str, alpn: Sequence[str] = ("http/1.1",)) -> None:
        self._context = context_of(tls, alpn)
        self._name: str | bytes = tls.sni or host
        # Encoded here, because each handshake would do it again. An invalid name fails in each handshake.
        with suppress(UnicodeError):
            self._name = self._name.encode("idna")
        self._resumption = tls.resumption
        self.session: ssl.SSLSession | None = None
        self._next_attempt = 0.0
        # An open connection after a full handshake, and the time of its handshake.
        self._donor: ssl.SSLObject | None = None
        self._donor_since = 0.0

    def wrap(self, sock: Any) -> TlsSocket:
        """Return the socket with TLS, whose handshake has begun. Raises OSError."""
        # With TLS 1.3 the session arrives after the handshake.
        if self._donor is not None and monotonic() >= self._donor_since + _PAUSE:
            self._keep_session(self._donor)
        return TlsSocket(sock, self)

    def new_tls(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO) -> ssl.SSLObject:
        """Return a TLS connection in memory, which offers `session`. Raises OSError."""
        try:
            return self._context.wrap_bio(incoming, outgoing, server_hostname=self._name, session=self.session)
        except (OSError, ValueError) as error:
            raise OSError(TLS_TROUBLE, str(error)) from None

    def note_full_handshake(self, tls: ssl.SSLObject, offered: ssl.SSLSession | None) -> None:
        """Forget the session that this connection offered and the server refused."""
        if offered is self.session:
            self.session = None
        if self._donor is None and self.session is None and self._resumption:
            self._donor, self._donor_since = tls, monotonic()

    def note_close(self, tls: ssl.SSLObject) -> None:
        """Keep the session of a connection after a full handshake that is about to be closed, if none is kept."""
        if self.session is None and self._resumption:
            self._keep_session(tls)
        if self._donor is tls:
            self._donor = None

    def _keep_session(self, tls: ssl.SSLObject) -> None:
        now = monotonic()
        if now < self._next_attempt:
            return
        self._next_attempt = now + _PAUSE
        session = tls.session
        if session is not None and (session.has_ticket or session.id):
            self.session, self._donor = session, None


class TlsSocket:
    """A TLS socket with the exceptions of a plain socket: BlockingIOError if it would block, and OSError with the errno
    TLS_TROUBLE for TLS errors, or TLS_CUT for an end of the connection without close_notify.

    OpenSSL works in memory: it would read each record from a socket in two calls, and send the end of a handshake and
    the first request in two. After the handshake, `resumed` is whether it resumed a session, and `parameters` are the
    negotiated ones.
    """

    __slots__ = (
        "_encrypted",
        "_end",
        "_incoming",
        "_is_full",
        "_offered",
        "_outgoing",
        "_socket",
        "_tls",
        "_unsent",
        "_wrapper",
        "is_empty",
        "parameters",
        "resumed",
    )
    parameters: TlsParameters

    def __init__(self, sock: Any, wrapper: TlsWrapper) -> None:
        self._socket, self._wrapper, self._offered = sock, wrapper, wrapper.session
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = wrapper.new_tls(self._incoming, self._outgoing)
        self.resumed = self._is_full = False
        # The last read from the socket, since it became readable, left nothing in it.
        self.is_empty = True
        # Encrypted bytes that did not fit into the send buffer; bytes of the data to send that they include.
        self._unsent = b""
        self._encrypted = 0
        # The errno if the connection ends.
        self._end = TLS_TROUBLE
        self._advance()

    def shake_hands(self) -> None:
        """Continue the handshake with the data that has arrived; returns when it is complete, and its last message is
        sent with the first data. Raises BlockingIOError before that."""
        while True:
            self._receive()
            if self._advance():
                break
            if self.is_empty:
                raise BlockingIOError
        self._end = TLS_CUT
        self.resumed = bool(self._tls.session_reused)
        self.parameters = _parameters(self._tls)
        self._is_full = not self.resumed
        if self._is_full:
            self._wrapper.note_full_handshake(self._tls, self._offered)

    def _advance(self) -> bool:
        """Send the next messages of the handshake; return whether it is complete."""
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            return False
        except ssl.SSLError as error:
            # The alert for the server.
            with suppress(OSError):
                self._flush()
            raise OSError(TLS_TROUBLE, _reason(error)) from None
        return True

    def send(self, data: bytes | memoryview) -> int:
        # Data that is encrypted but not sent counts as sent by the next call, which has it again.
        if self._unsent and not self._flush():
            raise BlockingIOError
        sent, self._encrypted = self._encrypted, 0
        size = len(data)
        while sent < size:
            try:
                written = self._tls.write(data[sent : sent + _CHUNK] if sent or size > _CHUNK else data)
            except ssl.SSLWantReadError:
                self._flush()
                break
            except ssl.SSLError as error:
                raise OSError(TLS_TROUBLE, _reason(error)) from None
            if not self._flush():
                self._encrypted = written
                break
            sent += written
        if not sent:
            raise BlockingIOError
        return sent

    def _flush(self) -> bool:
        """Send what is encrypted; return whether nothing is left."""
        data = self._unsent + self._outgoing.read() if self._unsent else self._outgoing.read()
        try:
            self._unsent = data[self._socket.send(data) :] if data else b""
        except BlockingIOError:
            self._unsent = data
        return not self._unsent

    def recv(self, size: int) -> bytes:
        data: bytes = self._read(size)
        return data

    def recv_into(self, buffer: bytearray) -> int:
        return int(self._read(len(buffer), buffer))

    def _read(self, *arguments: Any) -> Any:
        """Read from the next record, as `read` of ssl.SSLObject."""
        tls, incoming = self._tls, self._incoming
        for _ in range(_MOST_READS):
            if incoming.pending or tls.pending():
                try:
                    return tls.read(*arguments)
                except ssl.SSLWantReadError:
                    # A part of a record; or a message of TLS, which may need an answer.
                    if self._outgoing.pending:
                        self._flush()
                except ssl.SSLError as error:
                    raise OSError(TLS_TROUBLE, _reason(error)) from None
            self._receive()
        raise OSError(TLS_TROUBLE, "only messages of TLS, no data")

    @property
    def holds_data(self) -> bool:
        """Whether data that has arrived may not be read yet."""
        return not self.is_empty or self._incoming.pending > 0 or self._tls.pending() > 0

    def _receive(self) -> None:
        """Receive encrypted data. Raises OSError."""
        if self._unsent:
            self._flush()
        size: int = self._socket.recv_into(_BUFFER)
        if not size:
            raise OSError(self._end, "ended without close_notify")
        self._incoming.write(_RECEIVED[:size])
        self.is_empty = size < _CHUNK

    def close(self) -> None:
        if self._is_full:
            self._wrapper.note_close(self._tls)
        self._socket.close()
