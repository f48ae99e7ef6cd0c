"""`cockpit baseline`: manage named results that later runs are compared with."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from datetime import UTC, datetime
from statistics import stdev

from cockpit.analysis.baseline import Baseline, BaselineRun, baseline_of, baseline_run
from cockpit.analysis.plans import differences
from cockpit.analysis.words.thresholds import metric_text
from cockpit.cli.file_changes import ChangedFile, emit_changes
from cockpit.cli.open_recording import recording_at
from cockpit.cli.terminal import emit
from cockpit.metrics.catalogue import PERCENTILES
from cockpit.metrics.results import RunResult
from cockpit.model.errors import EXIT_GOOD, UsageError
from cockpit.model.load.plan import LoadPlan
from cockpit.model.text import count_text, sanitize, si
from cockpit.recording import baselines
from cockpit.report.check import baseline_json
from cockpit.report.encoding import to_json
from cockpit.report.words import plan_words
from cockpit.session.selectors import parse_source, runs_of


def baseline(options: Namespace) -> int:
    """Run a subcommand. Raises UsageError."""
    if options.action == "list":
        _list(options.json)
    elif options.action in ("set", "add"):
        runs, plan = _runs_in(options.recording, options.runs)
        (save_runs if options.action == "set" else add_runs)(options.name, runs, plan)
        if options.json:
            _show(baselines.load(options.name), as_data=True)
    elif options.action == "show":
        _show(baselines.load(options.name), options.json)
    else:
        path, size = baselines.delete(options.name)
        if options.json:
            emit_changes([ChangedFile(action="deleted", name=options.name, path=str(path), size=size)], as_json=True)
    return EXIT_GOOD


def save_runs(name: str, runs: Sequence[BaselineRun], plan: LoadPlan) -> None:
    """Save the runs as a baseline and print its path. Raises UsageError."""
    path = baselines.save(baseline_of(name, runs, plan))
    print(f"cockpit: baseline {name}: {count_text(len(runs), 'run')}: {path}", file=sys.stderr)


def add_runs(name: str, runs: Sequence[BaselineRun], plan: LoadPlan) -> None:
    """Add the runs to a baseline of the same load, or create it. Raises UsageError."""
    known = same_load(name, plan)
    save_runs(name, (*(known.runs if known else ()), *runs), known.plan if known else plan)


def same_load(name: str, plan: LoadPlan) -> Baseline | None:
    """Return the baseline, None if there is none. Raises UsageError for an invalid name, or if its load differs."""
    baselines.path_of(name)
    if name not in baselines.names():
        return None
    known = baselines.load(name)
    if unlike := differences(known.plan, plan):
        raise UsageError(f"baseline {name}: different load ({', '.join(unlike)}); choose another name")
    return known


def baseline_runs(source: str, wall: float, results: Sequence[RunResult]) -> list[BaselineRun]:
    """Return the runs as runs of a baseline. Raises UsageError for a run imported from a summary."""
    totals = next((result.totals for result in results if result.totals is not None), None)
    if totals is not None:
        raise UsageError(f"{source}: imported totals of {sanitize(totals.tool)}; a baseline needs data per second")
    return [baseline_run(source, wall, result) for result in results]


def _runs_in(recordings: Sequence[str], last: int) -> tuple[list[BaselineRun], LoadPlan]:
    """Return the last runs of each recording, or its named run, and their load. Raises UsageError."""
    runs: list[BaselineRun] = []
    plan: LoadPlan | None = None
    for text in recordings:
        source = parse_source(text)
        with recording_at(source.path) as opened:
            for side in runs_of(opened, source, text, last):
                if not side.result.counts.completed:
                    raise UsageError(f"{text}: the run has no response; choose another run for the baseline")
                if plan is not None and (unlike := differences(plan, side.result.plan)):
                    raise UsageError(f"{text}: different load than the others ({', '.join(unlike)}); leave it out")
                plan = plan or side.result.plan
                wall = side.state.started.wall if side.state.started else 0.0
                runs += baseline_runs(text, wall, [side.result])
    assert plan is not None
    return runs, plan


def _list(as_data: bool) -> None:
    known_baselines = _readable()
    if as_data:
        emit(to_json([baseline_json(each) for each in known_baselines]))
        return
    width = max((len(base.name) for base in known_baselines), default=0)
    lines = [
        f"{base.name:<{width}}  {_time_text(base.runs[-1])}  {count_text(len(base.runs), 'run')}  "
        f"{si(base.metric('rate') or 0)} req/s  {plan_words(base.plan)}"
        for base in known_baselines
    ]
    emit("\n".join(lines) or f"no baselines in {baselines.folder()}; make one: cockpit baseline set NAME RECORDING")


def _readable() -> list[Baseline]:
    """Return the saved baselines; print the problem of each one that cannot be read."""
    readable = []
    for name in baselines.names():
        try:
            readable.append(baselines.load(name))
        except UsageError as error:
            print(f"cockpit: {sanitize(str(error), 300)}", file=sys.stderr)
    return readable


def _show(base: Baseline, as_data: bool) -> None:
    if as_data:
        emit(to_json(baseline_json(base)))
        return
    lines = [f"{base.name}  {count_text(len(base.runs), 'run')}", f"  {plan_words(base.plan)}"]
    lines += [f"  {_time_text(run)}  from {sanitize(run.source)}" for run in base.runs]
    names = dict.fromkeys((*base.runs[0].metrics, *PERCENTILES))
    names |= dict.fromkeys(f"{host}.{name}" for host, metrics in base.runs[0].hosts.items() for name in metrics)
    width = max(len(name) for name in names)
    emit("\n".join((*lines, "", *(f"  {sanitize(name):<{width}}  {_values(base, name)}" for name in names))))


def _values(base: Baseline, name: str) -> str:
    """Return the mean of a metric, and its coefficient of variation."""
    mean = base.metric(name)
    if mean is None:
        return "no data"
    values = base.values(name)
    if len(values) == 1 or mean == 0:
        return metric_text(name, mean)
    return f"{metric_text(name, mean)}  ± {100 * stdev(values) / abs(mean):.1f}%"


def _time_text(run: BaselineRun) -> str:
    return datetime.fromtimestamp(run.wall, UTC).strftime("%Y-%m-%d %H:%M UTC")
