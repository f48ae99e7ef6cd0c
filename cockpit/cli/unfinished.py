"""Prompts for changes that were interrupted: undo, finish or leave."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Iterable

from cockpit.model.text import neutral
from cockpit.session.live_tuning import LiveTuning
from cockpit.tuning.unfinished import described


async def settle(tuning: LiveTuning, hosts: Iterable[str]) -> None:
    """For each interrupted change of the hosts: undo it, finish it, or leave it, as the user answers. Without a
    terminal it is only named. Raises CockpitError."""
    for host in hosts:
        await tuning.find_unfinished(host)
    for host, past in tuple(tuning.unfinished):
        text = neutral(described(host, past))
        if not sys.stdin.isatty():
            print(f"{text}; `cockpit tune PROFILE undo {past.name}` rolls it back", file=sys.stderr)
            continue
        print(f"{text}.\nundo, finish, or Enter to leave it: ", end="", file=sys.stderr, flush=True)
        answer = await typed_line()
        if answer in ("u", "undo"):
            await tuning.undo_unfinished(host, past)
            print(f"{host}: {past.name} is rolled back", file=sys.stderr)
        elif answer in ("f", "finish"):
            await tuning.finish_unfinished(host, past)
            print(f"{host}: {past.name} is finished", file=sys.stderr)


async def typed_line() -> str:
    """Return the next line of stdin in lower case. A daemon thread reads it, so that exit need not wait."""
    loop = asyncio.get_running_loop()
    typed: asyncio.Future[str] = loop.create_future()

    def read() -> None:
        line = os.read(sys.stdin.fileno(), 4096).decode("utf-8", "replace")
        loop.call_soon_threadsafe(lambda: None if typed.done() else typed.set_result(line))

    threading.Thread(target=read, daemon=True).start()
    return (await typed).strip().lower()
