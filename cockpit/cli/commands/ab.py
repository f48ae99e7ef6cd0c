"""`cockpit ab`: ab's flags and report, with cockpit's load generator."""

from __future__ import annotations

import asyncio
import sys
from argparse import Namespace

from msgspec.structs import replace

from cockpit.cli.live import RecordingTarget, SessionEnd, headless
from cockpit.cli.load_plan import FLAGS, errors_name_flags, given_headers
from cockpit.cli.terminal import emit
from cockpit.export.ab import FirstResponse, gnuplot_tsv, percentages_csv, report
from cockpit.load.preflight import preflight
from cockpit.metrics.results import RunResult, run_result
from cockpit.model.errors import EXIT_ALL_FAILED, EXIT_GOOD, EXIT_INTERRUPTED, TargetError, UsageError
from cockpit.model.load.checks import check_plan
from cockpit.model.load.plan import LoadPlan, Tls
from cockpit.model.tick import Tick
from cockpit.profiles.plan import NAMED, body_of, checked_url, headers_of
from cockpit.profiles.profile import Profile
from cockpit.report.words import failure_words, warning_texts

# ab's number of requests with -t and without -n.
TIMED_REQUESTS = 50_000
_FLAGS = FLAGS | {"load.auth": "-A", "load.body_file": "-p"}


def ab(options: Namespace) -> int:
    """Run the load; print ab's report on stdout and cockpit's warnings on stderr."""
    plan = _plan(options)
    document = asyncio.run(_first_response(plan))
    ticks: list[Tick] = []
    outcome = headless(
        Profile(name="ab", plan=plan),
        None,
        RecordingTarget(),
        limit=options.timelimit,
        quiet=options.quiet,
        listen=lambda events: ticks.extend(event for event in events if isinstance(event, Tick)),
    )
    result = run_result(outcome.state, outcome.state.runs)
    if result is None:
        return EXIT_INTERRUPTED
    emit(report(result, document))
    _write_files(options, outcome, result, ticks)
    if options.timelimit and not outcome.interrupted:
        # Ending at the time limit was requested.
        result = replace(result, reason="completed")
    _print_warnings(result, options)
    if outcome.interrupted:
        return EXIT_INTERRUPTED
    if words := failure_words(result):
        print(f"cockpit: {words}", file=sys.stderr)
    return EXIT_ALL_FAILED if words else EXIT_GOOD


def _plan(options: Namespace) -> LoadPlan:
    requests = options.requests or (TIMED_REQUESTS if options.timelimit else 1)
    with errors_name_flags(_FLAGS):
        body = body_of("load", None, str(options.post) if options.post else None, NAMED)
        headers = given_headers(options.header, options.content_type if options.post else None)
        if options.cookie:
            headers.append(("Cookie", "; ".join(options.cookie)))
        plan = LoadPlan(
            url=checked_url(options.url),
            method=options.method or ("POST" if options.post else "GET"),
            headers=headers_of("load", headers, options.auth),
            **body,
            concurrency=options.concurrency,
            requests=requests,
            keepalive=options.keepalive,
            timeout=options.timeout,
            # As in ab: each connection has a full handshake.
            tls=Tls(resumption=False),
        )
        check_plan(plan)
        return plan


async def _first_response(plan: LoadPlan) -> FirstResponse:
    """Return the Server header and the length of one response; ab uses those of its first response.

    Methods with side effects (POST) are not requested: "" and 0. Raises UsageError, TargetError.
    """
    await preflight(plan)
    if plan.method not in ("GET", "HEAD"):
        return FirstResponse(server="", length=0)
    import httpx

    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in plan.headers]
    try:
        async with httpx.AsyncClient(timeout=plan.timeout, trust_env=False) as client:
            response = await client.request(plan.method, plan.url, headers=headers, content=plan.content)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise TargetError(f"{plan.without_secrets().url}: {error or type(error).__name__}") from None
    return FirstResponse(server=response.headers.get("server", ""), length=len(response.content))


def _write_files(options: Namespace, outcome: SessionEnd, result: RunResult, ticks: list[Tick]) -> None:
    started = outcome.state.started
    try:
        if options.csv:
            options.csv.write_text(percentages_csv(result.counts.service))
        if options.gnuplot:
            with options.gnuplot.open("w") as file:
                file.writelines(gnuplot_tsv(ticks, started.wall if started else 0.0))
    except OSError as error:
        raise UsageError(f"{error.filename}: cannot be written: {error.strerror}") from None


def _print_warnings(result: RunResult, options: Namespace) -> None:
    if result.counts.length_mismatches and not options.any_length:
        words = f"{result.counts.length_mismatches} responses differ in length from the first; ab counts them as failed"
        print(f"cockpit: {words}", file=sys.stderr)
    for warning in warning_texts(result):
        print(f"cockpit: {warning}", file=sys.stderr)
