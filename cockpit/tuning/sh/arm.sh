# $1 change directory, $2 lease, $3 digest of the undo program, $4 owner, $5 the guard; stdin: a line that describes the
# change, then the undo program. Locks the host for this change, syncs everything that the undo needs to disk, and
# starts the guard. The lock of a change that has ended, or was never armed, is stale.
change=$1 lock=${1%/*}/lock
IFS= read -r facts
cat >"$change/undo" && holds "$change/undo" "$3" ||
    refuse 'its undo could not be written there; is the disk full?'
identify "$$"
printf '%s\n' "$4" >"$change/owner" && printf '%s\n' "$identity" >"$change/arming" &&
    printf '%s\n' "$facts" >"$change/facts" && printf '%s\n' "$5" >"$change/guard" &&
    head -c 16384 /dev/zero >"$change/reserve" || exit 4
stale() {
    held=$(readlink "$lock") || return 1
    held=${held%/owner}
    [ -d "$held" ] || return 0
    who=
    { read -r who <"$held/owner"; } 2>/dev/null
    phase "$held"
    case $phase in
        undoing) refuse "the change of $who is being undone" ;;
        guarded)
            uptime
            read -r deadline <"$held/deadline"
            refuse "a change of $who is under way and undoes itself in $((deadline / 100 - now)) s unless it is confirmed" ;;
        arming) refuse "a change of $who is starting" ;;
        abandoned)
            refuse "the change of $who is incomplete (its new values may be active), and its guard has ended; roll it back with sh '$held/undo'"
            ;;
    esac
}
leave() {
    [ -e "$change/armed" ] || { ln -s dropped "$change/settled"; release; }
}
trap leave EXIT
trap 'exit 1' HUP INT TERM PIPE
until ln -s "$change/owner" "$lock" 2>/dev/null; do
    [ -L "$lock" ] || refuse "the lock $lock cannot be created"
    stale || continue
    mv -f -- "$lock" "$change/stale" && [ "$(readlink "$change/stale")" = "$held/owner" ] ||
        refuse 'another change has just locked the host'
    rm -f -- "$change/stale"
done
renew "$2" || exit 4
flush "$change"/* "$change" "${change%/*}" "${change%/*/*}" "${change%/changes/*}" "${change%/*/changes/*}"
watched() {
    tries=0
    until [ -s "$change/pid" ]; do
        tries=$((tries + 1))
        [ "$tries" -le 200 ] || return 1
        pause
    done
}
managed "$change/guard" "$change" && watched || {
    rm -f -- "$change/environment"
    spawn "$change/guard" "$change"
    watched || refuse 'its undo could not be started'
}
: >"$change/armed" && flush "$change" || exit 4
rm -f -- "$change/arming"
