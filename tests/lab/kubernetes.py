"""A Kubernetes API server with one pod, whose container is a command: `kubectl get pod` and `kubectl exec` work.

As a kubelet does, it ends the standard input of a program when the connection is lost, and leaves the program running.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import parse_qs, urlsplit

from cockpit.cluster.certificates import session_certificate
from tests.lab.kubernetes_streams import STDERR, STDOUT, SpdyStreams, WebSocketStreams, accept_key

NAMESPACE, POD, CONTAINER = "shop", "web-0", "nginx"
_POD_PATH = f"/api/v1/namespaces/{NAMESPACE}/pods/{POD}"
_RESOURCES = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
    "/api/v1": {
        "kind": "APIResourceList",
        "groupVersion": "v1",
        "resources": [
            {"name": "pods", "singularName": "pod", "kind": "Pod", "namespaced": True, "verbs": ["get"]},
            {"name": "pods/exec", "singularName": "", "kind": "PodExecOptions", "namespaced": True, "verbs": ["get"]},
        ],
    },
    _POD_PATH: {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": POD, "namespace": NAMESPACE},
        "spec": {"containers": [{"name": CONTAINER}, {"name": "sidecar"}]},
        "status": {"phase": "Running"},
    },
}
_NOT_FOUND = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}
_KUBECONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "lab"}}],
    "current-context": "lab",
    "users": [{"name": "lab", "user": {"token": "lab"}}],
}


class Streams(Protocol):
    """The streams of a program between kubectl and this server."""

    def input(self) -> AsyncIterator[bytes]:
        """The program's standard input, to its end or that of the connection."""

    async def send(self, channel: int, data: bytes) -> None: ...

    async def finish(self, exit_status: int) -> None:
        """End the outputs, and tell the exit status."""


class _Request(NamedTuple):
    method: str
    target: str
    headers: dict[str, str]


class KubernetesApi:
    """The server. `prefix` are the words before those of a program: they run it in the container.

    `protocols` are the protocols of the requests for programs. `exit_status` replaces a program's, unless it is None.
    """

    def __init__(self, prefix: Sequence[str]) -> None:
        self.protocols: list[str] = []
        self.exit_status: int | None = None
        self._prefix = tuple(prefix)
        self._writers: set[asyncio.StreamWriter] = set()
        self._programs: list[asyncio.subprocess.Process] = []

    @asynccontextmanager
    async def serving(self, folder: Path) -> AsyncIterator[Path]:
        """Serve until the end of the block; yield the file for KUBECONFIG, which is made in this folder."""
        certificate = session_certificate()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
            file.write(certificate.certificate + certificate.key)
            file.flush()
            context.load_cert_chain(file.name)
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=context)
        address = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        cluster = {"server": address, "insecure-skip-tls-verify": True}
        config = folder / "kubeconfig"
        config.write_text(json.dumps(_KUBECONFIG | {"clusters": [{"name": "lab", "cluster": cluster}]}))
        try:
            yield config
        finally:
            server.close()
            self.cut()
            for program in self._programs:
                with suppress(ProcessLookupError):
                    program.kill()
                await program.wait()

    def cut(self) -> None:
        """Cut all connections, as an idle timeout of a load balancer does."""
        for writer in self._writers:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while request := await _read_request(reader):
                parts = urlsplit(request.target)
                if parts.path == f"{_POD_PATH}/exec":
                    await self._execute(request, parse_qs(parts.query), reader, writer)
                    return
                _answer(writer, _RESOURCES.get(parts.path))
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self._writers.discard(writer)
            writer.transport.abort()

    async def _execute(
        self,
        request: _Request,
        query: dict[str, list[str]],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        protocol = request.headers["upgrade"].lower()
        self.protocols.append(protocol)
        streams: Streams
        if protocol == "websocket":
            accept = f"Sec-WebSocket-Accept: {accept_key(request.headers['sec-websocket-key'])}"
            _upgrade(writer, "websocket", accept, "Sec-WebSocket-Protocol: v5.channel.k8s.io")
            streams = WebSocketStreams(reader, writer)
            await streams.send(STDOUT, b"")
        else:
            _upgrade(writer, "SPDY/3.1", "X-Stream-Protocol-Version: v4.channel.k8s.io")
            streams = await SpdyStreams.accept(reader, writer)
        await self._run(query["command"], streams)

    async def _run(self, words: Sequence[str], streams: Streams) -> None:
        pipe = asyncio.subprocess.PIPE
        program = await asyncio.create_subprocess_exec(*self._prefix, *words, stdin=pipe, stdout=pipe, stderr=pipe)
        self._programs.append(program)
        assert program.stdin and program.stdout and program.stderr
        feeding = asyncio.ensure_future(_feed(streams, program.stdin))
        await asyncio.gather(_copy(program.stdout, streams, STDOUT), _copy(program.stderr, streams, STDERR))
        status = await program.wait()
        with suppress(OSError):
            await streams.finish(status if self.exit_status is None else self.exit_status)
        # kubectl closes the connection.
        await feeding


async def _feed(streams: Streams, stdin: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        async for data in streams.input():
            if data:
                stdin.write(data)
                with suppress(OSError):
                    await stdin.drain()
            else:
                stdin.close()
    stdin.close()


async def _copy(output: asyncio.StreamReader, streams: Streams, channel: int) -> None:
    while data := await output.read(32768):
        with suppress(OSError):
            await streams.send(channel, data)


async def _read_request(reader: asyncio.StreamReader) -> _Request | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").rstrip().split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return _Request(method, target, headers)


def _answer(writer: asyncio.StreamWriter, resource: object) -> None:
    body = json.dumps(resource or _NOT_FOUND).encode()
    status = "200 OK" if resource else "404 Not Found"
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)


def _upgrade(writer: asyncio.StreamWriter, protocol: str, *headers: str) -> None:
    lines = ("HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", f"Upgrade: {protocol}", *headers, "", "")
    writer.write("\r\n".join(lines).encode())
