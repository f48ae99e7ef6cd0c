"""Tails: the output lines of a command on a host while the host is up.

A command runs under a small shell, which ends the command and all its children if the channel or the connection is
closed, or if the client sends nothing for a minute (see `watchdog`). The shell writes a line to standard error every
ALIVE seconds, so that sshd notices a lost client even if the command prints nothing.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Literal

from cockpit.hosts import watchdog
from cockpit.hosts.access_counter import INTERVAL, AccessCounter
from cockpit.hosts.command_output import CommandOutput, OutputBudget, OutputLines
from cockpit.hosts.feed import HostFeed
from cockpit.hosts.internal_error import internal_error
from cockpit.hosts.shell import Channel, Shell
from cockpit.model.clock import Clock
from cockpit.model.errors import HostError
from cockpit.model.events import AnyEvent, TailChanged, TailText

# Minimum seconds between two texts of a tail.
PACE = 0.25
# Maximum bytes per read; further output waits in the pipe and blocks the command.
MOST_BYTES = 256 * 1024
# Limits of the output that is shown: burst, and per second.
LINES, LINES_PER_SECOND = 200, 50
CHARS, CHARS_PER_SECOND = 32 * 1024, 8 * 1024
# Maximum lines per text of an access log, whose requests are counted instead.
ACCESS_LINES = 2
# After a read of this many bytes of an access log, the next read follows at once.
BUSY_BYTES = 8 * 1024
# Delays (s) before an ended command is restarted: first, maximum. A command that ran longer than the maximum starts
# with the first delay again.
FIRST_RETRY, LAST_RETRY = 1.0, 30.0
# Seconds between two keepalives of a tail, and between SIGTERM and SIGKILL.
ALIVE, GRACE = 30, 1

# POSIX sh. The command runs in this shell's process group, or in one made by setsid if this shell leads no group (under
# dropbear), so that one kill ends the command and its children.
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
  command=$!
  [ "$setsid" ] && group=$command
  (
    trap '' TERM
    while read -r line; do :; done <&3
    kill -TERM "-$group"
    sleep @GRACE@
    kill -KILL "-$group"
  ) >/dev/null 2>&1 4>&- &
  reader=$!
  idle $reader @NAPS@ &
  watchdog=$!
  # Only now, because a watchdog that starts with SIGTERM ignored could not be ended by it.
  trap '' TERM
  wait $command
  printf '\n#cockpit exit %s\n' $? >&4
  end_idle $watchdog
  kill -KILL $reader "-$group" 2>/dev/null
  exit 0
}
main
"""


def script(command: str) -> str:
    """Return the program for a command. The command is user text, so it is quoted."""
    naps = " ".join(watchdog.naps(watchdog.IDLE))
    filled = SCRIPT.replace("@ALIVE@", str(ALIVE)).replace("@GRACE@", str(GRACE)).replace("@NAPS@", naps)
    return watchdog.watchdog() + filled.replace("@COMMAND@", shlex.quote(command))


