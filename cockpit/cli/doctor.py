"""`cockpit doctor`: whether a profile can be used as it stands, a line a finding, with what to do."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from collections.abc import Callable

import msgspec

from cockpit.cli.load_options import flagged, named_profile, thresholds_of
from cockpit.cli.terminal import tell
from cockpit.model.errors import EXIT_GOOD, CockpitError, NoProfile
from cockpit.model.text import escaped, neutral
from cockpit.profiles.catalogue import own_folder
from cockpit.profiles.plan import Wrong
from cockpit.profiles.profile import Profile
from cockpit.session.doctor import examine
from cockpit.session.finding import Finding, failed, summed

_WORDS = {"ok": "ok", "note": "note", "wrong": "WRONG"}
_LONGEST = 2000


def doctor(options: Namespace) -> int:
    """Exit 0: nothing stands in the way; 2: the profile or a host is to be put right; 3: something is out of reach."""
    show = _nothing if options.json else _show
    findings = asyncio.run(_findings(options, show))
    code = max((finding.exit_code for finding in findings), default=EXIT_GOOD)
    if options.json:
        found = {"profile": options.profile, "exit": code, "findings": msgspec.to_builtins(findings)}
        tell(escaped(msgspec.json.format(msgspec.json.encode(found), indent=2).decode()))
    else:
        tell(summed(findings))
    return code


async def _findings(options: Namespace, show: Callable[[Finding], None]) -> list[Finding]:
    found: list[Finding] = []
    try:
        profile = _profile(options.profile)
    except CockpitError as error:
        found.append(failed("profile", error, _way_out(error)))
        show(found[0])
        return found
    async for finding in examine(profile, options.ssh_config):
        found.append(finding)
        show(finding)
    return found


def _way_out(error: CockpitError) -> str:
    if isinstance(error, NoProfile):
        return f"a path, or a name: they are looked for in profiles/, in {own_folder()}, and among those that ship"
    return "cockpit schema profile tells an editor what may stand in it"


def _profile(name: str) -> Profile:
    try:
        profile = named_profile(name)
        thresholds_of(profile, [])
    except Wrong as error:
        raise flagged(error, {"target.url": "URL"}) from None
    return profile


def _show(finding: Finding) -> None:
    tell(f"{_WORDS[finding.level]:<5}  {finding.about:<14}  {neutral(finding.text, _LONGEST)}")
    if finding.todo:
        tell(f"{'':23}-> {neutral(finding.todo, _LONGEST)}")


def _nothing(_: Finding) -> None:
    """Told at the end."""
