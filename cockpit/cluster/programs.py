"""What cockpit's programs of a cluster are told on standard input and print: one line of JSON each."""

from __future__ import annotations

from typing import Annotated

import msgspec

from cockpit.cluster.certificates import Certificate


class SchedulerOrder(msgspec.Struct, frozen=True):
    """Start a scheduler on 127.0.0.1."""

    certificate: Certificate


class GeneratorOrder(msgspec.Struct, frozen=True, kw_only=True):
    """Join the scheduler as `name`. Others reach the generator as `contact`."""

    name: str
    certificate: Certificate
    scheduler: str
    contact: str


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """The first line of a generator: its versions."""

    version: str
    python: str
    dask: str


class Started(msgspec.Struct, frozen=True):
    """The program is ready and listens on `port` of 127.0.0.1; `problem` is why it is not."""

    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 0
    problem: str = ""
