"""What cockpit's programs of a cluster are told on standard input and print: one line of JSON each."""

from __future__ import annotations

from typing import Annotated

import msgspec

from cockpit.cluster.certificates import Certificate


class SchedulerOrder(msgspec.Struct, frozen=True):
    """Start a scheduler on 127.0.0.1."""

    certificate: Certificate


class GeneratorOrder(msgspec.Struct, frozen=True, kw_only=True):
    """Join the scheduler as `name`. Listen on `port` of 127.0.0.1, which others reach as `contact`."""

    name: str
    certificate: Certificate
    scheduler: str
    port: int
    contact: str


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """The first line of a generator: versions, and a free port."""

    version: str
    python: str
    dask: str
    port: Annotated[int, msgspec.Meta(ge=1, le=65535)]


class Started(msgspec.Struct, frozen=True):
    """The program is ready, at this address; `problem` is why it is not."""

    address: str = ""
    problem: str = ""
