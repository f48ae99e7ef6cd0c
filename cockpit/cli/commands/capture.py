"""`cockpit capture`: write a profile that replays a time range of access logs."""

from __future__ import annotations

import asyncio
import shlex
import sys
import tempfile
from argparse import Namespace
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from cockpit.cli.commands.watch import hosts_of, traffic_logs
from cockpit.cli.file_changes import ChangedFile, emit_changes
from cockpit.cli.profile_argument import named_profile, print_replay
from cockpit.cli.trust_prompt import require_trust
from cockpit.files import atomic_write
from cockpit.hosts.transport import open_shell
from cockpit.model.errors import EXIT_GOOD, UsageError, naming
from cockpit.model.host.samples import HostConfig
from cockpit.model.load.plan import AccessLog, url_without_password
from cockpit.model.text import sanitize
from cockpit.profiles.reader import read_profile
from cockpit.profiles.writing import toml_string, write_profile
from cockpit.traffic.capture import CapturedLog, CapturedRange, fetch, last_seconds


def capture(options: Namespace) -> int:
    """Write the log and the profile beside each other, and print the profile's path. Raises UsageError, HostError."""
    given = (options.last is not None, options.begin is not None, options.end is not None)
    if given not in ((True, False, False), (False, True, True)):
        raise UsageError("choose a time: --last 10m, or --from TIME and --to TIME")
    profile = named_profile(options.target)
    require_trust(profile, options.target, accepted=options.trust)
    hosts = hosts_of(profile, options)
    logs = traffic_logs(hosts, profile.plan.url, options)
    path: Path = options.output
    log = path.with_suffix(".log")
    if not options.force and (existing := next((each for each in (path, log) if each.exists()), None)):
        raise UsageError(f"{existing}: exists already; replace it with --force, or choose another file with -o")
    with naming(path.parent, "be created"):
        path.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        parts = [stack.enter_context(tempfile.TemporaryFile()) for _ in logs]
        within = asyncio.run(_fetch(logs, {host.name: host for host in hosts}, options, parts))
        with naming(log, "be written"), atomic_write(log, 0o600) as file:
            for each, part in zip(logs, parts, strict=True):
                part.seek(0)
                captured = CapturedLog(part, within)
                file.writelines(captured.lines(cut_queries=options.cut_queries))
                for note in captured.notes:
                    print(f"cockpit: {sanitize(f'{each.host}: {each.file}')}: {note}", file=sys.stderr)
            if not file.tell():
                raise UsageError(f"{', '.join(each.file for each in logs)}: no request in this time")
    url, name = toml_string(url_without_password(profile.plan.url)), toml_string(log.name)
    text = f"[target]\nurl = {url}\n\n[load]\nreplay_log = {name}\n"
    write_profile(path, text, replace=options.force)
    print_replay(read_profile(path).plan)
    beside = [ChangedFile.wrote(log)] if options.json else []
    emit_changes([ChangedFile.wrote(path), *beside], as_json=options.json)
    named = shlex.quote(str(path) if len(path.parts) > 1 else f"./{path}")
    print(f"replay it on a test server: cockpit run {named}, after you have changed its URL", file=sys.stderr)
    return EXIT_GOOD


async def _fetch(
    logs: Sequence[AccessLog], hosts: dict[str, HostConfig], options: Namespace, parts: Sequence[IO[bytes]]
) -> CapturedRange:
    """Write the lines of each log; of several, the last minutes are those of the first one. Raises HostError."""
    within = None if options.last is not None else CapturedRange(options.begin, options.end)
    for log, into in zip(logs, parts, strict=True):
        shell = await open_shell(hosts[log.host], options.ssh_config)
        try:
            within = within or await last_seconds(shell, log.file, options.last)
            await fetch(shell, log.file, within, into)
        finally:
            await shell.close()
    assert within is not None
    return within
