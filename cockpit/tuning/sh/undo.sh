# Lines of the outcome: `file N kept | restored | left STATUS REASON`, `value N kept | restored | foreign NOW | stuck
# REASON`, `test N STATUS OUTPUT` and `reload N STATUS OUTPUT` for failed commands, `reloaded`, `end`. Line breaks in a
# command's output are \036.
say() { printf '%s\n' "$*" >>"$change/outcome.part"; note "$*"; }
note() { printf '%s %s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$*" >>"$change/log"; } 2>/dev/null
barrier=none trouble= touched=
claim() {
    identify "$$"
    ln -s "undo-$identity" "$change/settled" 2>/dev/null && return
    [ -L "$change/settled" ] || return
    phase "$change"
    case $phase in
        confirmed | dropped) echo "it was $phase before"; exit 0 ;;
        undone | kept) cat -- "$change/outcome"; exit 0 ;;
        undoing) echo 'it is being undone'; exit 0 ;;
        partial) ! undoer "$change" || { echo 'it is being undone'; exit 0; } ;;
    esac
    identify "$$"
    ln -s "undo-$identity" "$change/after-${by#undo-}" 2>/dev/null || { echo 'it is being undone'; exit 0; }
    [ "$(tail -n 1 -- "$change/outcome.part" 2>/dev/null)" != end ] || finish
}
finish() {
    sweep
    release
    rm -f -- "$change/environment"
    mv -f -- "$change/outcome.part" "$change/outcome"
    cat -- "$change/outcome"
    exit 0
}
quiet() {
    tries=0
    while recorded "$change/busy" && [ "$tries" -lt 200 ]; do
        [ "$tries" -gt 0 ] || kill "$process"
        tries=$((tries + 1))
        pause
    done 2>/dev/null
}
back() {
    if matches "$3" "$6"; then say "file $1 kept"; return; fi
    reason=$({ prepare "$@" && swap "$@" >/dev/null && matches "$3" "$6"; } 2>&1)
    status=$?
    touched=y
    if [ "$status" = 0 ]; then say "file $1 restored"; return; fi
    trouble=y
    say "file $1 left $status $(printf '%s' "$reason" | tail -n 1)"
}
value() {
    set -f
    set -- $(as_login timeout -k 5 30 sh -c "$1" cockpit 2>/dev/null </dev/null)
    set +f
    printf '%s' "$*"
}
revert() {
    [ -e "$change/begun-$1" ] || return 0
    is=$(value "$2") got=
    [ ! -e "$change/got-$1" ] || read -r got <"$change/got-$1"
    if [ "$is" = "$4" ] && [ "$got" ]; then say "value $1 kept"; return; fi
    if [ "$is" ] && [ "$is" != "$4" ] && [ "$is" != "$5" ] && [ "$is" != "$got" ]; then
        trouble=y
        say "value $1 foreign $is"
        return
    fi
    touched=y
    run "$3" "$4"
    if [ "$(value "$2")" = "$4" ]; then say "value $1 restored"; return; fi
    trouble=y
    say "value $1 stuck $status $said"
}
run() {
    printf '%s\n' "$2" |
        as_login timeout -k 5 "$seconds" sh -c "$give" cockpit "$1" >"$change/said.out" 2>"$change/said"
    status=$?
    [ -s "$change/said" ] || mv -f -- "$change/said.out" "$change/said"
    said=$(head -c 4000 -- "$change/said" | tr '\n' '\036')
}
try() {
    run "$3" ''
    [ "$status" = 0 ] || { say "$1 $2 $status $said"; failed=y; }
}
