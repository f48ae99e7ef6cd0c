"""Default margins of verdicts; the help texts show them. Pure."""

from __future__ import annotations

# Equivalence margins: shares; of errors, points.
MARGINS = {"p99": 0.1, "errors": 0.001, "memory.used": 0.05, "processes.spawned_per_s": 0.2}
MARGIN = 0.03
# Unit of the share of failed requests, in which its equivalence margin is that of a ratio.
ERRORS_UNIT = MARGINS["errors"] / MARGIN
# The largest tolerated loss of `cockpit check --against`.
TOLERATED_LOSS = 0.05
