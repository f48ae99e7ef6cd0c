# $1 log, $2 PID of a server's first process, $3 a pattern for grep -E. Prints `log` if a process of the server has the
# log open, then the time (epoch s) of the last matching line, which starts with date and time.
for pid in "$2" $(children "$2"); do
    for link in "/proc/$pid"/fd/*; do
        [ "$link" -ef "$1" ] || continue
        echo log
        break 2
    done
done
at=$(grep -E -- "$3" "$1" | tail -n 1 | cut -c 1-19 | tr / -)
[ -z "$at" ] || date -d "$at" +%s
