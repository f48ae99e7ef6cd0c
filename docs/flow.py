"""The diagram of the flow from events to verdicts, as SVG in the colours of the text around it, light or dark."""

from __future__ import annotations

from html import escape

# Box: column, row, title, line below it.
BOXES = {
    "load": (0, 0.0, "load generator", "ticks"),
    "hosts": (0, 1.0, "hosts over SSH", "samples"),
    "tuner": (0, 2.0, "settings", "changes"),
    "logs": (0, 3.0, "access logs", "traffic"),
    "recording": (1, 3.0, "recording", "replayed"),
    "live": (1, 1.0, "live session", "events on one clock"),
    "state": (2, 1.5, "state", "rates, percentiles"),
    "recorder": (2, 0.0, "recorder", "every event, first"),
    "screen": (3, 0.0, "screen", "the same live and replayed"),
    "verdict": (3, 1.0, "verdict", "effect, interval, n"),
    "check": (3, 2.0, "check, study, autopilot", "exit codes, rounds"),
    "report": (3, 3.0, "report, export", "HTML, JSON, CSV, …"),
}
ARROWS = (
    *(("load", "live"), ("hosts", "live"), ("tuner", "live"), ("logs", "live"), ("live", "recorder")),
    *(("live", "state"), ("recording", "state"), ("state", "screen"), ("state", "verdict")),
    *(("state", "check"), ("state", "report")),
)
_WIDTH, _HEIGHT, _RIGHT, _DOWN = 184, 48, 240, 72


def drawing() -> str:
    """Return the diagram as one line of SVG."""
    parts = [
        f'<svg class="flow" viewBox="0 0 {3 * _RIGHT + _WIDTH + 2} {3 * _DOWN + _HEIGHT + 2}" role="img" '
        'aria-label="Load, hosts, settings and logs send events; a session folds them to the state of all views">',
        '<defs><marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" '
        'orient="auto"><path d="M0 0 8 4 0 8z" stroke="none"/></marker></defs>',
    ]
    for start, end in ARROWS:
        (x, y), (right, below) = _corner(start), _corner(end)
        x, y, below = x + _WIDTH, y + _HEIGHT / 2, below + _HEIGHT / 2
        middle = (x + right) / 2
        parts.append(
            f'<path d="M{x:g} {y:g}C{middle:g} {y:g} {middle:g} {below:g} {right:g} {below:g}" '
            'fill="none" marker-end="url(#head)"/>'
        )
    for name, (_, _, title, line) in BOXES.items():
        x, y = _corner(name)
        parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{_WIDTH}" height="{_HEIGHT}" rx="6"/>'
            f'<text x="{x + _WIDTH / 2:g}" y="{y + 20:g}">{escape(title)}</text>'
            f'<text class="line" x="{x + _WIDTH / 2:g}" y="{y + 37:g}">{escape(line)}</text>'
        )
    return "".join((*parts, "</svg>"))


def _corner(name: str) -> tuple[float, float]:
    column, row, _, _ = BOXES[name]
    return 1 + column * _RIGHT, 1 + row * _DOWN
