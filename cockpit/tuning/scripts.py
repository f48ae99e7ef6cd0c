"""The sh programs that run on a host. Arguments are positional or quoted by shlex; content comes on stdin.

They need a POSIX sh and coreutils (or busybox). Exit 4: refused, the reason is the last line on stderr; exit 5: a
file is not as it was when it was read; exit 6: there is no such file. `absent` stands for the digest of no file.
`$change` is the directory of a change; `settled` in it is a link that names what ended it (`confirmed`,
`undo-IDENTITY`, `dropped`): a link is made by one, whole, and on a full disk too.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from cockpit.tuning.identity import MACHINE, PHASE, PROCESS
from cockpit.tuning.path_safety import PATH_SAFETY
from cockpit.tuning.replacing import FLUSH, REPLACE

REFUSED = 4
FOREIGN = 5
MISSING = 6
# In place of a digest: there is no such file.
ABSENT = "absent"

# as_login COMMAND...: runs it with the umask, locale, PATH and directory that the login had before this program changed
# them. The undo inherits these from the program that armed it.
HEAD = """
if [ -z "${COCKPIT_LOGIN_UMASK-}" ]; then
    COCKPIT_LOGIN_UMASK=$(umask) COCKPIT_LOGIN_PATH=$PATH COCKPIT_LOGIN_LOCALE=${LC_ALL+=$LC_ALL}
    COCKPIT_LOGIN_DIRECTORY=$PWD
    export COCKPIT_LOGIN_UMASK COCKPIT_LOGIN_PATH COCKPIT_LOGIN_LOCALE COCKPIT_LOGIN_DIRECTORY
fi
as_login() (
    umask "$COCKPIT_LOGIN_UMASK"
    PATH=$COCKPIT_LOGIN_PATH LC_ALL=${COCKPIT_LOGIN_LOCALE#=}
    [ "$COCKPIT_LOGIN_LOCALE" ] || unset LC_ALL
    cd -- "$COCKPIT_LOGIN_DIRECTORY" 2>/dev/null
    unset COCKPIT_LOGIN_UMASK COCKPIT_LOGIN_PATH COCKPIT_LOGIN_LOCALE COCKPIT_LOGIN_DIRECTORY
    exec "$@"
)
LC_ALL=C; export LC_ALL
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin; export PATH
umask 077
refuse() { printf '%s\\n' "$1" >&2; exit 4; }
holds() { set -- "$2" $(sha256sum <"$1"); [ "$1" = "$2" ]; }
missing() { [ ! -e "$1" ] && [ ! -L "$1" ]; }
matches() { if [ "$2" = absent ]; then missing "$1"; else holds "$1" "$2"; fi; }
"""

# Seconds since the host's start, whole; until when the host waits for the cockpit before it undoes the change.
LEASE = """
uptime() { read -r now _ </proc/uptime; now=${now%%.*}; }
renew() {
    uptime
    printf '%s\\n' "$((now + $1))" >"$change/deadline.$$" && mv -f -- "$change/deadline.$$" "$change/deadline"
}
"""

# $1 file, $2 most bytes. Prints the path behind its links, NUL, the bytes. Exit 6, with the path: the directory exists,
# the file does not.
READ = (
    HEAD
    + """
if missing "$1" && directory=$(cd -- "${1%/*}/" 2>/dev/null && pwd -P); then
    printf '%s/%s\\0' "${directory%/}" "${1##*/}"
    echo 'No such file or directory' >&2
    exit 6
fi
meta=$(stat -L -c '%F|%s' -- "$1") || exit 4
case $meta in 'regular file|'* | 'regular empty file|'*) ;; *) refuse 'it is not a regular file' ;; esac
[ "${meta##*|}" -le "$2" ] || refuse "it is larger than $2 bytes"
real=$(readlink -f -- "$1") || refuse 'the path behind its links cannot be found'
printf '%s\\0' "$real"
cat -- "$real" || exit 4
"""
)

# $1 a command that prints a value, $2 where to keep what it prints ("" nowhere).
GET = (
    HEAD
    + FLUSH
    + """
