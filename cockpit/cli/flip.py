"""`cockpit tune PROFILE abab`: a change made and taken back again and again under load, and the verdict on it."""

from __future__ import annotations

import asyncio
import sys
from argparse import Namespace
from collections.abc import Mapping

import msgspec

from cockpit.analysis.arms import repeated_verdict
from cockpit.analysis.outcome import Verdict
from cockpit.cli.live import Keeping, say_trouble
from cockpit.cli.signals import cancelled_by_signals
from cockpit.cli.terminal import tell
from cockpit.model.clock import Clock
from cockpit.model.errors import EXIT_GOOD, EXIT_INTERRUPTED, UsageError
from cockpit.model.text import escaped, neutral
from cockpit.profiles.profile import Profile
from cockpit.report.verdicts import verdict_json, verdict_lines
from cockpit.session.controls import SHORTEST, Flipped
from cockpit.session.headless import hosts_ready
from cockpit.session.live import LiveSource
from cockpit.session.loop import Recorder, Session
from cockpit.session.secrets import Secrets

# Seconds between two looks at how far it has come.
_LOOK = 0.5


def flip(options: Namespace, profile: Profile) -> int:
    """Exit 0 with a verdict, whatever it says; 5: the change was refused or undone; 130: interrupted, all put back."""
    for name in ("dry_run", "confirm_within", "no_probe"):
        if getattr(options, name):
            raise UsageError(f"tune abab: --{name.replace('_', '-')} has no meaning here")
    if options.seconds < SHORTEST:
        raise UsageError(f"--seconds {options.seconds:g}: a window below {SHORTEST:.0f} s tells nothing")
    if options.pairs < 2:
        raise UsageError("--pairs: it takes 2 or more to tell a change from drift")
    values = _values(options, profile)
    with Secrets(profile).out_of_errors():
        return asyncio.run(_flip(options, profile, values))


def _values(options: Namespace, profile: Profile) -> dict[str, str]:
    values: dict[str, str] = {}
    known = [knob.name for knob in profile.knobs]
    for text in options.names:
        name, sign, value = text.partition("=")
        if not sign:
            raise UsageError(f"tune abab: {text!r}: write NAME=VALUE")
        if name not in known:
            raise UsageError(f"unknown knob {name!r}; the profile has: {', '.join(known) or 'none'}")
        values[name] = value
    return values


async def _flip(options: Namespace, profile: Profile, values: Mapping[str, str]) -> int:
    recorder: Recorder | None = Keeping(options.record).recorder(profile.name)
    source = LiveSource(profile, Clock(), ssh_config=options.ssh_config)
    session = Session(source, recorder)
    taking = asyncio.create_task(session.run())
    telling = asyncio.create_task(_tell_progress(source))
    flipped: Flipped | None = None
    with cancelled_by_signals() as ignore_signals:
        try:
            await hosts_ready(session, source)
            flipped = await source.tuning.flip(values, options.pairs, options.seconds)
        except asyncio.CancelledError:
            print("cockpit: interrupted; rolling back to the previous values", file=sys.stderr)
        finally:
            ignore_signals()
            telling.cancel()
            await asyncio.gather(telling, return_exceptions=True)
            await source.close()
            await taking
    say_trouble(recorder)
    if flipped is None:
        return EXIT_INTERRUPTED
    if flipped.why:
        print(f"cockpit: {flipped.why} after {flipped.pairs} of {options.pairs} pairs", file=sys.stderr)
    _tell(options, repeated_verdict(session.state, flipped.run))
    return EXIT_GOOD


async def _tell_progress(source: LiveSource) -> None:
    """Each window as it begins."""
    said = ""
    while True:
        words = source.tuning.flipping
        window = words.rpartition(",")[0]
        if words and window != said:
            said = window
            print(neutral(words), file=sys.stderr, flush=True)
        await asyncio.sleep(_LOOK)


def _tell(options: Namespace, verdict: Verdict | None) -> None:
    if options.json:
        found = None if verdict is None else msgspec.to_builtins(verdict_json(verdict))
        tell(escaped(msgspec.json.format(msgspec.json.encode(found), indent=2).decode()))
    elif verdict is None:
        tell("inconclusive: too few rounds")
    else:
        tell("\n".join(line.removeprefix("  ") for line in verdict_lines([verdict]) if line))
