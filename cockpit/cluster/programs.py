"""Messages to and from the programs of a cluster: one line of JSON each, on standard input and output."""

from __future__ import annotations

from typing import Annotated

import msgspec

from cockpit.cluster.certificates import Certificate


class SchedulerOrder(msgspec.Struct, frozen=True):
    """Order to start a scheduler on 127.0.0.1."""

    certificate: Certificate


class GeneratorOrder(msgspec.Struct, frozen=True, kw_only=True):
    """Order to join the scheduler as `name`; `contact` is the address at which others reach the generator."""

    name: str
    certificate: Certificate
    scheduler: str
    contact: str


class GeneratorVersions(msgspec.Struct, frozen=True, kw_only=True):
    """The first line of a generator, with its versions."""

    version: str
    python: str
    dask: str


class Started(msgspec.Struct, frozen=True):
    """The program is ready and listens on `port` of 127.0.0.1, or has failed with `problem`."""

    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 0
    problem: str = ""
