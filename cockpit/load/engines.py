"""Which engine carries out a plan."""

from __future__ import annotations

from collections.abc import Callable

from cockpit.load.closed import Closed
from cockpit.load.engine import Engine
from cockpit.load.open import Open
from cockpit.load.poller import Poller
from cockpit.load.protocol import Assignment


def engine_for(
    assignment: Assignment,
    poller: Poller,
    on_tick: Callable[[], None],
    on_cut: Callable[[], None] | None = None,
) -> Engine:
    """The engine for a share of an open or a closed plan; the arguments are the engine's own."""
    rule = Open if assignment.plan.open else Closed
    return rule(assignment, poller, on_tick, on_cut)
