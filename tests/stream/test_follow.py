"""Streams beside a session: each gets the newest state, and ends in order."""

from __future__ import annotations

import asyncio

from cockpit.model.clock import Clock
from cockpit.model.load import LoadPlan
from cockpit.model.state import State
from cockpit.profiles.profile import Profile
from cockpit.session.live import LiveSource
from cockpit.session.loop import Session
from cockpit.stream.follow import streaming


class Slow:
    """A stream whose tool takes a while to accept."""

    trouble = ""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.accepted = 0
        self.closed = False

    async def send_new(self, state: State) -> None:
        self.begun.set()
        await asyncio.sleep(0.05)
        self.accepted += 1

    async def close(self, state: State) -> None:
        self.closed = True


async def test_what_is_being_sent_at_the_end_of_a_session_is_not_cut() -> None:
    source, slow = LiveSource(Profile(name="x", plan=LoadPlan(url="http://127.0.0.1:1/")), Clock()), Slow()
    async with streaming(Session(source), [slow]):
        await slow.begun.wait()
    assert slow.accepted == 1 and slow.closed
