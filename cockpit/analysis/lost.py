"""Hosts that were lost during a window: their figures tell nothing of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from cockpit.analysis.compare import NOT, Effect
from cockpit.analysis.doubt import BOUND
from cockpit.analysis.windows import Window
from cockpit.model.text import neutral


def lost_hosts(pairs: Sequence[tuple[Window, Window]]) -> dict[str, str]:
    """Hosts that were not read for more than a tenth of a window, and in which words."""
    found: dict[str, str] = {}
    for pair in pairs:
        for window, side in zip(pair, ("before", "after"), strict=True):
            for name in window.hosts:
                seconds = window.doubtful.get(f"lost:{name}", 0)
                if seconds > BOUND * len(window.seconds):
                    found.setdefault(name, f"{neutral(name)} was lost for {seconds} s {side}")
    return found


def without_lost(found: Sequence[Effect], lost: Mapping[str, str], open_load: bool) -> tuple[Effect, ...]:
    """Figures of a lost host are not comparable, and say so where else nothing would stand."""
    of_host = {one.name: one.name.partition(".")[0] for one in found}
    kept = [
        msgspec.structs.replace(one, word=NOT, reason=lost[of_host[one.name]]) if of_host[one.name] in lost else one
        for one in found
    ]
    figure = "cpu.busy" if open_load else "cpu.per_reply"
    silent = [host for host in lost if host not in of_host.values()]
    return (*kept, *(Effect(name=f"{host}.{figure}", word=NOT, reason=lost[host]) for host in silent))