value=$(as_login timeout -k 5 30 sh -c "$1" cockpit </dev/null) || exit
[ -z "$2" ] || {
    set -f; set -- "$2" $value; to=$1; shift
    printf '%s\\n' "$*" >"$to" && flush "$to" "${to%/*}"
} || exit 4
printf '%s\\n' "$value"
"""
)

# Sets $base to a directory for this user alone, outside of any configuration, and $changes to this machine's changes.
_BASE = (
    MACHINE
    + PATH_SAFETY
    + """
usable() {
    mkdir -p -m 700 -- "$1" 2>/dev/null && [ -d "$1" ] && [ ! -L "$1" ] && [ -O "$1" ] && [ -w "$1" ] &&
        walk "$1" '' && [ -z "$flaw" ]
}
base=${XDG_STATE_HOME:-${HOME:-}/.local/state}/cockpit
case $base in /.local/* | [!/]*) base= ;; esac
if [ -z "$base" ] || ! usable "$base"; then
    base=/var/tmp/cockpit-$(id -u)
    usable "$base" || refuse "no place for a backup: neither ~/.local/state/cockpit nor $base can be used"
fi
machine
changes=$base/changes/$machine
"""
)

# Changes kept on a host: the newest that are applied or undone, which the history walks back through, and all in all.
MOST_APPLIED, MOST_KEPT = 200, 100

# Makes a directory of its own for one change and prints it. Removes old changes first, oldest first: those that were
# rolled back while there are more than MOST_KEPT in all, then others that are over while there are more than
# MOST_APPLIED. One that is not over stays.
OPEN = (
    (
        HEAD
        + _BASE
        + PHASE
        + """
prune() {
    most=$1 over=$2
    set -- "$changes"/*-*/
    surplus=$(($# - most))
    for old; do
        [ "$surplus" -gt 0 ] || return 0
        old=${old%/}
        phase "$old"
        case " $over " in *" $phase "*) rm -rf -- "$old"; surplus=$((surplus - 1)) ;; esac
    done
}
chmod 700 -- "$base" && usable "$base/changes" && usable "$changes" || refuse "no place for a backup in $base"
prune MOST_KEPT 'undone dropped unarmed'
prune MOST_APPLIED 'confirmed undone dropped unarmed'
change=$(mktemp -d -- "$changes/$(date -u +%Y%m%dT%H%M%SZ)-XXXXXX") || exit 4
boot
printf '%s %s %s\\n' "$machine" "$boot" "$(uname -n)" >"$change/machine" 2>/dev/null || {
    rm -rf -- "$change"
    refuse 'No space left on device, or it cannot be written'
}
printf '%s\\n' "$change"
"""
    )
    .replace("MOST_APPLIED", str(MOST_APPLIED))
    .replace("MOST_KEPT", str(MOST_KEPT))
)

# $1 change directory, $2 number, $3 file behind links, $4 digest it had, $5 digest of stdin, $6 name of the backup,
# $7 file. Keeps the original and, beside it, the new content.
STAGE = (
    HEAD
    + PATH_SAFETY
    + """
secure "$7" "$3"
if [ "$4" = absent ]; then
    missing "$3" || exit 5
else
    cp -- "$3" "$1/$6" || exit 4
    holds "$1/$6" "$4" || exit 5
