# idle READER NAP NAPS: end this shell and its descendants when READER has read no standard input for NAP * NAPS to
# 2 * NAP * NAPS seconds, because the client was stopped or vanished without closing the input. Run it in the background.
# READER is this shell or a child of it. A process that waits for input is not scheduled, so its context switches do not
# change. The function ends within NAP seconds after READER: `lxc exec` kills it if its client is killed.
# `end_idle PID` ends the watchdog and waits for it: the first process of a container might not wait for orphans.
idle() {
  exec </dev/null >/dev/null 2>&1 3>&- 4>&- 5>&-
  sleeper= before=
  # A shell that has not started its command yet may lose SIGTERM.
  trap '[ -z "$sleeper" ] || { kill -KILL "$sleeper"; wait "$sleeper"; }; exit 0' TERM
  while :; do
    naps=0
    while [ "$naps" -lt "$3" ]; do
      sleep "$2" & sleeper=$!
      wait "$sleeper"
      reader_runs "$1" || exit 0
      naps=$((naps + 1))
    done
    switches=
    while read -r key count; do
      case $key in *voluntary_ctxt_switches:) switches=$switches.$count ;; esac
    done < "/proc/$1/status"
    [ "$switches" ] || exit 0
    [ "$switches" != "$before" ] || break
    before=$switches
  done
  find_descendants
  signal_tree TERM
  sleep 1
  signal_tree KILL
}

# bash reports a killed job when it waits for the job.
end_idle() {
  kill "$1"
  wait "$1"
} 2>/dev/null

signal_tree() {
  for pid in $tree; do [ "$pid" = "$own" ] || kill "-$1" "$pid"; done
}

# Whether PID $1 still is this shell or a child of it; false in a PID namespace without its own /proc.
reader_runs() {
  file=/proc/$1/stat
  [ "$1" != $$ ] || file=/proc/self/stat
  read -r line < "$file" || return
  set -- ${line##*) }
  [ "$2" = $$ ]
}

# Set tree to the PIDs of this shell and its descendants, own to the PID of the watchdog.
find_descendants() {
  read -r own line < /proc/self/stat
  tree=" $$ " known=
  until [ "$tree" = "$known" ]; do
    known=$tree
    for pid in /proc/[0-9]*; do
      read -r line < "$pid/stat" || continue
      pid=${pid#/proc/}
      set -- ${line##*) }
      case $tree in
        *" $pid "*) ;;
        *" $2 "*) tree="$tree$pid " ;;
      esac
    done
  done
}
