"""Looks at a host for servers and their settings: one program that reads, then the files of what may be offered."""

from __future__ import annotations

import shlex
from typing import NamedTuple

from cockpit.model.errors import ChangeRefused
from cockpit.model.knobs import Knob
from cockpit.tuning import files, plan
from cockpit.tuning.files import HostFile
from cockpit.tuning.remote import Remote
from cockpit.tuning.scripts import HEAD
from cockpit.tuning.servers import (
    DEMO,
    FILES,
    PROCESSES,
    Candidate,
    Seen,
    Server,
    able_to_answer,
    parse_seen,
    servers_in,
    serving,
    system_candidates,
)
from cockpit.tuning.tuner import Tuner

# Prints facts, a line each, their parts by tabs. It reads /proc, asks ss, and tests whether files can be read.
_LOOK = (
    HEAD
    + """
printf 'user\\t%s\\n' "$(id -un)"
for at in /proc/[0-9]*/comm; do
    read -r name <"$at" || continue
    case $name in NAMES) ;; *) continue ;; esac
    at=${at%/comm}
    read -r line <"$at/stat" || continue
    set -f; set -- ${line##*) }; set +f
    printf 'process\\t%s\\t%s\\t%s\\t' "${at#/proc/}" "$2" "$name"
    tr '\\0\\n\\t' '\\t  ' <"$at/cmdline"
    echo
done 2>/dev/null
ss -ltnpH 2>/dev/null | while read -r _ _ _ local _ users; do printf 'listen\\t%s\\t%s\\n' "$local" "$users"; done
for file in FILES; do [ ! -r "$file" ] || printf 'file\\t%s\\n' "$file"; done
"""
)


class Offered(NamedTuple):
    """A knob that can be read there: its value (None: it is not set), and whether it is one to begin with."""

    knob: Knob
    value: str | None
    usual: bool


class DiscoveredHost(NamedTuple):
    """What was found on a host. `serving` is the server that answers on the port asked about, where that is known;
    `able` are those that may be it; `nobody` says that none can, and who listens there in their place."""

    user: str
    servers: tuple[Server, ...]
    serving: Server | None
    able: tuple[Server, ...]
    offered: tuple[Offered, ...]
    nobody: str = ""


async def discover(remote: Remote, host: str, port: int, answers: bool = False) -> DiscoveredHost:
    """Everything that is worth offering on a host. `answers`: the target is this very host, so that only what may
    listen on its port is begun with. Raises HostError, ChangeRefused where nothing can be run there."""
    names = "|".join((*PROCESSES, f"{DEMO}*", "squid-*", r"\(squid*"))
    script = _LOOK.replace("NAMES", names).replace("FILES", shlex.join(FILES))
    done = await files.run(remote, script)
    if done.exit_status != 0 and not done.stdout:
        raise ChangeRefused(f"{host}: {files.why(done)}")
    seen = parse_seen(done.stdout.decode("utf-8", "replace"))
    servers = servers_in(seen, host)
    able = able_to_answer(seen, servers, port) if answers else servers
    chosen = serving(able, port)
    offered: list[Offered] = []
    known: dict[str, HostFile | None] = {}
    # The one that answers comes first: of two knobs of one name it is that one's which is offered.
    for server in sorted(servers, key=lambda server: server is not chosen):
        begin_with = server is chosen or (chosen is None and server in able)
        for candidate in server.candidates:
            offered += await _offered(remote, candidate, known, begin_with)
    for candidate in system_candidates(host):
        offered += await _offered(remote, candidate, known, False)
    first = {one.knob.name: one for one in reversed(offered)}
    kept = tuple(one for one in offered if first[one.knob.name] is one)
    nobody = "" if able or not servers else _nobody(seen, port)
    return DiscoveredHost(seen.user, tuple(servers), chosen, tuple(able), kept, nobody)


def _nobody(seen: Seen, port: int) -> str:
    others = sorted({one.name for one in seen.listening if one.port == port})
    who = f" ({', '.join(others)} does)" if others else ""
    return f"nothing that is known here listens on port {port}{who}"


async def _offered(
    remote: Remote, candidate: Candidate, known: dict[str, HostFile | None], begin_with: bool
) -> list[Offered]:
    """The knob with its value; nothing where its value cannot be read."""
    knob = candidate.knob
    try:
        if not knob.in_file:
            return [Offered(knob, await Tuner().read(remote, knob), candidate.usual and begin_with)]
        if knob.file not in known:
            known[knob.file] = None
            known[knob.file] = await files.read(remote, knob.host, knob.file)
        file = known[knob.file]
        if file is None:
            return []
        return [Offered(knob, plan.value_in(file, knob).value, candidate.usual and begin_with)]
    except ChangeRefused:
        return []
