"""TLS on non-blocking sockets. Imported only for https targets."""

from __future__ import annotations

import errno
import os
import ssl
from collections.abc import Sequence
from time import monotonic
from typing import Any

from cockpit.load.failures import TLS_CUT, TLS_TROUBLE
from cockpit.model.errors import UsageError
from cockpit.model.load import plan as load
from cockpit.model.tls import TlsParameters

# OpenSSL's reason for an end of the connection without close_notify.
_END = "UNEXPECTED_EOF_WHILE_READING"
# Minimum time (s) between two attempts to keep a session, and from a handshake to the first attempt on an open
# connection. An attempt takes 0.2 ms, which would be spent for each connection to a server that resumes no session.
_PAUSE = 0.05


def alpn_of(version: load.HttpVersion) -> tuple[str, ...]:
    """Return the protocols to offer by ALPN for a version of HTTP, the preferred one first."""
    return {"1.1": ("http/1.1",), "2": ("h2",), "auto": ("h2", "http/1.1")}[version]


def context_of(tls: load.Tls, alpn: Sequence[str] = ("http/1.1",)) -> ssl.SSLContext:
    """Return an SSL context with the TLS settings of a plan, which offers the protocols `alpn`. Raises UsageError for
    invalid files."""
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


def _parameters(wrapped: ssl.SSLSocket) -> TlsParameters:
    cipher = wrapped.cipher()
    # Since Python 3.15.
    group = getattr(wrapped, "group", None)
    return TlsParameters(
        wrapped.version() or "",
        cipher[0] if cipher else "",
        (group() if group else "") or "",
        wrapped.selected_alpn_protocol() or "",
    )


def _as_end(error: ssl.SSLError) -> ssl.SSLEOFError:
    """Return the exception that Python raises for an end without close_notify since 3.11.4."""
    end = ssl.SSLEOFError(*error.args)
    end.reason = error.reason
    return end


class TlsWrapper:
    """Wraps connected sockets in TLS. All new connections resume the same session, until the server refuses it."""

    def __init__(self, tls: load.Tls, host: str, alpn: Sequence[str] = ("http/1.1",)) -> None:
        self._context = context_of(tls, alpn)
        self._name = tls.sni or host
        self._resumption = tls.resumption
        self._session: ssl.SSLSession | None = None
        self._next_attempt = 0.0
        # An open connection after a full handshake, and the time of its handshake.
        self._donor: ssl.SSLSocket | None = None
        self._donor_since = 0.0

    def wrap(self, sock: Any) -> TlsSocket:
        """Return the socket with TLS, before the handshake. Raises OSError."""
        # With TLS 1.3 the session arrives after the handshake.
        if self._donor is not None and monotonic() >= self._donor_since + _PAUSE:
            self._keep_session(self._donor)
        session = self._session
        try:
            wrapped = self._context.wrap_socket(
                sock,
                server_hostname=self._name,
                do_handshake_on_connect=False,
                suppress_ragged_eofs=False,
                session=session,
            )
        except (OSError, ValueError) as error:
            raise OSError(TLS_TROUBLE, str(error)) from None
        return TlsSocket(wrapped, self, session)

    def note_full_handshake(self, wrapped: ssl.SSLSocket, offered: ssl.SSLSession | None) -> None:
        """Forget the session that this connection offered and the server refused."""
        if offered is self._session:
            self._session = None
        if self._donor is None and self._session is None and self._resumption:
            self._donor, self._donor_since = wrapped, monotonic()

    def note_close(self, wrapped: ssl.SSLSocket) -> None:
        """Keep the session of a connection after a full handshake that is about to be closed, if none is kept."""
        if self._session is None and self._resumption:
            self._keep_session(wrapped)
        if self._donor is wrapped:
            self._donor = None

    def _keep_session(self, wrapped: ssl.SSLSocket) -> None:
        now = monotonic()
        if now < self._next_attempt:
            return
        self._next_attempt = now + _PAUSE
        session = wrapped.session
        if session is not None and (session.has_ticket or session.id):
            self._session, self._donor = session, None


class TlsSocket:
    """A TLS socket with the exceptions of a plain socket: BlockingIOError if it would block, and OSError with the errno
    TLS_TROUBLE for TLS errors, or TLS_CUT for an end of the connection without close_notify.

    After the handshake, `resumed` is whether it resumed a session, and `parameters` are the negotiated ones.
    """

    __slots__ = ("_is_full", "_offered", "_socket", "_wrapper", "fileno", "parameters", "resumed")
    parameters: TlsParameters

    def __init__(self, wrapped: ssl.SSLSocket, wrapper: TlsWrapper, offered: ssl.SSLSession | None) -> None:
        self._socket, self._wrapper, self._offered = wrapped, wrapper, offered
        self.fileno = wrapped.fileno
        self.resumed = self._is_full = False

    def shake_hands(self) -> None:
        """Continue the handshake; returns when it is complete. Raises BlockingIOError before that."""
        try:
            self._translate_errors(self._socket.do_handshake)
        except ssl.SSLEOFError as error:
            raise OSError(TLS_TROUBLE, _reason(error)) from None
        self.resumed = bool(self._socket.session_reused)
        self.parameters = _parameters(self._socket)
        self._is_full = not self.resumed
        if self._is_full:
            self._wrapper.note_full_handshake(self._socket, self._offered)

    def send(self, data: bytes | memoryview) -> int:
        try:
            return int(self._translate_errors(self._socket.send, data))
        except ssl.SSLEOFError:
            raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET)) from None

    def recv(self, size: int) -> bytes:
        try:
            data: bytes = self._translate_errors(self._socket.recv, size)
        except ssl.SSLEOFError as error:
            raise self._end_error(error) from None
        return data

    def recv_into(self, buffer: bytearray) -> int:
        try:
            return int(self._translate_errors(self._socket.recv_into, buffer))
        except ssl.SSLEOFError as error:
            raise self._end_error(error) from None

    def _end_error(self, error: ssl.SSLEOFError) -> OSError:
        """Distinguish an end without close_notify from a reset, which the ssl module reports as the same exception.

        OpenSSL 3 sets a reason for the end, and sends an alert, which makes a closed server reset the connection.
        With OpenSSL 1.1, getpeername() fails on a reset socket and succeeds on an ended one.
        """
        try:
            if error.reason != _END:
                self._socket.getpeername()
        except OSError:
            return ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
        return OSError(TLS_CUT, "ended without close_notify")

    def close(self) -> None:
        if self._is_full:
            self._wrapper.note_close(self._socket)
        self._socket.close()

    @staticmethod
    def _translate_errors(function: Any, *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise BlockingIOError from None
        except ssl.SSLEOFError:
            raise
        except ssl.SSLError as error:
            if error.reason != _END:
                raise OSError(TLS_TROUBLE, _reason(error)) from None
            raise _as_end(error) from None
