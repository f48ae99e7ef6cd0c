#!/bin/sh
# The probe of a host: reads /proc, by awk (probe.awk) if the host has one that can. POSIX sh: dash, bash, busybox ash.
# Set before it: watch patterns regex port ports sockets reader line_bytes round slow_round most_shares few_numbers
# queue_round groups steps idle_seconds, and the function idle.
# A tick is a line on stdin, `NUMBER WHAT [BYTES]`: WHAT is `all` or `changes`, BYTES is where to cut lines; `clock` in
# place of NUMBER asks for the wall clock, `loop` measures the speed of the CPU. The probe's own processes are read as
# /proc/./PID, unlike the watched ones.
# shellcheck disable=SC2154
LC_ALL=C; export LC_ALL; unset GREP_OPTIONS
PATH=$PATH:/usr/bin:/bin
system='/proc/uptime /proc/stat /proc/loadavg /proc/meminfo /proc/diskstats /proc/net/dev'
counted='/proc/vmstat /proc/net/sockstat /proc/net/snmp /proc/net/netstat /proc/pressure/cpu /proc/pressure/io'
counted="$counted /proc/pressure/memory"
if ! [ -r /proc/stat ]; then
  printf '\n#cockpit foreign %s\n' "$(uname -s)"
  exit 0
fi

timed=
IFS=' ' read -r c rest 2>/dev/null < /proc/self/schedstat && [ "$c" != 0 ] && timed=y

readable=
for f in $counted /proc/net/tcp /proc/net/tcp6 /proc/net/unix; do
  IFS= read -r c < "$f" && readable="$readable ${f#/proc/}"
done 2>/dev/null

one=$(printf '\001')
newline='
'
# Whether a command hands on lines that hold NULs, as command lines do; not every busybox's do.
passes() {
  case $("$@" | tr '\000' '\001') in
    *"$one"-s*) echo y ;;
  esac
}
greps=$(passes grep -aHs '' /proc/$$/cmdline)
cuts=$(grep -aHs '' /proc/$$/cmdline | passes cut -b 1-4096)

# How awk answers at once, whether it knows NULs, and whether it can do the reading at all. mawk waits until a block of
# its input is full: where that is small, each message fills whole blocks. Told to be interactive it would not wait,
# but read every file through stdio, for twice the system calls.
interactive= block= nuls= awks=
if command -v awk >/dev/null; then
  case $(awk -W version 2>&1 </dev/null) in
    mawk*)
      left=$(printf '\n%65535s' '' | { awk 'NR == 1 { exit }'; wc -c; })
      block=$((65536 - left))
      case $block in
        1024 | 2048 | 4096 | 8192) ;;
        *) interactive='-W interactive' block= ;;
      esac ;;
  esac
  words='BEGIN { getline line < ARGV[1]; if (gsub(/\000/, " ", line) && line ~ / -s /) print "y" }'
  nuls=$(awk $interactive "$words" /proc/$$/cmdline)
  zeros=$(grep -aHsz '' /proc/$$/cmdline 2>/dev/null | tr '\n\000' ' \n' | grep -c ':-s')
  export patterns regex port ports sockets nuls line_bytes round slow_round most_shares queue_round readable groups
  if [ "$nuls" ] || [ "$zeros" = 1 ]; then
    IFS= read -r me < /proc/$$/comm
    case $(cd /proc; printf '%s\n' list 0 all 1 0 "$$" end | patterns=$me awk $interactive "$reader" 2>/dev/null) in
      *"/$$/cmdline:"*'#cockpit end 0'*) awks=y ;;
    esac
  fi
fi

tell_clock() {
  printf '#cockpit clock %s\n' "$(date +%s.%N)"
}

# A loop that is always the same: its CPU time tells how fast the CPU is now. The kernel brings the counter of this shell
# up to date when it puts it aside, so that it is read just after a wait for input: before the loop, and at the next line.
run_loop() {
  [ "$timed" ] || return
  IFS=' ' read -r ran rest slices < /proc/self/schedstat
  step=0
  while [ $step -lt "$steps" ]; do step=$((step + 1)); done
}

# Sets loop to the CPU time (us) of the loop since the last tick; 0: there was none, or no wait after it.
end_loop() {
  loop=0
  [ "$ran" ] || return
  IFS=' ' read -r now rest waits < /proc/self/schedstat
  [ "$waits" -gt "$slices" ] && loop=$(((now - ran) / 1000))
  ran=
}

