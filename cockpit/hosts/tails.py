"""Tails: the lines of any command on a host, for as long as the host is up.

A command runs under a small shell that ends it, with all its children, as soon as the channel is closed or the
connection gone. It writes a line to its standard error now and then, so that sshd notices where nobody is there any
more, even though the command itself has nothing to say.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable
from typing import Literal

from cockpit.hosts.command_output import CommandOutput, OutputBudget, OutputLines
from cockpit.hosts.fault import fault
from cockpit.hosts.feed import HostFeed
from cockpit.hosts.shell import Channel, Shell
from cockpit.model.clock import Clock
from cockpit.model.errors import HostError
from cockpit.model.events import AnyEvent, TailChanged, TailText

# Seconds between two texts of a tail, at least.
PACE = 0.25
# Bytes taken in at a time; what a command prints beyond that waits in the pipe, and the command with it.
MOST_BYTES = 256 * 1024
# What is kept of it: at once, and a second.
LINES, LINES_PER_SECOND = 200, 50
CHARS, CHARS_PER_SECOND = 32 * 1024, 8 * 1024
# Seconds before a command that has ended is started again: at first, at most. One that ran for longer than the most
# begins at the first again.
FIRST_RETRY, LAST_RETRY = 1.0, 30.0
# Seconds between two signs of life of a tail, and that a command may take to end when it is told to.
ALIVE, GRACE = 30, 1

# POSIX sh. The command is in a process group that this shell leads, or that setsid makes where it leads none (sshd and
# the local shell make it a leader, dropbear does not): all of it is ended by one kill.
SCRIPT = r"""
LC_ALL=C S_COLORS=never S_TIME_FORMAT=ISO TERM=dumb; export LC_ALL S_COLORS S_TIME_FORMAT TERM
unset GREP_OPTIONS
PATH=$PATH:/usr/sbin:/sbin:/usr/bin:/bin
main() {
  exec 3<&0 4>&2 </dev/null 2>&1
  read -r pid comm state parent group rest </proc/$$/stat
  setsid=
  [ "$group" = $$ ] || setsid=setsid
  $setsid sh -c '(while sleep @ALIVE@; do echo >&4; done) >/dev/null 2>&1 3<&- &
    exec sh -c "$1" 3<&- 4>&-' sh @COMMAND@ &
  it=$!
  [ "$setsid" ] && group=$it
  trap '' TERM
  (
    while read -r line; do :; done <&3
    kill -TERM "-$group"
    sleep @GRACE@
    kill -KILL "-$group"
  ) >/dev/null 2>&1 4>&- &
  watch=$!
  wait $it
  printf '\n#cockpit exit %s\n' $? >&4
  kill -KILL $watch "-$group" 2>/dev/null
  exit 0
}
main
"""


def script(command: str) -> str:
    """The program. The command is user text: it stands in it quoted, and is what the user wants run."""
    filled = SCRIPT.replace("@ALIVE@", str(ALIVE)).replace("@GRACE@", str(GRACE))
    return filled.replace("@COMMAND@", shlex.quote(command))


class HostTail:
    """One tail of a host; its events go to `emit`, on the cockpit's clock."""

    def __init__(self, feed: HostFeed, place: int, clock: Clock, emit: Callable[[AnyEvent], None]) -> None:
        self._feed = feed
        self._place = place
        self._command = feed.config.tail[place]
        self._clock = clock
        self._emit = emit
        self._lines = OutputBudget(LINES, LINES_PER_SECOND)
        self._chars = OutputBudget(CHARS, CHARS_PER_SECOND)
        self._last_words = ""

    async def run(self) -> None:
        """Shows what the command prints until cancelled; then the command is gone."""
        retry = FIRST_RETRY
        while True:
            shell = await self._feed.up()
            begun = self._clock.now()
            detail = await self._follow(shell)
            self._say("ended", detail)
            retry = FIRST_RETRY if self._clock.now() - begun > LAST_RETRY else retry
            await asyncio.sleep(retry)
            retry = min(2 * retry, LAST_RETRY)

    async def _follow(self, shell: Shell) -> str:
        """Run the command to its end. Returns why it ended; an error of cockpit's own ends it too."""
        channel: Channel | None = None
        try:
            channel = await shell.open(script(self._command))
            self._say("running")
            await self._show(channel)
            return self._ending(channel.stderr)
        except HostError as error:
            return error.problem
        except Exception as error:
            return fault(error)
        finally:
            if channel:
                channel.close()

    async def _show(self, channel: Channel) -> None:
        """Reads at its pace: the pipe, and the command behind it, wait meanwhile."""
        paper = OutputLines()
        self._last_words = ""
        while data := await channel.read(MOST_BYTES):
            now = self._clock.now()
            self._tell(now, paper.take(data, self._lines.at(now), self._chars.at(now)))
            await asyncio.sleep(PACE)
        self._tell(self._clock.now(), paper.rest())

    def _tell(self, now: float, printed: CommandOutput) -> None:
        if not printed.lines and not printed.skipped:
            return
        self._lines.spend(len(printed.lines))
        self._chars.spend(sum(len(line) + 1 for line in printed.lines))
        self._last_words = next((line for line in reversed(printed.lines) if line.strip()), self._last_words)
        self._emit(
            TailText(
                t=now,
                host=self._feed.config.name,
                tail=self._place,
                lines=printed.lines,
                skipped=printed.skipped,
                continues=printed.continues,
            )
        )

    def _ending(self, said: bytes) -> str:
        """Exit status, and the last line where that says why."""
        status = ""
        for line in said.splitlines():
            if line.startswith(b"#cockpit exit "):
                status = line.split()[-1].decode("ascii", "replace")
        if not status:
            return "the connection or its shell ended"
        words = self._last_words.strip()[:200]
        return f"exit status {status}{': ' + words if words and status != '0' else ''}"

    def _say(self, condition: Literal["running", "ended"], detail: str = "") -> None:
        host = self._feed.config.name
        self._emit(TailChanged(t=self._clock.now(), host=host, tail=self._place, condition=condition, detail=detail))
