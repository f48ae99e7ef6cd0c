# Prints what is added to the file $log, and once a second a mark with the uptime (s), for count.awk.
#
# The file is read through one open descriptor: nothing is read twice, and after a rotation by renaming the rest of the
# old file is read, too. A file that became shorter (copytruncate) is read from its start.
size_of() {
  set -- $(ls -lnL "$1" 2>/dev/null)
  echo "${5:-0}"
}
position() {
  pos=0
  while read -r name value; do [ "$name" = pos: ] && pos=$value; done <"/proc/self/fdinfo/$1"
}
skip_to_end() {
  dd bs=1 skip="$(size_of /proc/self/fd/3)" count=0 <&3 >/dev/null 2>&1
}
follow() {
  exec 3<"$log" || exit 1
  skip_to_end
  old=0 unreadable=
  while :; do
    if [ "$old" -gt 0 ]; then
      cat <&5
      old=$((old - 1))
      [ "$old" -gt 0 ] || { echo "${mark}end"; exec 5<&-; }
    fi
    position 3
    before=$pos
    cat <&3
    position 3
    if [ "$pos" = "$before" ] && [ "$(size_of /proc/self/fd/3)" -lt "$pos" ]; then
      echo "${mark}rotated"
      echo "${mark}end"
      exec 3<"$log"
    elif [ "$old" = 0 ] && [ -e "$log" ] && ! [ "$log" -ef /proc/self/fd/3 ]; then
      if [ -r "$log" ]; then
        exec 5<&3 3<"$log"
        # The time until now is unread.
        [ -z "$unreadable" ] || skip_to_end
        unreadable=
        old=@DRAIN@
        echo "${mark}rotated"
      else
        unreadable=1
        echo "${mark}unreadable"
      fi
    fi
    read -r up rest </proc/uptime
    echo "$mark$up"
    sleep 1
  done
}
# mawk would wait for a full block of input.
interactive=
case $(awk -W version 2>&1 </dev/null) in mawk*) interactive='-W interactive' ;; esac
follow | LC_ALL=C awk $interactive "$reader"
