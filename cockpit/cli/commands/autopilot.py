"""`cockpit autopilot`: search for better settings under load, and prove them."""

from __future__ import annotations

import asyncio
import secrets
import sys
from argparse import Namespace
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from cockpit.analysis.capacity.levels import parse_limits
from cockpit.analysis.thresholds import parse_threshold
from cockpit.analysis.windows import GUARD
from cockpit.autopilot.decisions import RunSearch, SearchDecisions
from cockpit.autopilot.diagnosis import Bottleneck, find_bottlenecks, suggested_knobs
from cockpit.autopilot.knobs import UnknownRange, searched_knob
from cockpit.autopilot.runner import SEARCH, SHORTEST_SEARCH, Autopilot, SearchResult
from cockpit.autopilot.words import diagnosis_lines, plan_lines, result_line, trial_line, values_words
from cockpit.cli.appearance_options import appearance_of
from cockpit.cli.launcher import launcher_of
from cockpit.cli.live import RecordingTarget, close_recording, no_progress, run_headless
from cockpit.cli.profile_argument import at_address, named_profile
from cockpit.cli.progress import print_lines
from cockpit.cli.terminal import can_ask, emit, is_confirmed, on_terminal
from cockpit.cli.trust_prompt import require_trust
from cockpit.hosts.ssh.prompts import PromptQueue
from cockpit.metrics.results import run_result
from cockpit.model.autopilot import SearchedKnob, SearchPlan
from cockpit.model.errors import EXIT_GOOD, EXIT_INTERRUPTED, ChangeRefused, ProfileError, TargetError, UsageError
from cockpit.model.knobs import COSTS, Knob
from cockpit.model.state import State
from cockpit.model.text import sanitize
from cockpit.profiles.profile import Profile
from cockpit.recording.secrets import Secrets
from cockpit.report.encoding import to_json
from cockpit.report.search_json import search_json
from cockpit.session.capacity import searchable
from cockpit.session.controls import Mode
from cockpit.session.live_session import LiveSession

# Metrics that rounds can prove, and whether larger is better.
METRICS = {"rate": True, "capacity": True, "p50": False, "p99": False}
# Load per evaluation (s) if --seconds is not given, at least.
_SECONDS = 20.0


def autopilot(options: Namespace) -> int:
    """Run a search. Exit 0: it has ended, with any result; 130: interrupted, the original values are active."""
    profile = named_profile(options.profile)
    knobs = _knobs(profile, options)
    for text in options.where:
        parse_threshold(text)
    if options.maximize == "capacity":
        _check_capacity(profile, options)
    options.seconds = options.seconds or (SEARCH if options.maximize == "capacity" else _SECONDS)
    if profile.plan.stages or not profile.plan.extendable:
        raise UsageError(
            f"{profile.name}: a search needs a constant load; remove load levels, ramps and paths used only once"
        )
    if profile.plan.variants:
        raise UsageError(f"{profile.name}: a search needs one target; remove the [[variant]] blocks")
    if options.ask and not (_has_screen(options) or can_ask()):
        raise UsageError("--ask: nobody can be asked here; use a terminal, or leave out --ask")
    require_trust(profile, options.profile, accepted=options.trust)
    profile = at_address(profile, options.ssh_config)
    with Secrets(profile).redact_errors():
        return asyncio.run((_diagnose if options.diagnose else _search)(options, profile, knobs))


def _has_screen(options: Namespace) -> bool:
    return not options.no_tui and not options.json and on_terminal()


def _check_capacity(profile: Profile, options: Namespace) -> None:
    """Raise UsageError, ChangeRefused for limits or a load that do not suit a capacity search."""
    if not options.where:
        raise UsageError("--maximize capacity: needs a limit, e.g. --where 'p99 < 50ms'")
    if options.seconds is not None and options.seconds < SHORTEST_SEARCH:
        raise UsageError(f"--seconds: a capacity search needs at least {SHORTEST_SEARCH:g}s")
    parse_limits(", ".join(options.where))
    searchable(profile.plan)


