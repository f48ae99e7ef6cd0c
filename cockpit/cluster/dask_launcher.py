"""Load workers on the machines of a Dask cluster."""

from __future__ import annotations

import asyncio
import uuid
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Self

import msgspec
from msgspec.structs import replace

from cockpit import __version__
from cockpit.cluster.remote_generator import REASON, RemoteGenerator, RemoteWorker, WorkerLine
from cockpit.load.http.protocol import Assignment
from cockpit.load.limits import Capacity
from cockpit.load.preflight import Preflight, preflight
from cockpit.load.workers import Assigned, WorkerHandle
from cockpit.model.clock import Clock
from cockpit.model.errors import CockpitError, HostError
from cockpit.model.events import AnyEvent
from cockpit.model.generators import GeneratorClock, GeneratorLost
from cockpit.model.load.plan import LoadPlan
from cockpit.model.text import sanitize

if TYPE_CHECKING:
    from distributed import Client
    from distributed.security import Security

Emit = Callable[[AnyEvent], None]

# Timeouts (s) for the scheduler to answer, for generators to join, and for a carrier to be placed.
_CONNECT, _JOIN, _PLACE = 10.0, 30.0, 20.0
# Interval (s) between two pings, and number of pings before the first run.
_PING, _FIRST_PINGS = 0.5, 20
# Maximum characters of a machine's name.
_NAME = 64
# Why a generator is lost whose connection ended.
WORKER_ENDED = "its Dask worker ended"


