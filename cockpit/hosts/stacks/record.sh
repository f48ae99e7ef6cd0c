#!/bin/sh
# Profiles the server's processes until a line or the end of standard input, at most $longest s: with the profiler of
# their language, else with perf. Raw samples stay in pipes to awk (fold.awk), so no file remains, however this ends.
# POSIX sh. Variables set before: hz call_graph pages longest pids masters sudo, and for fold.awk: seconds most_stacks
# most_text most_length most_frames patterns regex roots folder.
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

# The profiler for a process: perf does not know the functions of these programs.
profiler_of() {
  case $($as readlink "/proc/$1/exe" || cat "/proc/$1/comm") in
    */python[0-9]* | python* | gunicorn* | uvicorn* | */uwsgi* | uwsgi*) echo py-spy ;;
    */java | java) echo asprof ;;
    *) echo perf ;;
  esac
}

# Set check and slice to commands that show whether profiler $1 can read process $2, and print the folded stacks of it
# and its children in the next $seconds. A JVM whose profiler was killed goes on sampling until the time limit.
choose_commands() {
  case $1 in
    py-spy)
      check='$as $tool dump --pid '$2
      slice='$as $tool record --format raw --rate $hz --duration $seconds --subprocesses --nolineno'
      slice="$slice --output /dev/stdout --pid $2"
      ;;
    asprof)
      check='$as $tool check -f /dev/null -e cpu '$2
      slice='$as $tool start -f /dev/null --timeout $((2 * seconds)) -e cpu -i $((1000000000 / hz)) -j $most_frames '$2
      slice=$slice' && { sleep $seconds; $as $tool stop -o collapsed --ann '$2'; }'
      ;;
  esac
}

# Whether a process of the server has ended since its list was made.
is_outdated() {
  for pid in $masters; do [ -d "/proc/$pid" ] || return 0; done
  return 1
}

# End with a new list of processes.
start_again() {
  sleep 1
  printf '#cockpit again\n'
  exit 0
}

# Interrupt the profilers that process $1 started: they print what they have.
interrupt() {
  children=$(cat "/proc/$1/task/$1/children")
  for child in $children; do interrupt "$child"; done
  case $(cat "/proc/$1/comm") in
    py-spy) $as kill -INT "$1" ;;
    sleep) kill "$1" ;;
  esac
} 2>/dev/null

# Profile with the profiler $1 of a language. Return if it cannot be used, with the reason in $reason.
profile_language() {
  reason=missing slices=: expected=0
  tool=$(command -v "$1") || return
  for pid in $masters; do
    choose_commands "$1" "$pid"
    reason=$(eval "$check" 2>&1 >/dev/null </dev/null) || return
    slices="{ $slice && echo +ended; } | { $slices; cat; }"
    name=$(cat "/proc/$pid/comm") expected=$((expected + 1))
  done
  source=$1 stacks=$slices
  export source as tool hz stacks expected name
  printf '#cockpit recording %s\n' "$1"
  exec 3<&0
  $limit sh -c 'read -r line' <&3 &
  watcher=$!
  export watcher
  awk "$folder" &
  folder=$!
  wait "$watcher" 2>/dev/null
  interrupt "$parent"
  wait "$folder" || failed=y
  [ "$failed" ] && is_outdated && start_again
  # A process must not stay stopped because its profiler was killed while it read the stack.
  for pid in ${failed:+$(echo "$pids" | tr , ' ')}; do
    case $(sed 's/.*) //' "/proc/$pid/stat" 2>/dev/null) in T*) $as kill -CONT "$pid" ;; esac
  done
  exit 0
}

main() {
  as= limit= reason= language=
  [ "$(id -u)" = 0 ] || ! [ "$sudo" ] || as='sudo -n'
  command -v timeout >/dev/null && limit="timeout $longest"
  clock_ticks=$(getconf CLK_TCK 2>/dev/null || echo 100)
  parent=$$
  stacks= everywhere=
  export clock_ticks parent seconds most_stacks most_text most_length most_frames patterns regex roots stacks everywhere
  [ -d "/proc/$$" ] && is_outdated && start_again
  # shellcheck disable=SC2046
  set -- $(for pid in $masters; do profiler_of "$pid"; done 2>/dev/null </dev/null | sort -u)
  for each; do [ "$each" = perf ] || language=$each; done
  # A profiler of a language reads no other processes.
  if [ "$#" -gt 1 ]; then reason=mixed; elif [ "$language" ]; then profile_language "$language"; fi
  command -v perf >/dev/null || fail missing
  # With cat: each read of this file starts at its beginning, so the shell's would not end.
  paranoid=$(cat /proc/sys/kernel/perf_event_paranoid 2>/dev/null) || fail unsupported
  # System-wide, because perf counts the time of each new process from zero, and would never sample short ones.
  scope="-p $pids"
  if [ "$as" ] || [ "$(id -u)" = 0 ] || [ "$paranoid" -le 0 ]; then everywhere=y scope=-a; fi
  [ "$everywhere" ] || [ "$pids" ] || fail processes
  [ "$everywhere" ] && find_group && scope="-a -G $group"
  # Idle CPUs are left out (I).
  source=cpu-clock event=cpu-clock:I
  case $($as perf stat -x, -e cycles true 2>&1 </dev/null) in
    [0-9]*) source=cycles event=cycles ;;
  esac
  export source hz
  reason=$({ echo "$reason" | grep -i permi || echo "$reason"; } | head -n 1)
  printf '#cockpit recording perf %s %s\n' "$language" "$reason"
  # mawk would wait for a full block of input.
  interactive=
  case $(awk -W version 2>&1 </dev/null) in mawk*) interactive='-W interactive' ;; esac
  # perf ends when this program does.
  # shellcheck disable=SC2086
  $as perf record -q -F "$hz" --call-graph "$call_graph" -e "$event" -k CLOCK_MONOTONIC -m "$pages" \
    --no-bpf-event -B -N -o - $scope -- $limit sh -c 'read -r line' |
    $as perf script -i - --no-inline -F comm,pid,time,ip,sym,dso |
    awk $interactive "$folder"
  exit 0
}
main