def _knobs(profile: Profile, options: Namespace) -> dict[str, str]:
    """Return the requested values by knob ("": those of the profile). Raises UsageError, ProfileError."""
    known = {knob.name: knob for knob in profile.knobs}
    requested = dict(_split(text) for text in options.knob) or dict.fromkeys(known, "")
    if not requested:
        raise ProfileError(
            f"{profile.name}: no knobs to search; write a profile with knobs: cockpit new URL --host HOST"
        )
    for name in requested:
        if name not in known:
            raise UsageError(f"unknown knob {name!r}; the profile has: {', '.join(known)}")
    chosen = [known[name] for name in requested]
    if options.no_restart:
        chosen = [knob for knob in chosen if knob.effective_cost not in ("restart", "remount")]
    chosen = [knob for knob in chosen if not knob.written_only]
    if not chosen:
        raise UsageError("no knobs to search: each needs a restart, or is written without becoming active")
    hosts = {knob.host for knob in chosen}
    if len(hosts) > 1:
        raise UsageError(f"knobs of several hosts ({', '.join(sorted(hosts))}); choose those of one host with --knob")
    return {knob.name: requested[knob.name] for knob in chosen}


def _split(text: str) -> tuple[str, str]:
    name, _, values = text.partition("=")
    return name, values


def _searchable(
    options: Namespace, profile: Profile, requested: Mapping[str, str], original: Mapping[str, str]
) -> tuple[dict[str, SearchedKnob], list[str]]:
    """Return the knobs with the values to try, and a line per knob that cannot be searched.

    Raises UsageError if no knob can be searched, or if a knob of --knob cannot.
    """
    known: dict[str, Knob] = {knob.name: knob for knob in profile.knobs}
    searched: dict[str, SearchedKnob] = {}
    problems: list[UsageError] = []
    for name, values in requested.items():
        try:
            searched[name] = searched_knob(known[name], values, original[name])
        except UsageError as error:
            problems.append(error)
    unknown = [problem for problem in problems if isinstance(problem, UnknownRange)]
    if len(unknown) > 1:
        names, flags = (", ".join(each.knob for each in unknown), " ".join(each.flag for each in unknown))
        problems = [each for each in problems if each not in unknown]
        problems.append(UsageError(f"{names}: no known ranges; give some, e.g. {flags}"))
    if problems and (options.knob or not searched):
        raise problems[0]
    return searched, [f"left out: {problem}" for problem in problems]


def _plan(options: Namespace, profile: Profile, knobs: Iterable[SearchedKnob]) -> SearchPlan:
    metric = options.maximize or options.minimize or ("p99" if profile.plan.open else "rate")
    return SearchPlan(
        metric=metric,
        maximize=METRICS[metric] if not (options.maximize or options.minimize) else bool(options.maximize),
        knobs=tuple(knobs),
        constraints=tuple(options.where),
        budget=options.budget,
        seconds=options.seconds,
        seed=secrets.randbelow(1_000_000) if options.seed is None else options.seed,
    )


async def _diagnose(options: Namespace, profile: Profile, knobs: Mapping[str, str]) -> int:
    async with launcher_of(profile, options.ssh_config) as launcher:
        live = LiveSession(profile, ssh_config=options.ssh_config, launcher=launcher)
        bottlenecks = await run_headless(live, lambda: _find_bottlenecks(live, options.seconds, knobs), no_progress())
    if bottlenecks is None:
        return EXIT_INTERRUPTED
    if options.json:
        emit(to_json(bottlenecks))
        return EXIT_GOOD
    emit("\n".join(diagnosis_lines(bottlenecks)))
    if names := suggested_knobs(bottlenecks):
        emit(
            f"search them: cockpit autopilot {options.profile} {' '.join(f'--knob {sanitize(name)}' for name in names)}"
        )
    return EXIT_GOOD


async def _find_bottlenecks(live: LiveSession, seconds: float, knobs: Container[str]) -> list[Bottleneck]:
    profile = live.source.profile
    live.source.load.plan = replace(profile.plan, requests=None, duration=seconds, warmup=float(GUARD))
    during: list[State] = []

    def keep_ends(state: State) -> bool:
        """Keep the first and the newest state of the counted time; never stop the run."""
        if state.running is not None and state.segment is not None and not state.segment.warmup:
            during[1:] = [state]
        return False

    state = await live.run_once(stop_when=keep_ends)
    result = run_result(state, state.runs)
    if result is None:
        raise TargetError("the run did not start", subject=profile.plan.url)
    return find_bottlenecks(result, during, [knob for knob in profile.knobs if knob.name in knobs])


