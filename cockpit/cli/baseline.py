"""`cockpit baseline`: what later runs are held against, kept by name."""

from __future__ import annotations

import sys
from argparse import Namespace
from datetime import UTC, datetime

import msgspec

from cockpit.analysis.baseline import Baseline, baseline_of
from cockpit.analysis.thresholds import is_time
from cockpit.cli.opening import recording_at
from cockpit.cli.terminal import tell
from cockpit.model.errors import EXIT_GOOD, UsageError
from cockpit.model.figures import RunResult, latency_figure
from cockpit.model.text import escaped, milliseconds, neutral, si
from cockpit.report import baselines
from cockpit.report.check_result import baseline_json
from cockpit.report.sources import parse_source, run_of
from cockpit.report.summary import plan_words

_PERCENTILES = ("p50", "p90", "p99", "p99.9", "max")


def baseline(options: Namespace) -> int:
    """set NAME RECORDING[#RUN] · show NAME · list · delete NAME."""
    if options.action == "list":
        _list(options.json)
    elif options.name is None:
        raise UsageError(f"baseline {options.action}: name the baseline")
    elif options.action == "set":
        _set(options.name, options.recording)
    elif options.action == "show":
        _show(baselines.load(options.name), options.json)
    else:
        baselines.delete(options.name)
    return EXIT_GOOD


def keep(name: str, source: str, wall: float, result: RunResult) -> None:
    """Makes a baseline of the run and says where it is. Raises UsageError."""
    path = baselines.save(baseline_of(name, source, wall, result))
    print(f"cockpit: baseline {name}: {path}", file=sys.stderr)


def _set(name: str, recording: str | None) -> None:
    if recording is None:
        raise UsageError(f"baseline set {name}: name the recording it is made from: FILE, or FILE#2 for its second run")
    source = parse_source(recording)
    with recording_at(source.path) as opened:
        side = run_of(opened, source, recording)
        if not side.result.counts.completed:
            raise UsageError(f"{recording}: no reply in it to make a baseline of")
        keep(name, recording, side.state.started.wall if side.state.started else 0.0, side.result)


def _list(as_data: bool) -> None:
    found = [baselines.load(name) for name in baselines.names()]
    if as_data:
        tell(_json([baseline_json(one) for one in found]))
        return
    width = max((len(one.name) for one in found), default=0)
    lines = [
        f"{one.name:<{width}}  {_when(one)}  {si(one.figures['rate'])} req/s  {plan_words(one.plan)}" for one in found
    ]
    tell("\n".join(lines) or f"no baseline in {baselines.folder()}")


def _show(base: Baseline, as_data: bool) -> None:
    if as_data:
        tell(_json(baseline_json(base)))
        return
    lines = [f"{base.name}  {_when(base)}  from {neutral(base.source)}", f"  {plan_words(base.plan)}", ""]
    told = {name: _value(name, value) for name, value in base.figures.items()}
    for percentile in _PERCENTILES:
        value = latency_figure(base.histograms["response"], percentile)
        told[percentile] = _value(percentile, value) if value is not None else "no data"
    for host, figures in base.hosts.items():
        told |= {f"{host}.{name}": _value(name, value) for name, value in figures.items()}
    width = max(len(name) for name in told)
    tell("\n".join((*lines, *(f"  {neutral(name):<{width}}  {value}" for name, value in told.items()))))


def _value(name: str, value: float) -> str:
    if name == "duration":
        return f"{value:.3f} s"
    return f"{milliseconds(value)} ms" if is_time(name) else si(value, 5)


def _when(base: Baseline) -> str:
    return datetime.fromtimestamp(base.wall, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _json(value: object) -> str:
    return escaped(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
