"""The probe: a shell script that reads /proc on a host, one frame for each line it is sent.

Nothing is installed and nothing left behind: the script goes in on the standard input of `sh -s`, ticks follow it, and
the end of the input ends it. One `grep` a tick reads all files and writes each line behind its file's name.
"""

from __future__ import annotations

import asyncio
import shlex
from collections import deque
from contextlib import suppress

from cockpit.hosts import parse
from cockpit.hosts.frames import MARK, Frame, FrameReader
from cockpit.hosts.shell import Channel, Shell
from cockpit.model.errors import HostError
from cockpit.model.hosts import HostConfig, HostFacts, HostReading
from cockpit.model.text import neutral

# Seconds that a host's login shell may take to get to the probe.
START_TIMEOUT = 15.0
# The kernel keeps no more of a process's name.
COMM_BYTES = 15
# Where lines are cut when the last frame held longer ones.
LINE_BYTES = 8192
# Frames over which the probe's CPU time is averaged: the kernel tells it in steps of 10 ms.
COST_FRAMES = 30

# POSIX sh, as dash, bash and busybox ash have it. A tick is `NUMBER [BYTES]`; BYTES is where to cut lines.
# /proc/./PID is the probe itself, told so apart from the processes that are watched.
SCRIPT = r"""
LC_ALL=C; export LC_ALL; unset GREP_OPTIONS
PATH=$PATH:/usr/bin:/bin
pattern=@PATTERN@
watch=@WATCH@
system='/proc/uptime /proc/stat /proc/loadavg /proc/meminfo /proc/diskstats'
if ! [ -r /proc/stat ]; then
  printf '\n#cockpit foreign %s\n' "$(uname -s)"
  exit 0
fi

# Whether grep, and cut behind it, hand on lines that hold NULs, as command lines do; not every busybox's do.
one=$(printf '\001')
case $(grep -aHs '' /proc/$$/cmdline | tr '\000' '\001') in
  *"$one"-s*) greps=y ;;
  *) greps= ;;
esac
case $(grep -aHs '' /proc/$$/cmdline | cut -b 1-4096 | tr '\000' '\001') in
  *"$one"-s*) cuts=y ;;
  *) cuts= ;;
esac

lines() {
  grep -avHsE -m 2000 '^(intr|softirq|cpu[0-9]+) [0-9 ]*$' "$@"
}

frame() {
  disks= files= titles=
  for f in /sys/block/*/device; do
    [ -e "$f" ] || continue
    f=${f%/device}
    disks="$disks ${f##*/}"
  done
  if [ "$watch" ]; then
    for f in /proc/[0-9]*/comm; do
      IFS= read -r c < "$f" || continue
      case $c in
        "$pattern" | $pattern)
          f=${f%comm}
          files="$files ${f}stat ${f}statm"
          titles="$titles ${f}cmdline" ;;
      esac
    done 2>/dev/null
  fi
  printf '\n#cockpit begin %s\n#cockpit disks%s\n' "$1" "$disks"
  if [ "$2" ] && [ "$cuts" ]; then
    lines $system $files $titles /proc/./$$/stat | cut -b "1-$2"
  elif [ -z "$2" ] && [ "$greps" ]; then
    lines $system $files $titles /proc/./$$/stat
  else
    lines $system $files /proc/./$$/stat
    for f in $titles; do
      printf '%s:' "$f"
      head -c "${2:-@BYTES@}" "$f" 2>/dev/null | tr '\n' ' '
      echo
    done
  fi
  printf '#cockpit end %s\n' "$1"
}

main() {
  printf '\n#cockpit facts\n'
  printf '#cockpit fact hostname %s\n' "$(uname -n)"
  printf '#cockpit fact kernel %s\n' "$(uname -r)"
  printf '#cockpit fact cpus %s\n' "$(grep -c '^cpu[0-9]' /proc/stat)"
  printf '#cockpit fact hz %s\n' "$(getconf CLK_TCK 2>/dev/null || echo 100)"
  printf '#cockpit fact page %s\n' "$(getconf PAGESIZE 2>/dev/null || echo 4096)"
  printf '#cockpit ready\n'
  while read -r number bytes; do frame "$number" "$bytes"; done
  exit 0
}
main
"""