fi
printf '%s\\t%s\\n' "$6" "$3" >>"$1/files" || exit 4
[ "$5" != absent ] || exit 0
cat >"$1/$2.new" || exit 4
holds "$1/$2.new" "$5" || refuse 'what was sent did not arrive whole; is the disk full?'
"""
)

# Lines on stdout: `did NUMBER` for each file that was replaced, and `at NUMBER`, the one that was handled last.
_COMMIT = """
at=0 barrier=settled
trap 'rm -f -- "$change/busy"; printf "at %s\\n" "$at"; sweep' EXIT
identify "$$"
printf '%s\\n' "$identity" >"$change/busy" || exit 4
"""


def commit(change: str, lease: int, jobs: Sequence[Sequence[str]]) -> str:
    """Replaces all files or, when one cannot be prepared, none. A job: NUMBER FILE REAL WAS SOURCE BECOMES."""
    calls = [shlex.join((step, *job)) for step in ("prepare", "swap") for job in jobs]
    head = (
        HEAD,
        LEASE,
        PROCESS,
        REPLACE,
        f"change={shlex.quote(change)}",
        sweep(jobs),
        _COMMIT,
        f"renew {lease} || exit 4",
    )
    return "\n".join((*head, *calls))


def sweep(jobs: Sequence[Sequence[str]]) -> str:
    """The function that removes what may be left beside the files."""
    return f"sweep() {{ :; {'; '.join(shlex.join(('clean', *job)) for job in jobs)}{';' if jobs else ''} }}"


# Runs the command that is its argument, with the line on stdin as "$1": a value is in no argv.
GIVE = shlex.quote('IFS= read -r value; exec </dev/null; command=$1; set -- "$value"; unset value; eval "$command"')
_BUSY = shlex.quote(f"""{PROCESS}
identify "$$" && printf '%s\\n' "$identity" >"$1/busy" || exit 125
shift
exec timeout -k 5 "$1" sh -c "$2" cockpit "$3"
""")

# $1 change directory, $2 most seconds, $3 lease while it runs, $4 lease after it, $5 the user's command, $6 a mark to
# leave before it is run; stdin: a line with what it is given as "$1". Its output goes through files, so that a server
# which it starts and which keeps its standard output open does not keep the cockpit waiting.
RUN = (
    HEAD
    + LEASE
    + FLUSH
    + f"""
change=$1
[ ! -L "$change/settled" ] || refuse 'the change was given up'
renew "$3" || exit 125
[ -z "$6" ] || {{ : >"$change/$6" && flush "$change"; }} || exit 125
out=$change/out.$$ err=$change/err.$$
as_login sh -c {_BUSY} sh "$change" "$2" {GIVE} "$5" >"$out" 2>"$err"
status=$?
rm -f -- "$change/busy"
renew "$4" || status=125
head -c 65536 -- "$out"
head -c 65536 -- "$err" >&2
rm -f -- "$out" "$err"
exit "$status"
"""
)

# $1 change directory, $2 lease, $3 a pattern of names of processes ("" none). Prints `PID:START` of those of them
# whose parent is one of them too: a server's workers.
LOOK = (
    HEAD
    + LEASE
    + """
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
    [ "$1" != Z ] || continue
    own="$own${at#/proc/} "
    shift
    parent=$1
    shift 18
    rows="$rows${at#/proc/}:$1:$parent
"
done 2>/dev/null
printf '%s' "$rows" | while IFS=: read -r pid start parent; do
    case $own in *" $parent "*) printf '%s:%s\\n' "$pid" "$start" ;; esac
done
"""
)

# $1... paths. Prints the first of these files that can be read, its size and its inode.
LOG_END = 'for f; do if [ -r "$f" ]; then stat -L -c "%s %i" -- "$f" && printf "%s\\n" "$f"; exit; fi; done'
# $1 file, $2 size it had, $3 its inode then: what was written since, at most 64 KiB of it.
LOG_SINCE = """
from=$2
[ "$(stat -L -c %i -- "$1")" = "$3" ] || from=0
tail -c "+$((from + 1))" -- "$1" | head -c 65536
"""

# One line per change: directory, state (see PastState) and facts (see About), separated by tabs.
HISTORY = (
    HEAD
    + _BASE
    + PHASE
    + """
for change in "$changes"/*/; do
    change=${change%/}
    [ -s "$change/about" ] || continue
    phase "$change"
    case $phase in
        confirmed) state=applied ;;
        undone) state='rolled back' ;;
        undoing) state='being rolled back' ;;
        guarded | arming) state='under way' ;;
        abandoned) state='left half done' ;;
        *) continue ;;
    esac
    printf '%s\\t%s\\t' "$change" "$state"
    head -n 1 -- "$change/about"
done
"""
)
