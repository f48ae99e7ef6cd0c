# $1 change directory, $2 lease, $3 a pattern of process names ("": none), $4 PID of a server's master ("": unknown).
# Renews the lease; prints `PID:START:PARENT` of the processes with these names, and of the master.
change=$1
if [ -L "$change/settled" ]; then
    why=
    { read -r why <"$change/why"; } 2>/dev/null
    refuse "the change was given up${why:+: $why}"
fi
renew "$2" || exit 4
[ "$3" ] || exit 0
pattern=$3 master=$4
for at in /proc/[0-9]*; do
    pid=${at#/proc/}
    read -r name <"$at/comm" || continue
    case $name in $pattern) ;; *) [ "$pid" = "$master" ] || continue ;; esac
    read -r line <"$at/stat" || continue
    set -f; set -- ${line##*) }; set +f
    # A process name may have a line break.
    [ "$#" -ge 20 ] && [ "$1" != Z ] || continue
    printf '%s:%s:%s\n' "$pid" "${20}" "$2"
done 2>/dev/null