async def _search(options: Namespace, profile: Profile, requested: Mapping[str, str]) -> int:
    async with launcher_of(profile, options.ssh_config) as launcher:
        recorder = RecordingTarget(options.record, in_library=True).recorder(profile.name)
        screen = _has_screen(options)
        questions = PromptQueue() if screen else None
        live = LiveSession(profile, recorder, ssh_config=options.ssh_config, launcher=launcher, questions=questions)

        async def search(person: SearchDecisions) -> SearchResult:
            await live.hosts_read()
            read = await live.source.tuning.read(list(requested))
            original = {name: value or "" for name, value in read.items()}
            knobs, excluded = _searchable(options, profile, requested, original)
            if not options.knob:
                # The diagnosis would be in vain if the budget is too short for any knob.
                least = min(knobs.values(), key=lambda knob: COSTS.index(knob.cost))
                cheapest = {least.knob: original[least.knob]}
                Autopilot(live, _plan(options, profile, [least]), cheapest, spent=options.seconds).check_budget()
            begun = live.source.now()
            # Knobs that the user names need no diagnosis.
            bottlenecks = [] if options.knob else await _find_bottlenecks(live, options.seconds, knobs)
            spent = 0.0 if options.knob else live.source.now() - begun
            chosen = await person.choose(bottlenecks, list(knobs), excluded) if bottlenecks else knobs
            approve = person.approve if options.ask else None

            def search_of(names: Sequence[str], notes: Iterable[str]) -> Autopilot:
                plan = _plan(options, profile, (knobs[name] for name in names))
                return Autopilot(live, plan, {name: original[name] for name in names}, approve, notes, spent)

            pilot = within_budget(search_of, list(chosen), bottlenecks)
            person.search_started(pilot)
            return await pilot.run(person.keep)

        try:
            if screen:
                result = await _on_screen(live, search, options)
            else:
                person = _AtTerminal(options.apply)
                result = await run_headless(live, lambda: search(person), print_lines(live.session, _search_lines))
        finally:
            close_recording(recorder, live.state)
    if result is None:
        print("cockpit: interrupted; the original values are active again", file=sys.stderr)
        return EXIT_INTERRUPTED
    _print(options, live, result)
    return EXIT_GOOD


def within_budget(
    search_of: Callable[[Sequence[str], Iterable[str]], Autopilot],
    chosen: Sequence[str],
    bottlenecks: Sequence[Bottleneck],
) -> Autopilot:
    """Return the search of the chosen knobs; after a diagnosis, of those within the budget, suggested ones first."""
    suggested = suggested_knobs(bottlenecks)
    names = sorted(chosen, key=lambda name: name not in suggested)
    notes = list(diagnosis_lines(bottlenecks))
    pilot = search_of(chosen, notes)
    while bottlenecks and len(names) > 1 and pilot.least_budget > pilot.plan.budget:
        names.pop()
        left = ", ".join(sanitize(name) for name in chosen if name not in names)
        pilot = search_of(names, [*notes, f"left out, as the budget is too short: {left}"])
    return pilot


async def _on_screen(live: LiveSession, search: RunSearch, options: Namespace) -> SearchResult | None:
    from cockpit.tui.autopilot.screen import AutopilotApp

    live.source.controls.mode = Mode.SEARCH
    app = AutopilotApp(live.session, search, appearance_of(options), apply=options.apply)
    await app.run_async()
    return app.found


class _AtTerminal(NamedTuple):
    """Decisions without the screen: all knobs are searched, and proved values stay active if `apply`."""

    apply: bool

    async def choose(
        self, bottlenecks: Sequence[Bottleneck], knobs: Sequence[str], excluded: Sequence[str]
    ) -> Sequence[str]:
        print(*(f"cockpit: {line}" for line in excluded), sep="\n", end="\n" * bool(excluded), file=sys.stderr)
        return knobs

    def search_started(self, pilot: Autopilot) -> None:
        """Do nothing: only the screen can pause a search."""

    async def approve(self, values: Mapping[str, str]) -> bool:
        return await is_confirmed(f"try {values_words(values)}?")

    async def keep(self, result: SearchResult) -> bool:
        return self.apply


def _print(options: Namespace, live: LiveSession, result: SearchResult) -> None:
    state = live.state.autopilot
    if state is None:
        raise ChangeRefused("the search did not start")
    if not options.json:
        emit(result_line(replace(state, ended=result.ended), result.verdict))
        return
    emit(to_json(search_json(state, result.ended, result.verdict)))


def _search_lines(state: State) -> list[str]:
    search = state.autopilot
    return [*plan_lines(search.begun), *(trial_line(trial, search) for trial in search.trials)] if search else []
