"""`cockpit compare`: two recordings, runs or stretches of time beside each other."""

from __future__ import annotations

from argparse import Namespace

from cockpit.analysis.comparison import compare as put_beside
from cockpit.cli.terminal import tell
from cockpit.model.errors import EXIT_GOOD, UsageError
from cockpit.report.sources import open_side


def compare(options: Namespace) -> int:
    """Exit 0 whatever the verdict is; 2 where the two loads differ and nobody said that this is meant."""
    found = put_beside(open_side(options.before), open_side(options.after))
    if found.load and not options.anyway:
        unlike = ", ".join(found.load)
        raise UsageError(
            f"{options.before} and {options.after}: different load: {unlike}; --anyway compares them still"
        )
    if options.json:
        from cockpit.report.comparison_json import comparison_json

        tell(comparison_json(found))
    else:
        from cockpit.report.comparison_text import comparison_text

        tell(comparison_text(found))
    return EXIT_GOOD
