"""The sh programs of a change that undoes itself: armed on the host before anything is touched, and on their own there.

`guard` waits on the host, whatever becomes of the connection, and runs `undo` when the lease is over. `undo` puts back
what still is as we wrote it, tests, reloads, and writes to `outcome` what it did; it may be run again, and by hand.
After a reboot it reloads in any case: the server may have started with the new files.
One change at a time has the host: `lock` in the base directory is a link to its `owner`.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from cockpit.tuning.detaching import DETACH
from cockpit.tuning.identity import MACHINE, PHASE
from cockpit.tuning.replacing import FLUSH, REPLACE
from cockpit.tuning.scripts import GIVE, HEAD, LEASE, sweep

# $1 change directory, $2 "now" to undo at once. It undoes the change when the lease is over, and finishes an undo that
# was killed.
GUARD = (
    PHASE
    + """
change=$1
if [ -e "$change/environment" ]; then
    unset INVOCATION_ID JOURNAL_STREAM SYSTEMD_EXEC_PID MANAGERPID
    . "$change/environment"
fi
exec </dev/null >/dev/null 2>&1
[ "$2" != now ] || exec sh "$change/undo"
identify "$$" && printf '%s\\n' "$identity" >"$change/pid"
while [ -d "$change" ]; do
    if [ -L "$change/settled" ]; then
        phase "$change"
        case $phase in
            abandoned) exec sh "$change/undo" ;;
            undoing) ;;
            *) exit ;;
        esac
    else
        read -r now _ </proc/uptime
        read -r deadline <"$change/deadline" || deadline=0
        if [ "${now%%.*}" -ge "$deadline" ]; then
            echo 'nobody confirmed it in time' >"$change/why"
            exec sh "$change/undo"
        fi
    fi
    sleep 1
done
"""
)

# $1 change directory, $2 lease, $3 digest of the undo program, $4 owner, $5 the guard; stdin: a line that describes the
# change, then the undo program. Takes the host for this change, writes all that the undo needs to the disk, and starts
# the guard. A lock whose change is over, or was never armed, is stale.
ARM = (
    HEAD
    + LEASE
    + FLUSH
    + DETACH
    + """
