# $1 change directory, $2 lease, $3 a pattern of names of processes ("" none). Prints `PID:START:PARENT` of those of
# them whose parent is one of them too: a server's workers.
change=$1
[ ! -L "$change/settled" ] || refuse 'the change was given up'
renew "$2" || exit 4
[ "$3" ] || exit 0
pattern=$3 own=' ' rows=
for at in /proc/[0-9]*/comm; do
    read -r name <"$at" || continue
    case $name in $pattern) ;; *) continue ;; esac
    at=${at%/comm}
    read -r line <"$at/stat" || continue
    set -f; set -- ${line##*) }; set +f
    # A name with a line end cuts the line.
    [ "$#" -ge 20 ] && [ "$1" != Z ] || continue
    own="$own${at#/proc/} "
    shift
    parent=$1
    shift 18
    rows="$rows${at#/proc/}:$1:$parent
"
done 2>/dev/null
printf '%s' "$rows" | while IFS=: read -r pid start parent; do
    case $own in *" $parent "*) printf '%s:%s:%s\n' "$pid" "$start" "$parent" ;; esac
done
