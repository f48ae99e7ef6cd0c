#!/bin/sh
# The probe of a host: reads /proc, with awk (probe.awk) if the host's awk is suitable. POSIX sh: dash, bash, busybox ash.
# Variables set before: watch patterns regex port ports sockets reader line_bytes round slow_round most_shares
# few_numbers queue_round groups steps nap naps, and the functions idle and end_idle.
# A tick is a line on stdin, `NUMBER EXTENT [BYTES]`. EXTENT is `all` or `changes`; lines are cut after BYTES. The line
# `clock` requests the wall clock, `loop` runs a loop that measures the CPU's speed. The probe's own processes are read
# as /proc/./PID, which distinguishes them from watched processes.
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
# Only whole reads return its content, and `read` reads bytes.
cat /proc/sys/fs/file-nr >/dev/null 2>&1 && readable="$readable sys/fs/file-nr"

one=$(printf '\001')
newline='
'
# Whether a command passes on NULs, which command lines contain; some versions of busybox do not.
keeps_nul() {
  case $("$@" | tr '\000' '\001') in
    *"$one"-s*) echo y ;;
  esac
}
greps=$(keeps_nul grep -aHs '' /proc/$$/cmdline)
cuts=$(grep -aHs '' /proc/$$/cmdline | keeps_nul cut -b 1-4096)

# Check how awk answers at once, whether it supports NULs, and whether it can run the reader. mawk waits for a full
# block of input: if blocks are small, each message is padded to whole blocks. Otherwise -W interactive avoids the wait,
# but reads all files through stdio, with twice the system calls.
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

send_clock() {
  printf '#cockpit clock %s\n' "$(date +%s.%N)"
}

# Run a constant loop, whose CPU time shows the current speed of the CPU. The kernel updates this shell's counter when
# it deschedules the shell, so the counter is read right after waits for input: before the loop, and at the next line.
run_loop() {
  [ "$timed" ] || return
  IFS=' ' read -r ran rest slices < /proc/self/schedstat
  step=0
  while [ $step -lt "$steps" ]; do step=$((step + 1)); done
}

# Set loop to the CPU time (us) of the loop since the last tick; 0: no loop, or no wait for input after it.
end_loop() {
  loop=0
  [ "$ran" ] || return
  IFS=' ' read -r now rest waits < /proc/self/schedstat
  [ "$waits" -gt "$slices" ] && loop=$(((now - ran) / 1000))
  ran=
}

# Pass each tick to awk. Listing /proc is expensive: in most ticks awk gets only the PIDs assigned since the tick before
# the last, so that a process that is being created is tried twice. The last PID is in loadavg; it is used only if it
# belongs to the PID namespace of /proc.
pass_ticks() {
  cd /proc
  IFS=' ' read -r me rest < /proc/self/stat
  idle "$me" "$nap" "$naps" &
  watchdog=$!
  last=$me ran=
  read_last_pid
  usable= listed=
  few_between "$me" "$last" "$few_numbers" && usable=y
  while read -r number extent bytes; do
    end_loop
    if [ "$number" = clock ]; then send_clock >&3
    elif [ "$number" = loop ]; then run_loop
    elif [ "$watch" ]; then ask_processes
    else ask list "$number" "$extent" "$me" "$loop" end
    fi
  done
  end_idle "$watchdog"
}

ask_processes() {
  read_last_pid
  if [ "$extent$usable$listed" = changesyy ] && [ $((number % round)) != 0 ] &&
    few_between "$since" "$last" "$few_numbers"; then
    new=
    while [ "$since" -lt "$last" ]; do new="$new $((since += 1))"; done
    ask more "$number" "$extent" "$me" "$loop" $new end
  else
    ask list "$number" "$extent" "$me" "$loop" [0-9]* end
    listed=y
  fi
}

read_last_pid() {
  since=$before before=$last last=0
  IFS=' ' read -r rest rest rest rest last < loadavg
}

# Whether PIDs advanced by at most $3 from $1 to $2, without a wrap.
few_between() {
  [ "$1" -le "$2" ] && [ $(($2 - $1)) -le "$3" ]
}

# Print one word per line of 8 bytes, so that no word crosses a block; pad the last block with blanks.
ask() {
  printf '%7s\n' "$@"
  [ "$block" ] && printf "%$((block - $# * 8 % block - 1))s\n" ''
}

# mawk fails if a process ends between opening and reading one of its files; restart it.
run_awk() {
  until awk $interactive "$reader" 3>&-; do
    printf '\n#cockpit again\n'
  done
}

lines() {
  grep -avHsE -m 2000 '^(intr|softirq) [0-9 ]*$' "$@"
}

# Without awk, accept queues are not read, because grep would read the lines of all connections.
counters() {
  grep -aHsE '^(pg(pgin|pgout|fault|majfault|free|scan|steal)|pswp|Tcp|sockets|TCP|UDP|RAW|FRAG|some|full)' $counted
}

# Set parent_comm to the name of the parent: workers spawned by Python are named after the interpreter.
read_parent() {
  IFS= read -r stat < "$1" || return
  stat=${stat##*) } stat=${stat#* }
  IFS= read -r parent_comm < "/proc/${stat%% *}/comm"
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
      IFS= read -r comm < "$f" || continue
      parent_comm=
      case $comm in python*) read_parent "${f%comm}stat" ;; esac
      for p in $patterns; do
        case $comm in
          "$p" | $p) ;;
          *) case $parent_comm in '') continue ;; "$p" | $p) ;; *) continue ;; esac ;;
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
  [ "$loops" = 0 ] || printf '/proc/named:loops %s\n/proc/named:loop_us %s\n' "$loops" "$spent"
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
    { pass_ticks | run_awk; } 3>&1
    exit 0
  fi
  loops=0 spent=0 ran=
  idle $$ "$nap" "$naps" &
  watchdog=$!
  while read -r number extent bytes; do
    end_loop
    [ "$loop" -gt 0 ] && loops=$((loops + 1)) spent=$((spent + loop))
    if [ "$number" = clock ]; then send_clock
    elif [ "$number" = loop ]; then run_loop
    else frame "$number" "$bytes"
    fi
  done
  end_idle "$watchdog"
  exit 0
}
main
