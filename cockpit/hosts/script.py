"""What the probe is made of: a shell script, and the awk program that it hands the reading to where it can.

POSIX sh, as dash, bash and busybox ash have it; awk as mawk, gawk and busybox have it. A tick is `NUMBER WHAT [BYTES]`:
WHAT is `all` or `changes`, BYTES is where to cut lines. `clock` in its place asks for the wall clock.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

from cockpit.hosts.pattern import is_pattern, regular

# The kernel keeps no more of a process's name.
COMM_BYTES = 15
# Where lines are cut.
LINE_BYTES = 8192
# Frames within which a command line that changed (setproctitle) and a name that changed are seen; with an awk that
# knows no NUL it takes a fork, so it is done seldom. So is the reading of what each process has of shared pages.
ROUND, SLOW_ROUND = 10, 30

# One process for as long as the probe lives: no fork, no exec for a tick. A process's line is sent when it differs
# from the one sent before; `there` lists those that are still there. What the kernel says of memory in statm is read
# only where stat has changed, or in turn: memory changes hardly without that. Of a process whose stat stays as it is,
# schedstat is asked in place of it, for half the cost: as long as that says it did not run, nothing of it has changed
# but what others do to it (a parent that dies, pages taken away), and that is seen in turn. It speaks of the first
# thread alone, so it is asked only of processes that have no other.
READER = r"""
BEGIN {
  pattern = ENVIRON["pattern"]; regex = ENVIRON["regex"]; nuls = ENVIRON["nuls"]
  bytes = @BYTES@; every = @ROUND@; seldom = @SLOW_ROUND@
  timed = run_time("self") != "none"
}

function put(line) {
  out = out "\n" line
  if (length(out) > 4000) { print substr(out, 2); out = "" }
}

function say_all(path,   line) {
  while ((getline line < path) > 0) put("/proc/" path ":" line)
  close(path)
}

function say_system(   line) {
  say_all("uptime")
  while ((getline line < "stat") > 0)
    if (substr(line, 1, 4) != "intr" && substr(line, 1, 7) != "softirq") put("/proc/stat:" line)
  close("stat")
  say_all("loadavg")
  while ((getline line < "meminfo") > 0)
    if (line ~ /^(MemTotal|MemFree|MemAvailable|Buffers|Cached|SReclaimable|Shmem|SwapTotal|SwapFree):/)
      put("/proc/meminfo:" line)
  close("meminfo")
  while ((getline line < "diskstats") > 0)
    if (line !~ / 0 0 0 0 0 0 0 0 0 0 0/) put("/proc/diskstats:" line)
  close("diskstats")
  while ((getline line < "net/dev") > 0)
    if (line !~ /\|/) put("/proc/net/dev:" line)
  close("net/dev")
  say_all("self/stat")
  say_all(shell "/stat")
}

# Which block devices are disks and which lie upon disks; looked up anew when the kernel lists others than before.
function sort_disks(   line, word, names, command) {
  names = ""
  while ((getline line < "diskstats") > 0) { split(line, word, " "); names = names " " word[3] }
  close("diskstats")
  if (names == listed_disks) return
  listed_disks = names
  disks = ""; layered = ""
  command = "cd /sys/block && for d in *; do [ -e $d/device ] && echo disk $d || echo layered $d; done"
  while ((command | getline line) > 0) {
    split(line, word, " ")
    if (word[1] == "disk") disks = disks " " word[2]; else layered = layered " " word[2]
  }
  close(command)
}

# Whether the processes of others are hidden from this one: process 1 always is there.
function see_hiding(   line) {
  hidden = (getline line < "1/comm") <= 0
  close("1/comm")
}

function begin(number, what, own) {
  tick++
  busy = number
  shell = "./" own
  there = ""; batch = ""; listed = 0
  if (what == "all") { split("", stat); split("", statm); split("", title); split("", still) }
  if (tick % every == 1) { sort_disks(); see_hiding() }
  put("")
  put("#cockpit begin " number)
  put("#cockpit disks" disks)
  put("#cockpit layered" layered)
  if (hidden) put("#cockpit hidden")
  say_system()
}

function finish() {
  if (batch != "") say_titles()
  put("#cockpit there" there)
  put("#cockpit end " busy)
  print substr(out, 2); out = ""
  fflush()
  busy = ""
  if (listed < known) forget_the_gone()
}

function look(pid) {
  listed++
  if (!(pid in seen)) { known++; met[pid] = tick }
  seen[pid] = tick
  if (pid in head) say_process(pid)
  else if (tick - met[pid] < 3 || (tick + pid) % every == 0) meet(pid)
}

