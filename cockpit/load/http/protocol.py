"""Messages between cockpit and a load worker: JSON lines over its stdin and stdout.

To the worker: an Assignment, then commands. From the worker: Ready, ticks (events, with times in seconds of
time.monotonic(), which all processes of a machine share), and Done. Without Done, the worker is lost.
"""

from __future__ import annotations

import itertools
from typing import Any, Literal

import msgspec

from cockpit.load.log_share import LogShare
from cockpit.load.paths import count_of
from cockpit.load.ramp import Ramp
from cockpit.model.load.plan import LoadPlan


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """A worker's share of a run: its connections (`concurrency`, closed load) or maximum requests in flight
    (`in_flight`, open load), and its number of `requests` (None: not limited).

    `address` is the socket address of the target: (host, port), (host, port, flow info, scope) for IPv6, or (path,) for
    a Unix socket; `opposite` is that of the second of two variants. `workers` is the number of workers of the run.
    `log` are the worker's requests of a replayed log.
    """

    plan: LoadPlan
    run: int
    worker: int
    concurrency: int
    requests: int | None
    address: tuple[Any, ...]
    opposite: tuple[Any, ...] = ()
    cpu: int | None = None
    workers: int = 1
    in_flight: int = 8192
    log: LogShare | None = None

    def own(self, total: int) -> int:
        """Return this worker's part of a total that all workers share evenly."""
        return share(total, [1] * self.workers)[self.worker]


class Start(msgspec.Struct, frozen=True, tag_field="command", tag="start"):
    """Start the load at `at` (s of time.monotonic())."""

    at: float


class Adjust(msgspec.Struct, frozen=True, tag_field="command", tag="adjust"):
    """Change the load of all workers together: connections, or arrivals/s."""

    load: Ramp


class Reassign(msgspec.Struct, frozen=True, tag_field="command", tag="reassign"):
    """Take over from lost workers: run the share of worker `place` of `workers`, and `more` further requests."""

    place: int
    workers: int
    more: int = 0


class Extend(msgspec.Struct, frozen=True, tag_field="command", tag="extend"):
    """Delay the planned end, by time or by count, until `until` (s of time.monotonic())."""

    until: float


class Stop(msgspec.Struct, frozen=True, tag_field="command", tag="stop"):
    """End the run: abandon the requests in flight."""


WorkerCommand = Start | Adjust | Reassign | Extend | Stop


class Ready(msgspec.Struct, frozen=True, tag_field="say", tag="ready"):
    """The worker waits for Start."""


class Done(msgspec.Struct, frozen=True, tag_field="say", tag="done"):
    """The last line of a worker that exits normally."""

    reason: Literal["completed", "stopped"]


WorkerMessage = Ready | Done


def _to_wire(value: Any) -> Any:
    """Encode a histogram. Imported when needed, since the first contact with a target needs none."""
    from cockpit.model.histogram import to_wire

    return to_wire(value)


encode = msgspec.json.Encoder(enc_hook=_to_wire).encode
decode_assignment = msgspec.json.Decoder(Assignment).decode
decode_command: msgspec.json.Decoder[WorkerCommand] = msgspec.json.Decoder(WorkerCommand)
decode_message: msgspec.json.Decoder[WorkerMessage] = msgspec.json.Decoder(WorkerMessage)

# Prefix that distinguishes messages of a worker from events.
MESSAGE_START = b'{"say":'


def share(total: int, weights: list[int]) -> list[int]:
    """Split `total` in proportion to `weights`, into whole numbers whose sum is `total`."""
    whole = sum(weights)
    edges = [total * sum(weights[:i]) // whole for i in range(len(weights) + 1)]
    return [after - before for before, after in itertools.pairwise(edges)]


def split_evenly(total: int, workers: int) -> list[int]:
    """Split `total` evenly among workers, as if assigned round-robin."""
    return [len(range(worker, total, workers)) for worker in range(workers)]


def most_connections(plan: LoadPlan) -> int:
    """Maximum number of simultaneous connections of a plan, over all workers."""
    if plan.open:
        return -(-plan.max_in_flight // plan.streams)
    return max(_levels(plan))


def _levels(plan: LoadPlan) -> list[int]:
    """Return all numbers of connections of a plan of closed load."""
    stages = ((stage.concurrency, stage.ramp_to) for stage in plan.stages)
    return [int(number or 0) for load in ((plan.concurrency, plan.ramp_to), *stages) for number in load]


def connections_of(assignment: Assignment) -> int:
    """Maximum number of simultaneous connections of a worker."""
    plan = assignment.plan
    targets = len(plan.parts)
    if plan.open:
        return targets * -(-assignment.in_flight // plan.streams)
    return targets * max(map(assignment.own, _levels(plan)))


def _requests(plan: LoadPlan, concurrency: list[int]) -> list[int] | list[None]:
    """Return the number of requests of each worker; None if the plan does not limit them."""
    workers = len(concurrency)
    if plan.paths is not None and plan.paths.order == "once":
        paths = count_of(plan.paths)
        return split_evenly(paths if plan.requests is None else min(plan.requests, paths), workers)
    if plan.requests is None:
        return [None] * workers
    return split_evenly(plan.requests, workers) if plan.open else share(plan.requests, concurrency)


def assignments(plan: LoadPlan, run: int, address: tuple[Any, ...], opposite: tuple[Any, ...] = ()) -> list[Assignment]:
    """Split the plan among its workers; there are at most as many workers as connections."""
    workers = max(1, min(plan.workers, most_connections(plan)))
    concurrency = share(plan.concurrency, [1] * workers)
    in_flight = share(plan.max_in_flight, [1] * workers)
    requests = _requests(plan, concurrency)
    return [
        Assignment(
            plan=plan,
            run=run,
            worker=index,
            concurrency=concurrency[index],
            requests=requests[index],
            address=address,
            opposite=opposite,
            cpu=plan.cpus[index % len(plan.cpus)] if plan.cpus else None,
            workers=workers,
            in_flight=in_flight[index],
        )
        for index in range(workers)
    ]
