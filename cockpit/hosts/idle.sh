# idle READER SECONDS: ends this shell and its child processes once READER, which reads the standard input, has read
# nothing for SECONDS to twice SECONDS: the client was stopped, or vanished without closing the input. READER is this
# shell or a child of it. A process that waits for input is not scheduled until some arrives: its context switches do not
# change. To run in the background. `end_idle PID` ends it and waits for its end: the first process of a container may
# not wait for those that are left to it.
idle() {
  exec </dev/null >/dev/null 2>&1 3>&- 4>&- 5>&-
  nap= before=
  # A shell that has not started its command yet may lose SIGTERM.
  trap '[ -z "$nap" ] || { kill -KILL "$nap"; wait "$nap"; }; exit 0' TERM
  while :; do
    sleep "$2" & nap=$!
    wait "$nap"
    switches=
    reads "$1" || exit 0
    while read -r key count; do
      case $key in *voluntary_ctxt_switches:) switches=$switches.$count ;; esac
    done < "/proc/$1/status"
    [ "$switches" ] || exit 0
    [ "$switches" != "$before" ] || break
    before=$switches
  done
  relatives
  signal_family TERM
  sleep 1
  signal_family KILL
}

# bash reports a killed job while it waits for it.
end_idle() {
  kill "$1"
  wait "$1"
} 2>/dev/null

signal_family() {
  for pid in $family; do [ "$pid" = "$own" ] || kill "-$1" "$pid"; done
}

# Whether it still is this shell or a child of it. In a PID namespace without a /proc of its own, none is.
reads() {
  file=/proc/$1/stat
  [ "$1" != $$ ] || file=/proc/self/stat
  read -r line < "$file" || return
  set -- ${line##*) }
  [ "$2" = $$ ]
}

# Sets family to the PIDs of this shell and of its descendants, own to that of the watchdog.
relatives() {
  read -r own line < /proc/self/stat
  family=" $$ " known=
  until [ "$family" = "$known" ]; do
    known=$family
    for pid in /proc/[0-9]*; do
      read -r line < "$pid/stat" || continue
      pid=${pid#/proc/}
      set -- ${line##*) }
      case $family in
        *" $pid "*) ;;
        *" $2 "*) family="$family$pid " ;;
      esac
    done
  done
}