# Hands awk each tick. Listing /proc is dear: in most ticks it is told only the numbers given since the tick before the
# last (one that was just being made then is tried twice). The last one given is in loadavg, which counts only where it
# speaks of the namespace that /proc shows.
beat() {
  cd /proc
  IFS=' ' read -r me rest < /proc/self/stat
  idle "$me" "$idle_seconds" &
  watchdog=$!
  last=$me ran=
  see_last
  counts= listed=
  few "$me" "$last" "$few_numbers" && counts=y
  while read -r number what bytes; do
    end_loop
    if [ "$number" = clock ]; then tell_clock >&3
    elif [ "$number" = loop ]; then run_loop
    elif [ "$watch" ]; then ask_processes
    else ask list "$number" "$what" "$me" "$loop" end
    fi
  done
  end_idle "$watchdog"
}

ask_processes() {
  see_last
  if [ "$what$counts$listed" = changesyy ] && [ $((number % round)) != 0 ] && few "$since" "$last" "$few_numbers"; then
    given=
    while [ "$since" -lt "$last" ]; do given="$given $((since += 1))"; done
    ask more "$number" "$what" "$me" "$loop" $given end
  else
    ask list "$number" "$what" "$me" "$loop" [0-9]* end
    listed=y
  fi
}

see_last() {
  since=$before before=$last last=0
  IFS=' ' read -r rest rest rest rest last < loadavg
}

# Whether it is so few numbers from one to the other, that began not anew between them.
few() {
  [ "$1" -le "$2" ] && [ $(($2 - $1)) -le "$3" ]
}

# A word a line, each of 8 bytes so that none lies across two blocks, and blanks until the last block is full.
ask() {
  printf '%7s\n' "$@"
  [ "$block" ] && printf "%$((block - $# * 8 % block - 1))s\n" ''
}

# mawk fails where a process ends between the opening of a file of it and the reading; then it begins anew.
take() {
  until awk $interactive "$reader" 3>&-; do
    printf '\n#cockpit again\n'
  done
}

lines() {
  grep -avHsE -m 2000 '^(intr|softirq) [0-9 ]*$' "$@"
}

# Without awk, accept queues are not read: grep would read the lines of all connections.
counters() {
  grep -aHsE '^(pg(pgin|pgout|fault|majfault|free|scan|steal)|pswp|Tcp|sockets|TCP|UDP|RAW|FRAG|some|full)' $counted
}

# Sets u to the name of the parent: workers that Python spawns have the name of its interpreter.
parent() {
  IFS= read -r s < "$1" || return
  s=${s##*) } s=${s#* }
  IFS= read -r u < "/proc/${s%% *}/comm"
}

frame() {
  disks= layered= files= titles=
  for f in /sys/block/*; do
    [ -e "$f" ] || continue
    if [ -e "$f/device" ]; then disks="$disks ${f##*/}"; else layered="$layered ${f##*/}"; fi
  done
  if [ "$watch" ]; then
    for f in /proc/[0-9]*/comm; do
      set -f; IFS=$newline
      IFS= read -r c < "$f" || continue
      u=
      case $c in python*) parent "${f%comm}stat" ;; esac
      for p in $patterns; do
        case $c in
          "$p" | $p) ;;
          *) case $u in '') continue ;; "$p" | $p) ;; *) continue ;; esac ;;
        esac
        f=${f%comm}
        files="$files ${f}stat ${f}statm"
        titles="$titles ${f}cmdline"
        break
      done
    done 2>/dev/null
    set +f; unset IFS
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
      head -c "${2:-$line_bytes}" "$f" 2>/dev/null | tr '\n' ' '
      echo
    done
  fi
  counters
  [ "$loops" = 0 ] || printf '/proc/speed:loops %s\n/proc/speed:loop_us %s\n' "$loops" "$spent"
  printf '#cockpit end %s\n' "$1"
}

main() {
  printf '\n#cockpit facts\n'
  printf '#cockpit fact hostname %s\n' "$(uname -n)"
  printf '#cockpit fact kernel %s\n' "$(uname -r)"
  printf '#cockpit fact cpus %s\n' "$(grep -c '^cpu[0-9]' /proc/stat)"
  printf '#cockpit fact hz %s\n' "$(getconf CLK_TCK 2>/dev/null || echo 100)"
  printf '#cockpit fact page %s\n' "$(getconf PAGESIZE 2>/dev/null || echo 4096)"
  printf '#cockpit fact boot %s\n' "$(cat /proc/sys/kernel/random/boot_id 2>/dev/null)"
  printf '#cockpit fact way %s\n' "${awks:+awk}"
  printf '#cockpit ready\n'
  if [ "$awks" ]; then
    cd /proc
    { beat | take; } 3>&1
    exit 0
  fi
  loops=0 spent=0 ran=
  idle $$ "$idle_seconds" &
  watchdog=$!
  while read -r number what bytes; do
    end_loop
    [ "$loop" -gt 0 ] && loops=$((loops + 1)) spent=$((spent + loop))
    if [ "$number" = clock ]; then tell_clock
    elif [ "$number" = loop ]; then run_loop
    else frame "$number" "$bytes"
    fi
  done
  end_idle "$watchdog"
  exit 0
}
main
