"""`cockpit report`: report a recording or a study's folder as text, Markdown, JSON, CSV or HTML."""

from __future__ import annotations

from argparse import Namespace
from functools import partial
from pathlib import Path

from cockpit.analysis.verdicts.segments import verdicts
from cockpit.cli.open_recording import recording_at
from cockpit.cli.study_folder import result_in
from cockpit.cli.terminal import emit_text, put, write_utf8
from cockpit.document.model import Part
from cockpit.document.text import Paint, plain
from cockpit.metrics.results import all_results
from cockpit.model.errors import EXIT_GOOD, UsageError
from cockpit.model.load.checks import conflict
from cockpit.model.state import State
from cockpit.recording.check_history import checked_targets
from cockpit.recording.reader import last_state
from cockpit.report.encoding import to_json
from cockpit.report.run import run_text
from cockpit.report.run_json import run_json
from cockpit.study.journal import FILE
from cockpit.study.results import StudyResult

_ENDINGS = {".html": "html", ".htm": "html", ".md": "md", ".json": "json", ".csv": "csv", ".txt": "text"}
_OF_STUDIES = ("csv", "verdicts-csv")


def report(options: Namespace) -> int:
    if options.json and options.format not in (None, "json"):
        raise UsageError(conflict(f"--format {options.format}"), "--json")
    ending = options.output.suffix.lower() if options.output else ""
    form = options.format or ("json" if options.json else _ENDINGS.get(ending or ".txt"))
    if form is None:
        raise UsageError(f"{options.output}: report has no format {ending}; end the name in {', '.join(_ENDINGS)}")
    if form != "text":
        write_utf8()
    if options.history and (form not in ("html", "md") or options.file.is_dir()):
        raise UsageError("--history: only for a recording as html or md; leave it out")
    if options.file.is_dir():
        make = partial(_study, options.file, form)
    else:
        make = partial(_recording, options.file, form, with_history=options.history)
    if form == "text" and options.output is None:
        emit_text(lambda paint: make(paint).removesuffix("\n"))
    else:
        put((make(plain),), options.output)
    return EXIT_GOOD


def _recording(path: Path, form: str, paint: Paint, *, with_history: bool) -> str:
    if form in _OF_STUDIES:
        raise UsageError(f"{path}: {form} is for a study's folder; use: cockpit export {path} --format csv")
    with recording_at(path) as recording:
        state = last_state(recording)
        return _page(state, form, with_history) if form in ("html", "md") else _formatted(state, form, paint)


def _study(folder: Path, form: str, paint: Paint) -> str:
    result = result_in(folder)
    if result is None:
        inside = sorted(path.parent.name for path in folder.glob(f"*/{FILE}"))
        if inside:
            raise UsageError(
                f"{folder}: contains the studies {', '.join(inside)}; use: cockpit report {folder / inside[0]}"
            )
        raise UsageError(f"{folder}: contains no study with runs; choose a recording, or the folder of a study")
    return study_as(result, form, paint)


def study_as(result: StudyResult, form: str, paint: Paint = plain) -> str:
    """Return a study's result in one of the command's formats, with a line end."""
    if form in _OF_STUDIES:
        from cockpit.export.study_csv import runs_csv, verdicts_csv

        return runs_csv(result) if form == "csv" else verdicts_csv(result)
    if form == "json":
        from cockpit.report.study_json import study_json

        return study_json(result) + "\n"
    from cockpit.report.study import study_markdown, study_page, study_text

    if form == "text":
        return study_text(result, paint) + "\n"
    return study_page(result) if form == "html" else study_markdown(result)


def _page(state: State, form: str, with_history: bool) -> str:
    """Return the report of a session as HTML or Markdown, if wanted with the checks of its profile or URL."""
    from cockpit.report.session import session_markdown, session_page

    more = (_history(state),) if with_history else ()
    return session_page(state, *more) if form == "html" else session_markdown(state, *more)


def _history(state: State) -> Part:
    """Return the history of the checks of a session's profile, else of its URL. Raises UsageError."""
    from cockpit.cli.commands.history import document_of

    named = (state.started.name, state.started.target) if state.started else ()
    known = [checked.target for checked in checked_targets()]
    # A profile that is not found by its name has its path there.
    targets = [target for name in named for target in known if target == name or Path(target).name == f"{name}.toml"]
    if not targets:
        raise UsageError(f"--history: no check of {' or '.join(filter(None, named))} yet; leave it out")
    history = document_of(targets[0])
    return Part(f"History: {history.title}", [*history.lead, *history.sections])


def _formatted(state: State, form: str, paint: Paint) -> str:
    results = all_results(state)
    judged = verdicts(state)
    if form == "json":
        return to_json([run_json(result, verdicts=judged, state=state) for result in results]) + "\n"
    return (
        "\n\n".join(run_text(result, judged, state, paint) for result in results) or "no run in this recording"
    ) + "\n"
