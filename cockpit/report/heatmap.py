"""The heat map of latency over time: a column a second (or several), a row a bucket of latency, as an image in SVG."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from cockpit.model.state import LATENCY_EDGES, LoadSecond
from cockpit.model.text import milliseconds
from cockpit.report.charts import HEIGHT, WIDTH, Axis, SvgChart, decades

# Maximum number of columns; in a longer session several seconds share one.
_COLUMNS = 400
# Minimum opacity, so that even the rarest responses of a column are visible.
_FAINTEST = 40
# A blue that contrasts with white and with nearly black alike. Its opacity shows the count.
_COLOUR = (0x2F, 0x86, 0xD0)

Counts = npt.NDArray[np.float64]


def heat_map(seconds: Sequence[LoadSecond], x: Axis, title: str) -> SvgChart | None:
    """Return the chart over the time of `x`; None without responses."""
    counts = _counts(seconds, x)
    used = np.flatnonzero(counts.sum(axis=0))
    if not len(used):
        return None
    low, high = int(used[0]), int(used[-1]) + 1
    y = decades(LATENCY_EDGES[low] / 1e9, LATENCY_EDGES[high] / 1e9, milliseconds)
    return SvgChart(title=title, x=x, y=y, inside=_image(counts[:, low:high], low, high, y), tall=True)


def _counts(seconds: Sequence[LoadSecond], x: Axis) -> Counts:
    """Replies by column and bucket."""
    width = max(1.0, (x.high - x.low) / _COLUMNS)
    columns = max(1, math.ceil((x.high - x.low) / width))
    counts = np.zeros((columns, len(LATENCY_EDGES) - 1))
    for second in seconds:
        if second.density:
            at = int((second.second + 0.5 - x.low) / width)
            counts[min(columns - 1, max(0, at))] += np.asarray(second.density, dtype=np.float64)
    return counts


def _image(counts: Counts, low: int, high: int, y: Axis) -> str:
    """Return an `image` element at the position of its buckets on the axis."""
    strength = np.log1p(counts) / math.log1p(float(counts.max()))
    alpha = np.where(counts > 0, _FAINTEST + strength * (255 - _FAINTEST), 0).round().astype(np.uint8)
    # The first line of an image is its highest, which is the slowest bucket.
    encoded = base64.b64encode(png(alpha.T[::-1])).decode()
    top, bottom = (HEIGHT * (1 - y.at(LATENCY_EDGES[at] / 1e9)) for at in (high, low))
    return (
        f'<image class="heat" x="0" y="{top:.2f}" width="{WIDTH:g}" height="{bottom - top:.2f}" '
        f'preserveAspectRatio="none" href="data:image/png;base64,{encoded}"/>'
    )


def png(alpha: npt.NDArray[np.uint8]) -> bytes:
    """Return a PNG of one colour with the opacity `alpha` (lines x columns)."""
    lines, columns = alpha.shape
    palette = bytes(_COLOUR) * 256
    raw = b"".join(b"\0" + line.tobytes() for line in np.ascontiguousarray(alpha))
    head = struct.pack(">IIBBBBB", columns, lines, 8, 3, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"PLTE", palette), (b"tRNS", bytes(range(256))), (b"IDAT", zlib.compress(raw, 9)))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, content) for name, content in (*chunks, (b"IEND", b"")))


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
