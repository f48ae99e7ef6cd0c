"""A Kubernetes API server with one pod, whose container is a command: `kubectl get pod` and `kubectl exec` work.

As a kubelet does, it ends the standard input of a program when the connection is lost, and leaves the program running.
"""

import asyncio
import json
import ssl
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler
from tornado.websocket import WebSocketClosedError, WebSocketHandler

from cockpit.cluster.certificates import session_certificate

NAMESPACE, POD, CONTAINER = "shop", "web-0", "nginx"
# The first byte of a message is its channel; CLOSE and a channel close it (v5.channel.k8s.io).
_STDIN, _STDOUT, _STDERR, _ERROR, _CLOSE = 0, 1, 2, 3, 255
_POD_PATH = f"/api/v1/namespaces/{NAMESPACE}/pods/{POD}"
_VERBS = {"singularName": "", "namespaced": True, "verbs": ["get"]}
_RESOURCES = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
    "/api/v1": {
        "kind": "APIResourceList",
        "groupVersion": "v1",
        "resources": [
            _VERBS | {"name": "pods", "kind": "Pod"},
            _VERBS | {"name": "pods/exec", "kind": "PodExecOptions"},
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


class _Resource(RequestHandler):
    def get(self) -> None:
        resource = _RESOURCES.get(self.request.path)
        self.set_status(200 if resource else 404)
        self.write(resource or _NOT_FOUND)


class _Execution(WebSocketHandler):
    """Runs a program in the container: `prefix` are the words before those of the program."""

    def initialize(self, prefix: Sequence[str], programs: list[Process]) -> None:
        self._prefix, self._programs = prefix, programs

    def select_subprotocol(self, subprotocols: list[str]) -> str:
        return "v5.channel.k8s.io"

    async def open(self, *args: str, **kwargs: str) -> None:
        words = [word.decode() for word in self.request.query_arguments["command"]]
        self._program = await asyncio.create_subprocess_exec(
            *self._prefix, *words, stdin=PIPE, stdout=PIPE, stderr=PIPE
        )
        self._programs.append(self._program)
        self._running = asyncio.ensure_future(self._run())

    async def on_message(self, message: str | bytes) -> None:
        assert isinstance(message, bytes) and self._program.stdin
        if message == bytes((_CLOSE, _STDIN)):
            self._program.stdin.close()
        elif message[0] == _STDIN:
            with suppress(OSError):
                self._program.stdin.write(message[1:])
                await self._program.stdin.drain()

    def on_close(self) -> None:
        assert self._program.stdin
        self._program.stdin.close()

    async def _run(self) -> None:
        assert self._program.stdout and self._program.stderr
        await self._send(_STDOUT, b"")
        await asyncio.gather(self._copy(self._program.stdout, _STDOUT), self._copy(self._program.stderr, _STDERR))
        status: dict[str, object] = {"metadata": {}, "status": "Success"}
        if exit_status := await self._program.wait():
            causes = [{"reason": "ExitCode", "message": str(exit_status)}]
            status |= {"status": "Failure", "reason": "NonZeroExitCode", "details": {"causes": causes}}
        await self._send(_ERROR, json.dumps(status).encode())
        self.close(1000)

    async def _copy(self, output: asyncio.StreamReader, channel: int) -> None:
        while data := await output.read(32768):
            await self._send(channel, data)

    async def _send(self, channel: int, data: bytes) -> None:
        with suppress(WebSocketClosedError):
            await self.write_message(bytes((channel,)) + data, binary=True)


@asynccontextmanager
async def kubernetes_api(prefix: Sequence[str], folder: Path) -> AsyncIterator[Path]:
    """Serve until the end of the block; yield the file for KUBECONFIG, which is made in this folder."""
    certificate = session_certificate()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
        file.write(certificate.certificate + certificate.key)
        file.flush()
        context.load_cert_chain(file.name)
    programs: list[Process] = []
    options = {"prefix": prefix, "programs": programs}
    server = HTTPServer(
        Application([(f"{_POD_PATH}/exec", _Execution, options), (".*", _Resource)]), ssl_options=context
    )
    sockets = bind_sockets(0, "127.0.0.1")
    server.add_sockets(sockets)
    cluster = {"server": f"https://127.0.0.1:{sockets[0].getsockname()[1]}", "insecure-skip-tls-verify": True}
    config = folder / "kubeconfig"
    config.write_text(json.dumps(_KUBECONFIG | {"clusters": [{"name": "lab", "cluster": cluster}]}))
    try:
        yield config
    finally:
        server.stop()
        await server.close_all_connections()
        for program in programs:
            with suppress(ProcessLookupError):
                program.kill()
            await program.wait()
