"""`cockpit history`: the checks of a profile over months, and when their metrics changed."""

from __future__ import annotations

from argparse import Namespace

from cockpit.cli.terminal import emit_text, put, write_utf8
from cockpit.document.html import to_html
from cockpit.document.markdown import to_markdown
from cockpit.document.model import Document
from cockpit.document.text import to_text
from cockpit.model.errors import EXIT_GOOD, UsageError
from cockpit.model.load.plan import LoadPlan
from cockpit.profiles.plan import checked_url, is_address
from cockpit.recording.check_history import past_checks
from cockpit.report.encoding import to_json
from cockpit.report.history import history_document, history_json, history_of

# Seed of the permutation tests if none is given.
_SEED = 1
_WRITERS = {".html": to_html, ".md": to_markdown, ".txt": to_text}


def document_of(target: str) -> Document:
    """Return the history of a checked profile or URL. Raises UsageError."""
    return history_document(history_of(target, past_checks(target), _SEED))


def history(options: Namespace) -> int:
    """Print the history, or write it to a file. Raises UsageError."""
    url = is_address(options.target)
    target = LoadPlan(url=checked_url(options.target)).without_secrets().url if url else options.target
    checked = history_of(target, past_checks(target), options.seed)
    if options.output is None:
        emit_text(
            lambda paint: to_json(history_json(checked)) if options.json else to_text(history_document(checked), paint)
        )
        return EXIT_GOOD
    writer = _WRITERS.get(options.output.suffix.lower())
    if writer is None:
        raise UsageError(f"{options.output}: history has no such format; end the name in {', '.join(_WRITERS)}")
    write_utf8()
    put((writer(history_document(checked)),), options.output)
    return EXIT_GOOD