class DaskLauncher:
    """The load workers of a session on all machines of a cluster. A context manager that is connected to the scheduler,
    by tls:// without a scheme.

    `generators` are the machines in the order of their names; their carriers log to the `topic`.
    """

    # Time (s) within which messages reach every machine.
    lead = 0.25

    def __init__(self, scheduler: str, security: Security | None = None, generators: int = 0) -> None:
        """Wait for at least `generators` machines; 0: use the machines that are connected, at least one."""
        self._scheduler = scheduler if "://" in scheduler else f"tls://{scheduler}"
        self._security = security
        self._minimum = max(1, generators)
        self.topic = f"cockpit-{uuid.uuid4().hex}"
        self.client: Client | None = None
        self.generators: list[RemoteGenerator] = []
        self._tasks: list[asyncio.Task[None]] = []
        self.machines: tuple[str, ...] = ()
        self._clock: Clock | None = None
        self._emit: Emit = lambda _: None

    async def __aenter__(self) -> Self:
        try:
            await self._connect()
            await self._place()
        except BaseException:
            await self.close()
            raise
        self._tasks = [asyncio.create_task(self._watch(machine)) for machine in self.generators]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the generators."""
        return tuple(machine.name for machine in self.generators)

    def attach(self, clock: Clock, emit: Emit) -> None:
        self._clock, self._emit = clock, emit

    @property
    def capacity(self) -> Capacity:
        """Capacity of the remaining generators. Each gets the same share of the load, so the smallest is the limit."""
        machines = self._remaining()
        files = [machine.files for machine in machines if machine.files is not None]
        ports = len(machines) * min(machine.ports for machine in machines)
        return Capacity(min(files, default=None), ports, len(machines))

    async def check(self, plan: LoadPlan) -> Preflight:
        return await preflight(plan, self.capacity)

    def _remaining(self) -> list[RemoteGenerator]:
        """Return the generators that are not lost. Raises CockpitError if there are none."""
        machines = [machine for machine in self.generators if not machine.lost]
        if not machines:
            raise CockpitError("all generators are lost")
        return machines

    async def workers(self, assigned: Assigned) -> Sequence[WorkerHandle]:
        """Start the plan's number of load workers on each machine, assigned to the machines in turn."""
        machines = self._remaining()
        workers = [
            RemoteWorker(_pinned(share, at // len(machines)), machines[at % len(machines)])
            for at, share in enumerate(assigned(len(machines)))
        ]
        problems: list[BaseException | None]
        try:
            async with asyncio.timeout(_PLACE):
                starting = (machine.begin(_workers_of(machine, workers)) for machine in machines)
                problems = await asyncio.gather(*starting, return_exceptions=True)
        except TimeoutError:
            problems = [CockpitError(f"load workers of a generator did not start within {_PLACE:.0f} s")]
        if problem := next(filter(None, problems), None):
            for worker in workers:
                worker.kill()
            raise problem
        self.machines = tuple(worker.machine.name for worker in workers)
        return workers

    async def close(self) -> None:
        """End all load workers, and disconnect. The cluster itself is not changed."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(machine.close() for machine in self.generators))
        if self.client is not None:
            with suppress(Exception):
                await self.client.close(timeout=2)
        self.client = None

    async def _connect(self) -> None:
        from distributed import Client
        from distributed.security import Security

        encrypted = _is_encrypted(self._scheduler)
        security = self._security or Security()
        if encrypted and not security.tls_client_cert:
            problem = "tls:// needs certificates; set them in Dask's configuration under distributed.comm.tls"
            raise HostError(problem, subject=self._scheduler)
        self.client = Client(self._scheduler, asynchronous=True, security=security, timeout=_CONNECT)
        try:
            with warnings.catch_warnings():
                # Versions are compared when a carrier is placed; a patch release of Python makes no difference.
                warnings.simplefilter("ignore")
                await self.client
            await self.client.wait_for_workers(self._minimum, timeout=_JOIN)
        except (OSError, TimeoutError, ValueError, RuntimeError) as error:
            raise HostError(_reason(error), subject=f"cluster {self._scheduler}") from None

    async def _place(self) -> None:
        """Place a carrier on each machine, and compare versions and clocks."""
        from cockpit.cluster.generator_actor import GeneratorActor

        assert self.client is not None
        client = self.client
        client.subscribe_topic(self.topic, self.feed)
        client.subscribe_topic("all", self._handle_scheduler_event)
        workers = client.scheduler_info(n_workers=-1)["workers"]
        for place, (address, facts) in enumerate(sorted(workers.items(), key=lambda each: str(each[1]["name"]))):
            name = sanitize(str(facts["name"] if facts["name"] != address else facts["host"]), _NAME)
            future = client.submit(GeneratorActor, self.topic, place, actor=True, workers=[address], pure=False)
            machine = RemoteGenerator(name if name not in self.names else f"{name}-{place}", address)
            self.generators.append(machine)
            try:
                async with asyncio.timeout(_PLACE):
                    machine.actor = await future
                    await machine.check(__version__)
                    for _ in range(_FIRST_PINGS):
                        await machine.ping()
            except TimeoutError:
                raise HostError(f"no answer within {_PLACE:.0f} s", subject=machine.name) from None
            except CockpitError:
                raise
            except Exception as error:  # another version of cockpit may raise any exception
                raise HostError(_reason(error), subject=machine.name) from None

    def feed(self, event: tuple[float, Any]) -> None:
        """Pass on a line of a load worker, only if the sender is the generator that the line names."""
        with suppress(msgspec.ValidationError):
            line = msgspec.convert(event[1], WorkerLine)
            for machine in self.generators[line.place : line.place + 1]:
                if machine.address == line.worker and not machine.lost:
                    try:
                        machine.feed(line)
                    except HostError as error:
                        self._lose(machine, error.problem)

    def _handle_scheduler_event(self, event: tuple[float, Any]) -> None:
        """Handle the scheduler's event about a lost worker; generators may send other events."""
        if isinstance(event[1], dict) and event[1].get("action") == "remove-worker":
            for machine in self.generators:
                if machine.address == event[1].get("worker"):
                    self._lose(machine, WORKER_ENDED)

    async def _watch(self, machine: RemoteGenerator) -> None:
        while not machine.lost:
            await asyncio.sleep(_PING)
            try:
                async with asyncio.timeout(machine.timeout):
                    await machine.ping()
            except TimeoutError:
                if machine.silence > machine.timeout:
                    self._lose(machine, f"no answer for {machine.silence:.1f} s")
            except OSError as error:  # of Dask, without a number, if the scheduler's event comes later
                self._lose(machine, _reason(error) if error.errno else WORKER_ENDED)
            except Exception as error:  # an error of Dask, or any exception of the generator
                self._lose(machine, _reason(error))
            else:
                self._report_clock(machine)

    def _report_clock(self, machine: RemoteGenerator) -> None:
        if self._clock is None:
            return
        best, drift = machine.clock.best, machine.clock.drift
        t, offset, uncertainty = self._clock.now(), best.offset, best.uncertainty
        self._emit(GeneratorClock(t=t, machine=machine.name, offset=offset, uncertainty=uncertainty, drift=drift))

    def _lose(self, machine: RemoteGenerator, reason: str) -> None:
        if machine.lost:
            return
        machine.lose(reason)
        if self._clock is not None:
            self._emit(GeneratorLost(t=self._clock.now(), machine=machine.name, detail=reason))


def _pinned(share: Assignment, at: int) -> Assignment:
    """Pin the share to the CPU of its plan for the `at`th worker of a machine."""
    cpus = share.plan.cpus
    return replace(share, cpu=cpus[at % len(cpus)] if cpus else None)


def _workers_of(machine: RemoteGenerator, workers: Sequence[RemoteWorker]) -> list[RemoteWorker]:
    return [worker for worker in workers if worker.machine is machine]


def _is_encrypted(scheduler: str) -> bool:
    """Return whether connections to the scheduler are encrypted. Raises HostError if they leave this machine without
    that, or for an invalid address."""
    from distributed.comm.addressing import parse_address, parse_host_port

    try:
        scheme, place = map(str, parse_address(scheduler))
        host = str(parse_host_port(place, 0)[0])
    except ValueError:
        raise HostError("no address of a scheduler; write tls://HOST:PORT", subject=scheduler) from None
    if scheme != "tls" and not (scheme == "tcp" and _is_loopback(host)):
        raise HostError(f"{sanitize(scheme, 20)}:// is not encrypted; use tls://", subject=scheduler)
    return scheme == "tls"


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _reason(error: BaseException) -> str:
    text = str(error) or str(error.__cause__ or "") or type(error).__name__
    return sanitize(text.strip(), REASON)
