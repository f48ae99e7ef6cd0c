"""Messages between cockpit and a load worker: JSON lines over its stdin and stdout.

To the worker: one Assignment, then commands. From it: Ready, ticks (`cockpit.model.events.encode`, with times in
seconds of time.monotonic(), which all processes of a machine share), and Done, without which it was lost.
"""

from __future__ import annotations

import itertools
from typing import Any, Literal

import msgspec

from cockpit.load.log_share import LogShare
from cockpit.load.paths import count_of
from cockpit.model.load import LoadPlan


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """A worker's share of a run: `concurrency` of its connections or `in_flight` of its requests under way and, if
    they are counted, `requests`.

    `address` is the target as the socket functions take it: (host, port), and two numbers more for IPv6; (path,) for
    a Unix socket. `workers` is how many share the run. `log` are its requests of a replayed log.
    """

    plan: LoadPlan
    run: int
    worker: int
    concurrency: int
    requests: int | None
    address: tuple[Any, ...]
    cpu: int | None = None
    workers: int = 1
    in_flight: int = 8192
    log: LogShare | None = None

    def own(self, total: int) -> int:
        """This worker's part of something that all share evenly."""
        return share(total, [1] * self.workers)[self.worker]


class Start(msgspec.Struct, frozen=True, tag_field="command", tag="start"):
    """Begin at this instant of time.monotonic()."""

    at: float


class Adjust(msgspec.Struct, frozen=True, tag_field="command", tag="adjust"):
    """Go on with this many connections of this worker's own, or with this rate of all workers together."""

    concurrency: int | None = None
    rate: float | None = None


class Redeal(msgspec.Struct, frozen=True, tag_field="command", tag="redeal"):
    """Others are lost: from now on take the share of worker `place` of `workers`, and `more` requests besides."""

    place: int
    workers: int
    more: int = 0


class Extend(msgspec.Struct, frozen=True, tag_field="command", tag="extend"):
    """The end of the plan, by time or by count, takes effect no sooner than this instant of time.monotonic()."""

    until: float


class Stop(msgspec.Struct, frozen=True, tag_field="command", tag="stop"):
    """End the run: abandon the requests in flight."""


Command = Start | Adjust | Redeal | Extend | Stop


class Ready(msgspec.Struct, frozen=True, tag_field="say", tag="ready"):
    """The worker waits for Start."""


class Done(msgspec.Struct, frozen=True, tag_field="say", tag="done"):
    """The last line of a worker that ends in order."""

    reason: Literal["completed", "stopped"]


WorkerMessage = Ready | Done

encode = msgspec.json.Encoder().encode
decode_assignment = msgspec.json.Decoder(Assignment).decode
decode_command: msgspec.json.Decoder[Command] = msgspec.json.Decoder(Command)
decode_message: msgspec.json.Decoder[WorkerMessage] = msgspec.json.Decoder(WorkerMessage)

# Every message of a worker begins so; every event begins otherwise.
MESSAGE_START = b'{"say":'


def share(total: int, weights: list[int]) -> list[int]:
    """`total` split over `weights` in proportion, in whole numbers that add up to it exactly."""
    whole = sum(weights)
    edges = [total * sum(weights[:i]) // whole for i in range(len(weights) + 1)]
    return [after - before for before, after in itertools.pairwise(edges)]


def dealt(total: int, workers: int) -> list[int]:
    """Split `total` among workers in turn."""
    return [len(range(worker, total, workers)) for worker in range(workers)]


def most_connections(plan: LoadPlan) -> int:
    """Maximum number of simultaneous connections of a plan, over all workers."""
    if plan.open:
        return plan.max_in_flight
    return max([plan.concurrency, *(stage.concurrency or 0 for stage in plan.stages)])


def connections_of(assignment: Assignment) -> int:
    """Maximum number of simultaneous connections of a worker."""
    plan = assignment.plan
    if plan.open:
        return assignment.in_flight
    return max([assignment.concurrency, *(assignment.own(stage.concurrency or 0) for stage in plan.stages)])


def _requests(plan: LoadPlan, concurrency: list[int]) -> list[int] | list[None]:
    """Each worker's share of the requests that are counted."""
    workers = len(concurrency)
    if plan.paths is not None and plan.paths.order == "once":
        paths = count_of(plan.paths)
        return dealt(paths if plan.requests is None else min(plan.requests, paths), workers)
    if plan.requests is None:
        return [None] * workers
    return dealt(plan.requests, workers) if plan.open else share(plan.requests, concurrency)


def assignments(plan: LoadPlan, run: int, address: tuple[Any, ...]) -> list[Assignment]:
    """Split the plan among its workers, at most as many as connections."""
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
            cpu=plan.cpus[index % len(plan.cpus)] if plan.cpus else None,
            workers=workers,
            in_flight=in_flight[index],
        )
        for index in range(workers)
    ]
