"""`cockpit report`: what a recording came to, as text, Markdown, JSON or a page of HTML."""

from __future__ import annotations

from argparse import Namespace

import msgspec

from cockpit.analysis.arms import verdicts
from cockpit.cli.opening import recording_at
from cockpit.cli.outputs import put
from cockpit.model.errors import EXIT_GOOD, UsageError
from cockpit.model.figures import run_result
from cockpit.model.state import State
from cockpit.model.text import escaped
from cockpit.report.machine import run_json
from cockpit.report.sources import last_state
from cockpit.report.summary import summary

_ENDINGS = {".html": "html", ".htm": "html", ".md": "md", ".json": "json", ".txt": "text"}


def report(options: Namespace) -> int:
    """Every run in it, whatever the format."""
    if options.json and options.format not in (None, "json"):
        raise UsageError(f"--json and --format {options.format}: one of the two")
    ending = options.output.suffix.lower() if options.output else ""
    form = options.format or ("json" if options.json else _ENDINGS.get(ending, "text"))
    with recording_at(options.file) as recording:
        put((_made(last_state(recording), form), "\n"), options.output)
    return EXIT_GOOD


def _made(state: State, form: str) -> str:
    """Without its last line end."""
    if form == "html":
        from cockpit.report.page import page

        return page(state).rstrip("\n")
    if form == "md":
        from cockpit.report.markdown import markdown

        return markdown(state).rstrip("\n")
    results = [found for found in (run_result(state, run) for run in range(1, state.runs + 1)) if found]
    judged = verdicts(state)
    if form == "json":
        encoded = msgspec.json.encode([run_json(result, verdicts=judged) for result in results])
        return escaped(msgspec.json.format(encoded, indent=2).decode())
    return "\n\n".join(summary(result, judged) for result in results) or "no run in this recording"
