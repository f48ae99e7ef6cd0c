"""Two nginx behind HAProxy on this machine, whose service times a setting decides, and a session that watches them."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from cockpit.model.host.samples import HostConfig
from cockpit.model.knobs import Knob
from cockpit.model.load.plan import AccessLog, LoadPlan
from cockpit.profiles.profile import Profile
from tests.data import data_of
from tests.lab.masters import Master, running_server
from tests.waiting import free_port

DATA = data_of(__file__)

HOSTS = ("web1", "web2")
KNOBS = tuple(f"rate-{host}" for host in HOSTS)
PATHS = tuple(f"/{parts}" for parts in (2, 3, 5, 7))
# After each part of a page nginx waits for as long as the rate (bytes/s) needs: 50 ms, unless the rate is limited more.
_PART, RATE = 20_480, 409_600
_FORMAT = '$remote_addr [$time_local] "$request" $status $request_time'
_SITE = DATA["site"]
_BALANCER = """
frontend users
    bind 127.0.0.1:{}
    default_backend both
backend both
    balance roundrobin
"""


class Balanced(NamedTuple):
    """`port` is that of the users; `files` are those of the knobs."""

    port: int
    profile: Profile
    files: tuple[Path, ...]


@contextmanager
def balanced(slower: float = 1.0, hosts: Sequence[str] = HOSTS) -> Iterator[Balanced]:
    """Run a server for each host. The pages of the second one take `slower` times as long. Without a second one, users
    ask the first server without a balancer."""
    ports, front = [free_port() for _ in hosts], free_port()
    with ExitStack() as stack:
        servers = []
        for number, port in enumerate(ports):
            part = round(_PART * (slower if number else 1.0))
            more = _SITE.format(format=_FORMAT, port=port, part=part, rate=RATE)
            servers.append(stack.enter_context(running_server("nginx", more=more)))
            _write_pages(servers[-1].root, part)
        if len(ports) > 1:
            backends = "".join(f"    server {host} 127.0.0.1:{port}\n" for host, port in zip(hosts, ports, strict=True))
            stack.enter_context(running_server("haproxy", more=_BALANCER.format(front) + backends))
        else:
            (front,) = ports
        logs = (
            AccessLog(host=host, file=str(server.root / "users.log"), format=_FORMAT)
            for host, server in zip(hosts, servers, strict=True)
        )
        profile = Profile(
            name="x",
            plan=LoadPlan(url=f"http://127.0.0.1:{front}/", traffic=tuple(logs)),
            hosts=tuple(HostConfig(name=host) for host in hosts),
            knobs=tuple(map(_knob, hosts, servers)),
            guard=("errors < 50%",),
        )
        yield Balanced(front, profile, tuple(Path(knob.file) for knob in profile.knobs))


def _write_pages(root: Path, part: int) -> None:
    root.chmod(0o755)
    (root / "pages").mkdir()
    for path in PATHS:
        (root / f"pages{path}").write_text("x" * (part * int(path[1:]) - 100))


def _knob(host: str, server: Master) -> Knob:
    command = f"/usr/sbin/nginx -q -p {server.root} -c server.conf"
    return Knob(
        name=f"rate-{host}",
        host=host,
        kind="nginx",
        file=str(server.root / "conf.d" / "more.conf"),
        section="server {",
        directive="limit_rate",
        test=f"{command} -t",
        reload=f"{command} -s reload",
    )