def script(processes: str | None) -> bytes:
    """The probe for processes of that name or pattern. The pattern is user text: it stands in it quoted, never run."""
    pattern = processes or ""
    if not any(sign in pattern for sign in "*?[\\"):
        pattern = pattern.encode()[:COMM_BYTES].decode("utf-8", "ignore")
    filled = SCRIPT.replace("@WATCH@", "y" if processes else "").replace("@BYTES@", str(LINE_BYTES))
    return filled.replace("@PATTERN@", shlex.quote(pattern)).encode()


class Probe:
    """A probe that runs on a host. One frame at a time."""

    def __init__(self, name: str, channel: Channel, facts: HostFacts) -> None:
        self.facts = facts
        self._name = name
        self._channel = channel
        self._frames = FrameReader()
        self._number = 0
        self._cut = True
        self._spent: deque[float] = deque(maxlen=COST_FRAMES + 1)

    @classmethod
    async def start(cls, shell: Shell, config: HostConfig) -> Probe:
        """Starts a probe and waits until it is ready. Raises HostError saying what came in its place."""
        channel: Channel | None = None
        try:
            async with asyncio.timeout(START_TIMEOUT):
                channel = await shell.open("exec sh -s")
                await _send(channel, script(config.processes))
                facts = await _read_facts(config.name, channel)
        except BaseException as error:
            if channel:
                channel.close()
            if isinstance(error, TimeoutError):
                slow = f"{config.name}: its shell did not start the probe within {START_TIMEOUT:g} s"
                raise HostError(slow) from None
            raise
        return cls(config.name, channel, facts)

    async def read(self) -> HostReading:
        """Has the probe read once. Raises HostError when it has ended or its frame lacks something."""
        self._number += 1
        await _send(self._channel, f"{self._number} {LINE_BYTES if self._cut else ''}\n".encode())
        frame = await self._read_frame()
        # Cutting costs the host one process more, so it is done only while there are lines to cut.
        self._cut = frame.longest >= LINE_BYTES
        try:
            return parse.reading(frame, self.facts, self._cost(frame))
        except (ValueError, IndexError) as error:
            raise HostError(f"{self._name}: what the probe read makes no sense: {error}") from None

    def close(self) -> None:
        """Ends the probe on the host."""
        self._channel.close()

    async def _read_frame(self) -> Frame:
        while line := await self._channel.readline():
            frame = self._frames.take(line)
            if frame and frame.number == self._number:
                return frame
        said = self._channel.stderr.decode("utf-8", "replace").strip()
        raise HostError(f"{self._name}: the probe ended{': ' + neutral(said, 200) if said else ''}")

    def _cost(self, frame: Frame) -> float:
        self._spent.append(parse.probe_seconds(frame, self.facts.hz))
        return (self._spent[-1] - self._spent[0]) / max(1, len(self._spent) - 1)


async def _send(channel: Channel, data: bytes) -> None:
    """Writes to the probe. Where that fails, the end of its output comes next and says more."""
    with suppress(HostError):
        await channel.write(data)


async def _read_facts(name: str, channel: Channel) -> HostFacts:
    """Reads over whatever the login shell prints until the probe is ready."""
    found: dict[str, str] = {}
    last = ""
    while line := await channel.readline():
        text = line.decode("utf-8", "replace").strip()
        if not line.startswith(MARK):
            last = text or last
            continue
        match text.split(maxsplit=3)[1:]:
            case ["fact", key, value]:
                found[key] = value
            case ["foreign", *system]:
                named = neutral(" ".join(system), 80) or "unknown system"
                raise HostError(f"{name}: no /proc there ({named}); hosts must run Linux")
            case ["ready"]:
                with suppress(KeyError, ValueError):
                    return parse.facts(found)
                raise HostError(f"{name}: the probe says of the host only {found}")
    said = last or channel.stderr.decode("utf-8", "replace").strip()
    raise HostError(f"{name}: its shell ended before the probe began{': ' + neutral(said, 200) if said else ''}")
