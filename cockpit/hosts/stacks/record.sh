#!/bin/sh
# Profiles the server's processes with perf until a line or the end of standard input, at most $longest s. Raw samples
# stay in pipes: perf record | perf script | awk (fold.awk), so no file remains, however this ends. POSIX sh.
# Variables set before: hz call_graph pages longest pids sudo, and for fold.awk: seconds most_stacks most_text
# most_length most_frames patterns regex roots folder.
# shellcheck disable=SC2154
LC_ALL=C PERF_CONFIG=/dev/null; export LC_ALL PERF_CONFIG; unset DEBUGINFOD_URLS
PATH=$PATH:/usr/sbin:/sbin:/usr/bin:/bin

fail() {
  printf '#cockpit failed %s\n' "$1"
  exit 0
}

# Set group to the control group of all processes $pids, by version 1 or 2; false if it is the root, or they differ.
find_group() {
  group=
  for pid in $(echo "$pids" | tr , ' '); do
    own=$(sed -n 's/^[0-9]*:\(perf_event\|\):\///p' "/proc/$pid/cgroup" 2>/dev/null | grep -v '[^A-Za-z0-9_./@:-]' | head -n 1)
    [ "$own" ] || continue
    [ "${group:-$own}" = "$own" ] || return 1
    group=$own
  done
  [ "$group" ] && { [ -d "/sys/fs/cgroup/$group" ] || [ -d "/sys/fs/cgroup/perf_event/$group" ]; }
}

main() {
  command -v perf >/dev/null || fail missing
  as=
  [ "$(id -u)" = 0 ] || ! [ "$sudo" ] || as='sudo -n'
  # With cat: each read of this file starts at its beginning, so the shell's would not end.
  paranoid=$(cat /proc/sys/kernel/perf_event_paranoid 2>/dev/null) || fail unsupported
  clock_ticks=$(getconf CLK_TCK 2>/dev/null || echo 100)
  parent=$$
  # System-wide, because perf counts the time of each new process from zero, and would never sample short ones.
  everywhere= scope="-p $pids"
  if [ "$as" ] || [ "$(id -u)" = 0 ] || [ "$paranoid" -le 0 ]; then everywhere=y scope=-a; fi
  [ "$everywhere" ] || [ "$pids" ] || fail processes
  [ "$everywhere" ] && find_group && scope="-a -G $group"
  # Idle CPUs are left out (I).
  source=cpu-clock event=cpu-clock:I
  case $($as perf stat -x, -e cycles true 2>&1 </dev/null) in
    [0-9]*) source=cycles event=cycles ;;
  esac
  export source hz clock_ticks parent everywhere seconds most_stacks most_text most_length most_frames
  export patterns regex roots
  # perf ends when this program does.
  set -- sh -c 'read -r line'
  if command -v timeout >/dev/null; then set -- timeout "$longest" "$@"; fi
  printf '#cockpit recording\n'
  # shellcheck disable=SC2086
  $as perf record -q -F "$hz" --call-graph "$call_graph" -e "$event" -k CLOCK_MONOTONIC -m "$pages" \
    --no-bpf-event -B -N -o - $scope -- "$@" |
    $as perf script -i - --no-inline -F comm,pid,time,ip,sym,dso |
    awk "$folder"
  exit 0
}
main
