"""Prompts for changes that were interrupted: undo, finish or leave."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Iterable, Sequence

from cockpit.model.knobs import Knob
from cockpit.model.text import neutral
from cockpit.tuning.remote import Remote
from cockpit.tuning.tuner import Tuner
from cockpit.tuning.unfinished import described, finish, unfinished


async def settle(tuner: Tuner, to: Callable[[str], Remote], hosts: Iterable[str], knobs: Sequence[Knob]) -> None:
    """Undo, finish or leave each interrupted change of the hosts, as the user answers. Without a
    terminal only print it. Raises CockpitError."""
    for host in hosts:
        for past in await unfinished(tuner, to(host), host):
            text = neutral(described(host, past))
            if not sys.stdin.isatty():
                print(f"{text}; `cockpit tune PROFILE undo {past.name}` rolls it back", file=sys.stderr)
                continue
            print(f"{text}.\nundo, finish, or Enter to leave it: ", end="", file=sys.stderr, flush=True)
            answer = await typed_line()
            if answer in ("u", "undo"):
                await tuner.give_up(to(host), host, past)
                print(f"{host}: {past.name} is rolled back", file=sys.stderr)
            elif answer in ("f", "finish"):
                await finish(tuner, to(host), host, past, knobs)
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
