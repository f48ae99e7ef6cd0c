"""Streams of a session to other tools, by the flags of a command."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cockpit.cli.terminal import emit_all
from cockpit.model.errors import UsageError

if TYPE_CHECKING:
    from cockpit.export.follow import Stream


def streams_of(options: Namespace) -> list[Stream]:
    """Open the streams. Raises UsageError for a port in use, an invalid URL, or a missing extra."""
    streams: list[Stream] = []
    if options.annotate:
        from cockpit.export.annotations import AnnotationStream

        streams.append(AnnotationStream(options.annotate))
    if options.prometheus is not None:
        from cockpit.export.prometheus import ADDRESS, PrometheusStream

        endpoint = PrometheusStream(options.prometheus)
        print(f"metrics at http://{ADDRESS}:{endpoint.port}/metrics", file=sys.stderr)
        streams.append(endpoint)
    if options.ndjson:
        from cockpit.export.ndjson import NdjsonStream

        if options.json:
            raise UsageError("--json, --ndjson: use only one; the last line of --ndjson has the result")
        streams.append(NdjsonStream(emit_all))
    return streams


def report_streams(streams: Sequence[Stream]) -> None:
    """Print the errors of the streams."""
    for stream in streams:
        if stream.trouble:
            print(f"cockpit: {stream.trouble}", file=sys.stderr)