class HostTail:
    """One tail of a host; its events go to `emit`, in session time."""

    def __init__(self, feed: HostFeed, place: int, clock: Clock, emit: Callable[[AnyEvent], None]) -> None:
        self._feed = feed
        self._place = place
        self._command = feed.config.tail[place]
        self._clock = clock
        self._emit = emit
        self._lines = OutputBudget(LINES, LINES_PER_SECOND)
        self._chars = OutputBudget(CHARS, CHARS_PER_SECOND)
        self._last_line = ""
        self._last_beat = 0.0

    async def run(self) -> None:
        """Emit the output of the command until cancelled, then end the command."""
        retry = FIRST_RETRY
        while True:
            shell = await self._feed.up()
            started = self._clock.now()
            detail = await self._follow(shell)
            self._report("ended", detail)
            retry = FIRST_RETRY if self._clock.now() - started > LAST_RETRY else retry
            await asyncio.sleep(retry)
            retry = min(2 * retry, LAST_RETRY)

    async def _follow(self, shell: Shell) -> str:
        """Run the command to its end; return the reason of its end, which may be an internal error."""
        channel: Channel | None = None
        try:
            channel = await shell.open(script(self._command))
            self._report("running")
            await self._read(channel)
            return self._exit_words(channel.stderr)
        except HostError as error:
            return error.problem
        except Exception as error:
            return internal_error(error)
        finally:
            if channel:
                channel.close()

    async def _read(self, channel: Channel) -> None:
        output = OutputLines()
        self._last_line = ""
        counter = AccessCounter(self._feed.config.name, self._place, self._clock.now())
        shown = -PACE
        self._last_beat = self._clock.now()
        while data := await self._printed(channel, counter):
            now = self._clock.now()
            counter.feed(data)
            if not counter.is_access_log:
                self._emit_text(now, output.feed(data, self._lines.at(now), self._chars.at(now)))
            elif now - shown >= PACE:
                # Lines that are left out are not skipped: their requests are counted.
                text = output.feed(data, min(ACCESS_LINES, self._lines.at(now)), self._chars.at(now))
                self._emit_text(now, text._replace(skipped=0))
                shown = now
            else:
                output.feed(data, 0, 0)
            # A busy log is read without a pause, or its counts would lag more and more.
            busy = counter.is_access_log and len(data) >= BUSY_BYTES
            pause = 0 if busy else PACE
            counter.waited += pause
            await asyncio.sleep(pause)
        self._emit_text(self._clock.now(), output.rest())

    async def _printed(self, channel: Channel, counter: AccessCounter) -> bytes:
        """Wait for output and return it; b"" at the end. Emit the counts of an access log while waiting."""
        while True:
            counts = counter.counts(self._clock.now(), LINES_PER_SECOND)
            if counts:
                self._emit(counts)
            since = self._clock.now()
            if since - self._last_beat >= watchdog.BEAT:
                self._last_beat = since
                # If the command has ended, the end of its output has the reason.
                with suppress(HostError):
                    await channel.write(b"\n")
            try:
                async with asyncio.timeout(INTERVAL):
                    return await channel.read(MOST_BYTES)
            except TimeoutError:
                continue
            finally:
                counter.waited += self._clock.now() - since

    def _emit_text(self, now: float, printed: CommandOutput) -> None:
        if not printed.lines and not printed.skipped:
            return
        self._lines.spend(len(printed.lines))
        self._chars.spend(sum(len(line) + 1 for line in printed.lines))
        self._last_line = next((line for line in reversed(printed.lines) if line.strip()), self._last_line)
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

    def _exit_words(self, stderr: bytes) -> str:
        """Return the exit status, with the last line of output if the command failed."""
        status = ""
        for line in stderr.splitlines():
            if line.startswith(b"#cockpit exit "):
                status = line.split()[-1].decode("ascii", "replace")
        if not status:
            return "the connection or the shell ended"
        last = self._last_line.strip()[:200]
        return f"exit status {status}{': ' + last if last and status != '0' else ''}"

    def _report(self, condition: Literal["running", "ended"], detail: str = "") -> None:
        host = self._feed.config.name
        self._emit(TailChanged(t=self._clock.now(), host=host, tail=self._place, condition=condition, detail=detail))


def pane_feeds(feed: HostFeed, clock: Clock, emit: Callable[[AnyEvent], None]) -> list[Coroutine[Any, Any, None]]:
    """Return one coroutine per tail and status page of the host; each runs until cancelled."""
    feeds = [HostTail(feed, place, clock, emit).run() for place in range(len(feed.config.tail))]
    if feed.config.status:
        # Slow to import, and most hosts have no status page.
        from cockpit.hosts.status.feed import PageFeed

        feeds += [PageFeed(feed, place, clock, emit).run() for place in range(len(feed.config.status))]
    return feeds
