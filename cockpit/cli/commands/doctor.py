"""`cockpit doctor`: check that a profile can be used; one line per finding, with its fix."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

import msgspec

from cockpit.cli.launcher import check_generator
from cockpit.cli.profile_argument import at_address, named_profile
from cockpit.cli.terminal import emit
from cockpit.cli.trust_prompt import NotTrusted, doctor_command, require_trust
from cockpit.model.errors import EXIT_GOOD, CockpitError, NotInstalled, UnknownProfile
from cockpit.model.host.samples import GeneratorConfig
from cockpit.model.text import sanitize
from cockpit.profiles.catalogue import own_folder
from cockpit.profiles.profile import Profile
from cockpit.profiles.trust import is_trusted
from cockpit.profiles.uses import Use, listing, owners, uses_of
from cockpit.report.encoding import to_json
from cockpit.setup.doctor import Scope, diagnose
from cockpit.setup.finding import Finding, failed, note, passed, summary_line

_WORDS = {"ok": "ok", "note": "note", "error": "ERROR"}
_MAX_TEXT = 2000


class DoctorJson(msgspec.Struct, kw_only=True):
    """The findings about a profile, and with --no-exec its commands, hosts and files."""

    profile: str
    exit: int
    findings: list[Finding]
    uses: list[dict[str, str]]


def doctor(options: Namespace) -> int:
    """Print findings. Exit 0: no problem; 2: the profile or a host has to be fixed; 3: target or host unreachable."""
    findings, uses = asyncio.run(_findings(options, (lambda finding: None) if options.json else _show))
    code = max((finding.exit_code for finding in findings), default=EXIT_GOOD)
    if options.json:
        rows = [use._asdict() for use in uses]
        emit(to_json(DoctorJson(profile=options.profile, exit=code, findings=findings, uses=rows)))
    else:
        emit(summary_line(findings))
    return code


async def _findings(options: Namespace, show: Callable[[Finding], None]) -> tuple[list[Finding], tuple[Use, ...]]:
    """Print the findings; with --no-exec list the commands, hosts and files of the profile."""
    findings: list[Finding] = []
    try:
        profile = at_address(named_profile(options.profile), options.ssh_config)
        if options.trust or not options.no_exec:
            require_trust(profile, options.profile, accepted=options.trust)
    except NotTrusted:
        raise
    except CockpitError as error:
        findings.append(failed("profile", error, _fix(error)))
        show(findings[0])
        return findings, ()
    uses = uses_of(profile) if options.no_exec else ()
    if uses and not options.json:
        emit("\n".join((*listing(uses), *owners(profile))))
    if not is_trusted(profile):
        fix = f"read the list, then accept it: {doctor_command(options.profile, '--trust')}"
        findings.append(note("profile", "not trusted yet; no host was contacted", fix))
        show(findings[0])
    scope = _scope(options, profile)
    async for finding in diagnose(profile, options.ssh_config, scope):
        findings.append(finding)
        show(finding)
    for generator in profile.generators if scope is Scope.ALL else ():
        findings.append(await _of_generator(generator, options.ssh_config))
        show(findings[-1])
    return findings, uses


async def _of_generator(config: GeneratorConfig, ssh_config: Path | None) -> Finding:
    try:
        await check_generator(config, ssh_config)
    except NotInstalled as error:
        return failed(config.name, error, "cockpit run offers to install it")
    except CockpitError as error:
        return failed(config.name, error)
    return passed(config.name, "its load program starts, in the versions of this machine")


def _scope(options: Namespace, profile: Profile) -> Scope:
    if not options.no_exec:
        return Scope.ALL
    return Scope.NO_COMMANDS if is_trusted(profile) else Scope.NO_HOSTS


def _fix(error: CockpitError) -> str:
    if isinstance(error, UnknownProfile):
        return f"use a path such as ./x.toml, or the name of a shipped profile or of one in {own_folder()}"
    return "cockpit schema profile > profile.schema.json: with it an editor checks every key"


def _show(finding: Finding) -> None:
    emit(f"{_WORDS[finding.level]:<5}  {finding.subject:<14}  {sanitize(finding.text, _MAX_TEXT)}")
    if finding.fix:
        emit(f"{'':23}-> {sanitize(finding.fix, _MAX_TEXT)}")
