# $1 PID of a server's first process, $2 one of its ports, $3 its main configuration, $4 section of a setting.
# Functions for the programs that print a setting's value in the running server:
# children PID (oldest first), threads PID, open_files PID; listen_queue PID PORT ("" or not a number: any port): prints
# `LIMIT SOMAXCONN` if all sockets have the same limit; page PATH: a page of the server by HTTP; ask SOCKET REQUEST.
pid=$1 port=$2 file=$3 section=$4
children() {
    for at in /proc/[0-9]*/stat; do
        read -r line <"$at" || continue
        set -f; set -- "$1" ${line##*) }; set +f
        [ "$3" = "$1" ] && [ "$2" != Z ] && at=${at%/stat} && echo "${21} ${at#/proc/}"
    done 2>/dev/null | sort -n | cut -d ' ' -f 2
}
threads() { set -- "/proc/$1"/task/*; [ ! -d "$1" ] || echo "$#"; }
open_files() { sed -n 's/^Max open files  *\([0-9]*\) .*/\1/p' "/proc/$1/limits"; }
listen_queue() {
    case $2 in '' | *[!0-9]*) set -- "$1" '[0-9]*' ;; esac
    limit=$(ss -ltnpH | sed -n "s/^LISTEN  *[0-9]*  *\([0-9]*\)  *[^ ]*:$2 .*pid=$1,.*/\1/p" | sort -u)
    case $limit in '' | *[!0-9]*) return ;; esac
    echo "$limit $(cat /proc/sys/net/core/somaxconn)"
}
page() {
    if command -v curl >/dev/null; then curl -sS -f -m 5 "http://localhost:$port$1"
    else wget -q -T 5 -O - "http://localhost:$port$1"
    fi
}
