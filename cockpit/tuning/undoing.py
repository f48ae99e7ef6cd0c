"""The sh programs of a change that undoes itself: armed on the host before anything is touched, and on their own there.

`guard` waits on the host, whatever becomes of the connection, and runs `undo` when the lease is over. `undo` puts back
what still is as we wrote it, tests, reloads, and says in `outcome` what it did; it may be run again, and by hand.
One change at a time has the host: `lock` in the base directory is a link to its `owner`.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from cockpit.tuning.scripts import HEAD, LEASE, REPLACE, sweep

# $1 change directory.
GUARD = """
change=$1
printf '%s\\n' "$$" >"$change/pid"
while [ -d "$change" ] && [ ! -L "$change/settled" ]; do
    read -r now _ </proc/uptime
    read -r deadline <"$change/deadline" || deadline=0
    [ "${now%%.*}" -lt "$deadline" ] || exec sh "$change/undo" 'nobody confirmed it in time'
    sleep 1
done
"""

_DETACH = """
detach() {
    if setsid -f true 2>/dev/null; then setsid -f "$@" </dev/null >/dev/null 2>&1
    elif command -v setsid >/dev/null; then setsid "$@" </dev/null >/dev/null 2>&1 &
    else nohup "$@" </dev/null >/dev/null 2>&1 &
    fi
}
pause() { sleep 0.05 2>/dev/null || sleep 1; }
release() {
    lock=${change%/changes/*}/lock
    [ "$(readlink "$lock")" != "$change/owner" ] || rm -f -- "$lock"
}
dismiss() {
    read -r guard <"$change/pid" && grep -qsF "$change/" "/proc/$guard/cmdline" || return 0
    kill -- "-$guard" 2>/dev/null || kill "$guard"
} 2>/dev/null
"""

# $1 change directory, $2 lease, $3 digest of the undo program, $4 owner, $5 the guard; stdin: a line with what is told
# of the change, then the undo program. Takes the host for this change and starts the guard. A lock whose change is
# over, or was never armed, is stale.
ARM = (
    HEAD
    + LEASE
    + _DETACH
    + """
change=$1 lock=${1%/changes/*}/lock
IFS= read -r about
cat >"$change/undo" && [ "$(digest "$change/undo")" = "$3" ] ||
    refuse 'its undo could not be written there; is the disk full?'
printf '%s\\n' "$4" >"$change/owner" && printf '%s\\n' "$$" >"$change/arming" &&
    printf '%s\\n' "$about" >"$change/about" && printf '%s\\n' "$5" >"$change/guard" &&
    head -c 16384 /dev/zero >"$change/reserve" || exit 4
guarded() { read -r guard <"$1/pid" && grep -qsF "$1/" "/proc/$guard/cmdline"; } 2>/dev/null
stale() {
    held=$(readlink "$lock") || return 1
    held=${held%/owner}
    [ -d "$held" ] || return 0
    read -r who <"$held/owner"
    if [ -L "$held/settled" ]; then
        case $(readlink "$held/settled") in
            undo-*)
                [ ! -e "$held/outcome" ] || return 0
                ! grep -qsF "$held/" "/proc/$(readlink "$held/settled" | cut -c6-)/cmdline" ||
                    refuse "the change of $who is being undone"
                ;;
            *) return 0 ;;
        esac
    elif guarded "$held"; then
        uptime
        read -r deadline <"$held/deadline"
        refuse "a change of $who is under way and undoes itself in $((deadline - now)) s unless it is confirmed"
    elif [ ! -e "$held/armed" ]; then
        read -r maker <"$held/arming" && [ -d "/proc/$maker" ] && refuse "a change of $who is just being begun"
        return 0
    fi
    refuse "the change of $who was left half done, and its undo there is gone; put it back with sh '$held/undo'"
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
done
renew "$2" || exit 4
detach sh "$change/guard" "$change"
tries=0
until [ -s "$change/pid" ]; do
    tries=$((tries + 1))
    [ "$tries" -le 200 ] || refuse 'its undo could not be started'
    pause
done
: >"$change/armed" || exit 4
rm -f -- "$change/arming"
"""
)

# $1 change directory; stdin: the change's record.
CONFIRM = (
    HEAD
    + _DETACH
    + """
change=$1
cat >"$change/applied" || exit 4
if ! ln -s confirmed "$change/settled" 2>/dev/null; then
    [ "$(readlink "$change/settled")" = confirmed ] || refuse 'the host has undone it meanwhile'
fi
release
dismiss
rm -f -- "$change/reserve"
"""
)

# $1 change directory, $2 most seconds, $3 why. Has the host undo the change, and prints the outcome; `confirmed` where
# it had been confirmed before.
FIRE = (
    HEAD
    + LEASE
    + _DETACH
    + """
change=$1
[ -d "$change" ] || refuse 'nothing is kept of it there'
uptime
until=$((now + $2))
detach sh "$change/undo" "$3"
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
    + _DETACH
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
    ln -s "undo-$$" "$change/settled" 2>/dev/null && return
    by=$(readlink "$change/settled")
    case $by in
        confirmed | dropped) echo "it was $by before"; exit 0 ;;
        undo-*) ;;
        *) return ;;
    esac
    [ ! -e "$change/outcome" ] || { cat -- "$change/outcome"; exit 0; }
    grep -qsF "$change/" "/proc/${by#undo-}/cmdline" && { echo 'it is being undone'; exit 0; }
}
quiet() {
    tries=0
    while read -r pid <"$change/busy" && [ -d "/proc/$pid" ] && [ "$tries" -lt 200 ]; do
        [ "$tries" -gt 0 ] || kill "$pid"
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
value() { set -f; set -- $(timeout -k 5 30 sh -c "$1" cockpit 2>/dev/null </dev/null); set +f; printf '%s' "$*"; }
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
    timeout -k 5 "$seconds" sh -c "$1" cockpit "$2" >"$change/said.out" 2>"$change/said" </dev/null
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
if [ ! -e "$change/reloading" ]; then
    [ -z "$touched" ] || tests
elif [ "$trouble" ] && { tests; [ "$failed" ]; }; then
    :
else
    reloads
    [ "$failed" ] || say reloaded
fi
say end
release
mv -f -- "$change/outcome.part" "$change/outcome"
cat -- "$change/outcome"
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
            REPLACE,
            _DETACH,
            f"change={shlex.quote(change)} seconds={seconds}",
            _UNDO,
            _function("tests", "test", tests),
            _function("reloads", "reload", reloads),
            sweep(jobs),
            "claim",
            'rm -f -- "$change/reserve" "$change/outcome.part"',
            'trap sweep EXIT\nnote "undo: ${1:-asked for}"\nquiet',
            *steps,
            _AFTER,
        )
    )


def _function(name: str, word: str, commands: Sequence[str]) -> str:
    calls = "; ".join(shlex.join(("try", word, str(number), command)) for number, command in enumerate(commands))
    return f"{name}() {{ :; {calls}{';' if calls else ''} }}"