function wanted(pid,   path, comm, got) {
  path = pid "/comm"
  got = (getline comm < path)
  close(path)
  return got > 0 && (comm == pattern || (regex != "" && comm ~ regex))
}

function meet(pid) {
  if (!wanted(pid)) return
  head[pid] = ""
  say_process(pid)
}

function say_process(pid,   path, line, got, turn, slow, ran, named) {
  slow = (tick + pid) % seldom == 0
  if (pid in still) {
    ran = run_time(pid)
    if (ran == still[pid] && !slow) { add(pid); return }
    moved[pid] = 1
  }
  path = pid "/stat"
  got = (getline line < path)
  close(path)
  if (got <= 0) return
  turn = slow || ((tick + pid) % every == 0 && pid in moved)
  if (line != stat[pid]) {
    delete still[pid]
    moved[pid] = 1
    if (head[pid] == "" || substr(line, 1, length(head[pid])) != head[pid]) {
      if (head[pid] != "" && !wanted(pid)) { forget(pid); met[pid] = tick; return }
      match(line, /.*\) /)
      head[pid] = substr(line, 1, RLENGTH)
      named = 1
    }
    stat[pid] = line
    put("/proc/" path ":" line)
  }
  else {
    if (timed && single(pid)) still[pid] = ran; else delete still[pid]
    if (!turn) { add(pid); return }
  }
  say_memory(pid)
  if (turn) delete moved[pid]
  if (named || (nuls ? turn : tick % seldom == 0)) see_title(pid)
  if (slow) say_shares(pid)
  add(pid)
}

# How long it ran and how often, as the scheduler has it; `none` where the kernel does not count that.
function run_time(pid,   path, line) {
  path = pid "/schedstat"
  if ((getline line < path) <= 0 || line == "0 0 0") line = "none"
  close(path)
  return line
}

# Whether a process has one thread.
function single(pid,   field) {
  split(substr(stat[pid], length(head[pid]) + 1), field, " ")
  return field[18] == 1
}

# A process's part of the pages it shares. The kernel walks all its pages for that, so it is asked seldom; one without
# memory (defunct, or the kernel's own) has no answer.
function say_shares(pid,   path, line) {
  if (statm[pid] == "" || statm[pid] ~ /^0 /) return
  path = pid "/smaps_rollup"
  while ((getline line < path) > 0) if (line ~ /^Pss:/) { put("/proc/" path ":" line); break }
  close(path)
}

function add(pid) {
  there = there " " pid
  if (length(there) > 4000) { put("#cockpit there" there); there = "" }
}

function say_memory(pid,   path, line) {
  path = pid "/statm"
  if ((getline line < path) > 0 && line != statm[pid]) { statm[pid] = line; put("/proc/" path ":" line) }
  close(path)
}

function see_title(pid,   path, line, more, n) {
  if (!nuls) {
    batch = batch " " pid "/cmdline"
    if (length(batch) > 4000) say_titles()
    return
  }
  path = pid "/cmdline"
  line = ""
  RS = "\000"
  while (n++ < 1000 && length(line) < bytes && (getline more < path) > 0) line = line (n > 1 ? " " : "") more
  RS = "\n"
  close(path)
  gsub(/\n/, " ", line)
  say_title(pid, substr(line, 1, bytes))
}

function say_title(pid, line) {
  if (line == title[pid]) return
  title[pid] = line
  put("/proc/" pid "/cmdline:" line)
}

# For an awk that knows no NUL: grep puts the file's name before each argument.
function say_titles(   command, line, at, pid, found) {
  command = "grep -aHsz -m 1000 '' " batch " | tr '\\n\\000' ' \\n'"
  while ((command | getline line) > 0) {
    at = index(line, "/")
    pid = substr(line, 1, at - 1)
    line = substr(line, at + 9)
    if (!(pid in found)) found[pid] = line
    else if (length(found[pid]) < bytes) found[pid] = found[pid] " " line
  }
  close(command)
  for (pid in found) say_title(pid, substr(found[pid], 1, bytes))
  batch = ""
}

function forget(pid) {
  delete head[pid]; delete stat[pid]; delete statm[pid]; delete title[pid]; delete still[pid]; delete moved[pid]
}

function forget_the_gone(   pid) {
  for (pid in seen) if (seen[pid] != tick) { forget(pid); delete met[pid]; delete seen[pid]; known-- }
}

