"""`cockpit new`: write a profile for a URL and hosts, with the servers and settings found on the hosts."""

from __future__ import annotations

import asyncio
import shlex
import sys
from argparse import Namespace

from cockpit.cli.file_changes import ChangedFile, emit_changes
from cockpit.cli.load_plan import errors_name_flags
from cockpit.model.errors import EXIT_GOOD, UnreachableError, UsageError
from cockpit.model.text import sanitize
from cockpit.profiles.plan import checked_url
from cockpit.profiles.trust import accept_written
from cockpit.profiles.writing import profile_text, write_profile
from cockpit.setup.profile_draft import HostSurvey, draft_of, hosts_named, place_for, survey


def new(options: Namespace) -> int:
    """Write the profile and print its path; findings are on stderr.

    Raises UnreachableError if a host cannot be inspected, and UsageError if the file exists; nothing is written then.
    """
    with errors_name_flags():
        url = checked_url(options.url)
    surveyed = asyncio.run(_survey(url, options))
    missing = [f"{host.config.name}: {sanitize(host.problem, 400)}" for host in surveyed if host.discovered is None]
    if missing:
        raise UnreachableError("; ".join([*missing, "no profile was written"]))
    for host in surveyed:
        print(f"{host.config.name}: {sanitize(host.words, 400)}", file=sys.stderr)
    if not surveyed:
        print("no servers and settings without a host: add --host user@host, or . for this machine", file=sys.stderr)
    text = profile_text(draft_of(url, surveyed, concurrency=options.concurrency, duration=f"{options.duration:g}s"))
    path = options.output or place_for(url, surveyed)
    try:
        write_profile(path, text, replace=options.force)
    except UsageError as error:
        hint = "; replace it with --force, or choose another file with -o" if path.exists() else ""
        raise UsageError(f"{error}{hint}") from None
    accept_written(text)
    emit_changes([ChangedFile.wrote(path)], as_json=options.json)
    named = shlex.quote(str(path) if len(path.parts) > 1 else f"./{path}")
    print(f"open it: cockpit run {named}   check it first: cockpit doctor {named}", file=sys.stderr)
    return EXIT_GOOD


async def _survey(url: str, options: Namespace) -> list[HostSurvey]:
    hosts = hosts_named(options.host)
    return list(await asyncio.gather(*(survey(config, url, options.ssh_config) for config in hosts)))
