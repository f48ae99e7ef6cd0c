"""`cockpit compare`: compare two recordings, runs or time ranges."""

from __future__ import annotations

from argparse import Namespace

from cockpit.analysis.comparison import compare as compare_sides
from cockpit.cli.open_recording import recording_at
from cockpit.cli.terminal import emit_text
from cockpit.model.errors import EXIT_GOOD, UsageError
from cockpit.report.comparison import comparison_json, comparison_text
from cockpit.session.selectors import parse_source, side_of


def compare(options: Namespace) -> int:
    """Compare and print. Exit 0 with any verdict; 2 if the loads differ without --force."""
    before, after = parse_source(options.before), parse_source(options.after)
    with recording_at(before.path) as first, recording_at(after.path) as second:
        comparison = compare_sides(side_of(first, before, options.before), side_of(second, after, options.after))
    if comparison.load and not options.force:
        unlike = ", ".join(comparison.load)
        raise UsageError(f"{options.before}, {options.after}: different load ({unlike}); compare with --force")
    emit_text(lambda paint: comparison_json(comparison) if options.json else comparison_text(comparison, paint))
    return EXIT_GOOD