/^[0-9]+$/ { if (busy != "") look($0); next }
$1 == "tick" { begin($2, $3, $4); next }
$1 == "end" { if (busy != "") finish() }
"""

# The probe's own processes are read as /proc/./PID, told so apart from the processes that are watched.
SCRIPT = r"""
LC_ALL=C; export LC_ALL; unset GREP_OPTIONS
PATH=$PATH:/usr/bin:/bin
pattern=@PATTERN@ regex=@REGEX@ reader=@READER@
watch=@WATCH@
system='/proc/uptime /proc/stat /proc/loadavg /proc/meminfo /proc/diskstats /proc/net/dev'
if ! [ -r /proc/stat ]; then
  printf '\n#cockpit foreign %s\n' "$(uname -s)"
  exit 0
fi

one=$(printf '\001')
# Whether a command hands on lines that hold NULs, as command lines do; not every busybox's do.
passes() {
  case $("$@" | tr '\000' '\001') in
    *"$one"-s*) echo y ;;
  esac
}
greps=$(passes grep -aHs '' /proc/$$/cmdline)
cuts=$(grep -aHs '' /proc/$$/cmdline | passes cut -b 1-4096)

# How awk reads line by line, whether it knows NULs, and whether it can do the reading at all.
interactive= nuls= awks=
if command -v awk >/dev/null; then
  case $(awk -W version 2>&1 </dev/null) in
    mawk*) interactive='-W interactive' ;;
  esac
  words='BEGIN { RS = "\000"; while ((getline word < ARGV[1]) > 0) if (word == "-s") print "y" }'
  nuls=$(awk $interactive "$words" /proc/$$/cmdline)
  zeros=$(grep -aHsz '' /proc/$$/cmdline 2>/dev/null | tr '\n\000' ' \n' | grep -c ':-s')
  export pattern regex nuls
  if [ "$nuls" ] || [ "$zeros" = 1 ]; then
    case $(cd /proc; printf 'tick 0 all\n%s\nend\n' "$$" | awk $interactive "$reader" 2>/dev/null) in
      *'#cockpit end 0'*) awks=y ;;
    esac
  fi
fi

tell_clock() {
  printf '#cockpit clock %s\n' "$(date +%s.%N)"
}

# Hands awk each tick with the processes there are, in one write.
beat() {
  cd /proc
  IFS=' ' read -r me rest < /proc/self/stat
  while read -r number what bytes; do
    if [ "$number" = clock ]; then
      tell_clock >&3
    elif [ "$watch" ]; then
      printf '%s\n' "tick $number $what $me" [0-9]* end
    else
      printf '%s\n' "tick $number $what $me" end
    fi
  done
}

# mawk ends where a process does so between the opening of a file of it and the reading; then it begins anew.
take() {
  while :; do
    awk $interactive "$reader" 3>&-
    [ $? = 2 ] || break
    printf '\n#cockpit again\n'
  done
}

lines() {
  grep -avHsE -m 2000 '^(intr|softirq) [0-9 ]*$' "$@"
}

frame() {
  disks= layered= files= titles=
  for f in /sys/block/*; do
    [ -e "$f" ] || continue
    if [ -e "$f/device" ]; then disks="$disks ${f##*/}"; else layered="$layered ${f##*/}"; fi
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
  printf '\n#cockpit begin %s\n#cockpit disks%s\n#cockpit layered%s\n' "$1" "$disks" "$layered"
  read -r c 2>/dev/null < /proc/1/comm || echo '#cockpit hidden'
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
  printf '#cockpit fact way %s\n' "${awks:+awk}"
  printf '#cockpit ready\n'
  if [ "$awks" ]; then
    cd /proc
    { beat | take; } 3>&1
    exit 0
  fi
  while read -r number what bytes; do
    if [ "$number" = clock ]; then tell_clock; else frame "$number" "$bytes"; fi
  done
  exit 0
}
main
"""


def script(processes: str | None) -> bytes:
    """The probe for processes of that name or pattern. The pattern is user text: it stands in it quoted, never run."""
    pattern = processes or ""
    if not is_pattern(pattern):
        pattern = pattern.encode()[:COMM_BYTES].decode("utf-8", "ignore")
    values = {
        "WATCH": "y" if processes else "",
        "PATTERN": shlex.quote(pattern),
        "REGEX": shlex.quote(regular(pattern) if is_pattern(pattern) else ""),
        "READER": shlex.quote(_filled(READER, _NUMBERS)),
    }
    return _filled(SCRIPT, values | _NUMBERS).encode()


_NUMBERS = {"BYTES": str(LINE_BYTES), "ROUND": str(ROUND), "SLOW_ROUND": str(SLOW_ROUND)}


def _filled(text: str, values: Mapping[str, str]) -> str:
    """The text with `@NAME@` replaced, all at once: what is put in is not looked at again."""
    return re.sub("@([A-Z_]+)@", lambda name: values[name[1]], text)
