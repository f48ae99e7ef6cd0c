"""`cockpit tune PROFILE rounds`: a change measured in rounds under load, and the verdict on it."""

from __future__ import annotations

import asyncio
import sys
from argparse import Namespace
from collections.abc import Mapping

import msgspec

from cockpit.analysis.intervals import FIRST_LOOK
from cockpit.analysis.outcome import Verdict
from cockpit.analysis.rounds import Order, RoundsPlan, rounds_verdict
from cockpit.analysis.rounds_words import announcement_words, ended_words, window_words
from cockpit.analysis.words import verdict_line
from cockpit.cli.live import Keeping, say_trouble
from cockpit.cli.signals import cancelled_by_signals
from cockpit.cli.terminal import tell
from cockpit.model.errors import EXIT_GOOD, EXIT_INTERRUPTED, UsageError
from cockpit.model.state import State
from cockpit.model.text import neutral
from cockpit.profiles.profile import Profile
from cockpit.recording.secrets import Secrets
from cockpit.report.encoding import to_json
from cockpit.report.verdicts import verdict_json, verdict_lines
from cockpit.session.controls import Afterwards, Proven, check_rounds
from cockpit.session.live_session import LiveSession
from cockpit.session.loop import EndOfSession, Session


def rounds(options: Namespace, profile: Profile) -> int:
    """Exit 0 with any verdict; 5: the change was refused or rolled back; 130: interrupted, old values active."""
    check_rounds(options.rounds, options.seconds)
    values = _values(options, profile)
    order = Order.MIRRORED if options.mirrored else Order.RANDOM
    plan = RoundsPlan(options.rounds, options.seconds, order, options.seed)
    with Secrets(profile).out_of_errors():
        return asyncio.run(_prove(options, profile, values, plan))


def _values(options: Namespace, profile: Profile) -> dict[str, str]:
    values: dict[str, str] = {}
    known = [knob.name for knob in profile.knobs]
    for text in options.names:
        name, sign, value = text.partition("=")
        if not sign:
            raise UsageError(f"tune rounds: {text!r}: write NAME=VALUE")
        if name not in known:
            raise UsageError(f"unknown knob {name!r}; the profile has: {', '.join(known) or 'none'}")
        values[name] = value
    return values


async def _prove(options: Namespace, profile: Profile, values: Mapping[str, str], plan: RoundsPlan) -> int:
    recorder = Keeping(options.record, by_itself=True).recorder(profile.name)
    live = LiveSession(profile, recorder, ssh_config=options.ssh_config)
    showing = asyncio.create_task(_show_progress(live.session))
    proven: Proven | None = None
    afterwards = Afterwards.CHOSEN if options.keep else Afterwards.RESTORED
    try:
        with cancelled_by_signals() as ignore_signals:
            async with live:
                try:
                    await live.hosts_read()
                    proven = await live.tuning.prove(values, plan, afterwards)
                except asyncio.CancelledError:
                    print("cockpit: interrupted; the old values are active again", file=sys.stderr)
                finally:
                    ignore_signals()
    finally:
        showing.cancel()
        await asyncio.gather(showing, return_exceptions=True)
    say_trouble(recorder)
    if proven is None:
        return EXIT_INTERRUPTED
    known = live.state.rounds[-1]
    found = rounds_verdict(live.state, known)
    if known.ended is not None:
        print(f"cockpit: {neutral(ended_words(known, known.ended, found), 400)}", file=sys.stderr)
    _print(options, found)
    return EXIT_GOOD


async def _show_progress(session: Session) -> None:
    """Print the announcement, each window as it begins, and the verdict as it grows, on stderr."""
    printed: list[str] = []

    def fresh(state: State) -> list[str]:
        if not state.rounds:
            return []
        rounds = state.rounds[-1]
        lines = [announcement_words(rounds.begun)]
        lines += [window_words(rounds, window) for window in rounds.windows]
        growing = rounds.ended is None and len(rounds.complete) >= FIRST_LOOK
        found = rounds_verdict(state, rounds) if growing else None
        if found is not None:
            lines.append(f"after {len(rounds.complete)} rounds: {verdict_line(found)}")
        return [line for line in lines if line not in printed]

    while True:
        try:
            state = await session.until(lambda state: bool(fresh(state)))
        except EndOfSession:
            return
        for line in fresh(state):
            printed.append(line)
            print(neutral(line), file=sys.stderr, flush=True)


def _print(options: Namespace, verdict: Verdict | None) -> None:
    if options.json:
        found = None if verdict is None else msgspec.to_builtins(verdict_json(verdict))
        tell(to_json(found))
    elif verdict is None:
        tell("inconclusive: no round is complete")
    else:
        tell("\n".join(line.removeprefix("  ") for line in verdict_lines([verdict]) if line))
