# $1 log, $2 PID of a server's first process, $3 a pattern for grep -E. Prints `log` if a process of the server has the log
# open, then the epoch second of the last line that matches, by the date and the time with which it begins.
for pid in "$2" $(children "$2"); do
    for link in "/proc/$pid"/fd/*; do
        [ "$link" -ef "$1" ] || continue
        echo log
        break 2
    done
done
at=$(grep -E -- "$3" "$1" | tail -n 1 | cut -c 1-19 | tr / -)
[ -z "$at" ] || date -d "$at" +%s