change=$1 lock=${1%/*}/lock
IFS= read -r about
cat >"$change/undo" && holds "$change/undo" "$3" ||
    refuse 'its undo could not be written there; is the disk full?'
identify "$$"
printf '%s\\n' "$4" >"$change/owner" && printf '%s\\n' "$identity" >"$change/arming" &&
    printf '%s\\n' "$about" >"$change/about" && printf '%s\\n' "$5" >"$change/guard" &&
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
            refuse "a change of $who is under way and undoes itself in $((deadline - now)) s unless it is confirmed" ;;
        arming) refuse "a change of $who is just being begun" ;;
        abandoned)
            refuse "the change of $who was left half done, and its undo there is gone; put it back with sh '$held/undo'"
            ;;
    esac
}
leave() {
    [ -e "$change/armed" ] || { ln -s dropped "$change/settled"; release; }
}
trap leave EXIT
trap 'exit 1' HUP INT TERM PIPE
until ln -s "$change/owner" "$lock" 2>/dev/null; do
    [ -L "$lock" ] || refuse "the lock $lock cannot be made"
    stale || continue
    mv -f -- "$lock" "$change/stale" && [ "$(readlink "$change/stale")" = "$held/owner" ] ||
        refuse 'another change took the host just now'
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
"""
)

# $1 change directory; stdin: the change's record.
CONFIRM = (
    HEAD
    + FLUSH
    + DETACH
    + """
change=$1
cat >"$change/applied" || exit 4
flush "$change/applied" "$change"
if ! ln -s confirmed "$change/settled" 2>/dev/null; then
    [ "$(readlink "$change/settled")" = confirmed ] || refuse 'the host has undone it meanwhile'
fi
flush "$change"
release
dismiss
rm -f -- "$change/reserve"
"""
)

# $1 change directory, $2 most seconds; stdin: why. Has the host undo the change, and prints the outcome; `confirmed` if
# it had been confirmed before.
FIRE = (
    HEAD
    + LEASE
    + MACHINE
    + DETACH
    + """
change=$1
[ -d "$change" ] || refuse 'nothing is kept of it there'
here "$change"
[ -s "$change/why" ] || cat >"$change/why"
uptime
until=$((now + $2))
{ [ -e "$change/environment" ] && managed "$change/guard" "$change" now; } || spawn "$change/undo"
while :; do
    case $(readlink "$change/settled") in confirmed | dropped) readlink "$change/settled"; exit ;; esac
    if [ -e "$change/outcome" ]; then cat -- "$change/outcome"; exit; fi
    uptime
    [ "$now" -lt "$until" ] || refuse "it is still at work; see $change/log"
    pause
done
"""
)

# $1 change directory. Lets go of a change that touched nothing.
DISCARD = (
    HEAD
    + DETACH
    + """
change=$1
if [ -e "$change/armed" ]; then ln -s dropped "$change/settled" 2>/dev/null || exit 0; fi
release
dismiss
rm -rf -- "$change"
"""
)

# Lines of the outcome: `file N kept | restored | left STATUS REASON`, `value N kept | restored | foreign NOW | stuck
# REASON`, `test N STATUS SAID` and `reload N STATUS SAID` for those that failed, `reloaded`, `end`. What a command said
# has its line ends as \036.
_UNDO = """
say() { printf '%s\\n' "$*" >>"$change/outcome.part"; note "$*"; }
note() { printf '%s %s\\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$*" >>"$change/log"; } 2>/dev/null
barrier=none trouble= touched=
claim() {
    identify "$$"
    ln -s "undo-$identity" "$change/settled" 2>/dev/null && return
    [ -L "$change/settled" ] || return
    phase "$change"
    case $phase in
        confirmed | dropped) echo "it was $phase before"; exit 0 ;;
        undone) cat -- "$change/outcome"; exit 0 ;;
        undoing) echo 'it is being undone'; exit 0 ;;
    esac
    identify "$$"
    ln -s "undo-$identity" "$change/after-${by#undo-}" 2>/dev/null || { echo 'it is being undone'; exit 0; }
    [ "$(tail -n 1 -- "$change/outcome.part" 2>/dev/null)" != end ] || finish
}
finish() {
    sweep
    release
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
    printf '%s\\n' "$2" |
        as_login timeout -k 5 "$seconds" sh -c "$give" cockpit "$1" >"$change/said.out" 2>"$change/said"
    status=$?
    [ -s "$change/said" ] || mv -f -- "$change/said.out" "$change/said"
    said=$(head -c 4000 -- "$change/said" | tr '\\n' '\\036')
}
try() {
    run "$3" ''
    [ "$status" = 0 ] || { say "$1 $2 $status $said"; failed=y; }
}
"""
_AFTER = """
failed=
if [ ! -e "$change/reloading" ] && [ "$made_in" = "$boot" ]; then
    [ -z "$touched" ] || tests
elif [ "$trouble" ] && { tests; [ "$failed" ]; }; then
    :
else
    reloads
    [ "$failed" ] || say reloaded
fi
say end
finish
"""


def undo(
    change: str,
    jobs: Sequence[Sequence[str]],
    values: Sequence[tuple[str, str, str, str, str]],
    tests: Sequence[str],
    reloads: Sequence[str],
    seconds: int,
) -> str:
    """The undo program. A job is NUMBER FILE REAL WAS SOURCE BECOMES (see scripts.REPLACE), a value NUMBER, the
    commands that get it and set it, OLD and NEW; `seconds` is the most that a command may take."""
    steps = [shlex.join(("back", *job)) for job in jobs]
    steps += [shlex.join(("revert", *value)) for value in reversed(values)]
    return "\n".join(
        (
            HEAD,
            MACHINE,
            DETACH,
            REPLACE,
            f"change={shlex.quote(change)} seconds={seconds} give={GIVE}",
            'here "$change"',
            _UNDO,
            _function("tests", "test", tests),
            _function("reloads", "reload", reloads),
            sweep(jobs),
            "claim",
            'rm -f -- "$change/reserve" "$change/outcome.part"',
            "trap sweep EXIT\nquiet\nsweep",
            'why=\n{ read -r why <"$change/why"; } 2>/dev/null\nnote "undo: ${why:-asked for}"',
            *steps,
            _AFTER,
        )
    )


def _function(name: str, word: str, commands: Sequence[str]) -> str:
    calls = "; ".join(shlex.join(("try", word, str(number), command)) for number, command in enumerate(commands))
    return f"{name}() {{ :; {calls}{';' if calls else ''} }}"
