"""The sh programs that run on a host. Arguments are positional or quoted by shlex; content comes on stdin.

They need a POSIX sh and coreutils (or busybox). Exit 4: refused, the reason is the last line on stderr; exit 5: a
file is not as it was when it was read; exit 6: there is no such file. `absent` stands for the digest of no file.
`$change` is the directory of a change; `settled` in it is a link that names what ended it (`confirmed`, `undo-PID`,
`dropped`): a link is made by one, whole, and on a full disk too.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

REFUSED = 4
FOREIGN = 5
MISSING = 6
# In place of a digest: there is no such file.
ABSENT = "absent"

HEAD = """
LC_ALL=C; export LC_ALL
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin; export PATH
umask 077
refuse() { printf '%s\\n' "$1" >&2; exit 4; }
digest() { sha256sum <"$1" | cut -c1-64; }
missing() { [ ! -e "$1" ] && [ ! -L "$1" ]; }
matches() { if [ "$2" = absent ]; then missing "$1"; else [ "$(digest "$1")" = "$2" ]; fi; }
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
    + """
value=$(timeout -k 5 30 sh -c "$1" cockpit </dev/null) || exit
[ -z "$2" ] || { set -f; set -- "$2" $value; to=$1; shift; printf '%s\\n' "$*" >"$to"; } || exit 4
printf '%s\\n' "$value"
"""
)

# Sets $base to a directory for this user alone, outside of any configuration.
_BASE = """
usable() { mkdir -p -m 700 -- "$1" 2>/dev/null && [ -d "$1" ] && [ ! -L "$1" ] && [ -O "$1" ] && [ -w "$1" ]; }
base=${XDG_STATE_HOME:-${HOME:-}/.local/state}/cockpit
case $base in /.local/* | [!/]*) base= ;; esac
if [ -z "$base" ] || ! usable "$base"; then
    base=/var/tmp/cockpit-$(id -u)
    usable "$base" || refuse "no place for a backup: neither ~/.local/state/cockpit nor $base can be used"
fi
"""

# Makes a directory of its own for one change and prints it.
OPEN = (
    HEAD
    + _BASE
    + """
chmod 700 -- "$base" && usable "$base/changes" || refuse "no place for a backup in $base"
mktemp -d -- "$base/changes/$(date -u +%Y%m%dT%H%M%SZ)-XXXXXX" || exit 4
"""
)

# $1 change directory, $2 number, $3 file behind links, $4 digest it had, $5 digest of stdin, $6 name of the backup.
# Keeps the original and, beside it, the new content.
STAGE = (
    HEAD
    + """
if [ "$4" = absent ]; then
    missing "$3" || exit 5
else
    cp -- "$3" "$1/$6" || exit 4
    [ "$(digest "$1/$6")" = "$4" ] || exit 5
fi
printf '%s\\t%s\\n' "$6" "$3" >>"$1/files" || exit 4
[ "$5" != absent ] || exit 0
cat >"$1/$2.new" || exit 4
[ "$(digest "$1/$2.new")" = "$5" ] || refuse 'what was sent did not arrive whole; is the disk full?'
"""
)

# prepare NUMBER FILE REAL WAS SOURCE BECOMES: a copy of REAL with its owner, mode and attributes, and SOURCE's bytes,
# under a name that no wildcard for configuration files matches. swap: it takes REAL's place if REAL still is WAS.
# WAS absent: REAL is created, mode 0644; BECOMES absent: REAL is removed.
REPLACE = """
temporary() { printf '%s/.cockpit-%s-%s' "${1%/*}" "${change##*/}" "$2"; }
prepare() {
    at=$1 file=$2 real=$3 was=$4 source=$5 becomes=$6
    temp=$(temporary "$real" "$at")
    case absent in "$was" | "$becomes") prepare_existence; return ;; esac
    [ "$(readlink -f -- "$file")" = "$real" ] || exit 5
    [ "$(digest "$real")" = "$was" ] || exit 5
    [ -w "$real" ] || refuse 'it is read-only for this user'
    [ "$(stat -c %h -- "$real")" = 1 ] || refuse 'it has a second hard link, which would be cut off'
    cp --preserve=all -- "$real" "$temp" 2>/dev/null || cp -p -- "$real" "$temp" || exit 4
    cat -- "$source" >"$temp" || exit 4
    [ "$(digest "$temp")" = "$becomes" ] || refuse 'it could not be written whole; is the disk full?'
    [ "$(stat -c '%a %u %g' -- "$temp")" = "$(stat -c '%a %u %g' -- "$real")" ] ||
        refuse 'its owner and mode cannot be kept by this user'
    sync -- "$temp" 2>/dev/null || :
}
prepare_existence() {
    matches "$real" "$was" || exit 5
    [ -d "${real%/*}" ] || refuse 'its directory is gone'
    [ -w "${real%/*}" ] || refuse 'its directory is read-only for this user'
    [ "$was" = absent ] || return 0
    cat -- "$source" >"$temp" && chmod 644 -- "$temp" || exit 4
    [ "$(digest "$temp")" = "$becomes" ] || refuse 'it could not be written whole; is the disk full?'
    sync -- "$temp" 2>/dev/null || :
}
swap() {
    at=$1 real=$3 was=$4 becomes=$6
    [ ! -L "$change/$barrier" ] || refuse 'the change was given up'
    matches "$real" "$was" || exit 5
    temp=$(temporary "$real" "$at")
    if [ "$was" = absent ]; then ln -- "$temp" "$real" 2>/dev/null || exit 5
    elif [ "$becomes" = absent ]; then rm -f -- "$real" || exit 4
    else mv -f -- "$temp" "$real" || exit 4
    fi
    printf 'did %s\\n' "$at"
}
clean() { rm -f -- "$(temporary "$3" "$1")"; }
trap 'exit 1' HUP INT TERM PIPE
"""

# Lines on stdout: `did NUMBER` for each file that was replaced, and `at NUMBER`, the one that was handled last.
_COMMIT = """
at=0 barrier=settled
trap 'rm -f -- "$change/busy"; printf "at %s\\n" "$at"; sweep' EXIT
printf '%s\\n' "$$" >"$change/busy" || exit 4
"""


def commit(change: str, lease: int, jobs: Sequence[Sequence[str]]) -> str:
    """Replaces all files or, when one cannot be prepared, none. A job: NUMBER FILE REAL WAS SOURCE BECOMES."""
    calls = [shlex.join((step, *job)) for step in ("prepare", "swap") for job in jobs]
    head = (HEAD, LEASE, REPLACE, f"change={shlex.quote(change)}", sweep(jobs), _COMMIT, f"renew {lease} || exit 4")
    return "\n".join((*head, *calls))


def sweep(jobs: Sequence[Sequence[str]]) -> str:
    """The function that removes what may be left beside the files."""
    return f"sweep() {{ :; {'; '.join(shlex.join(('clean', *job)) for job in jobs)}{';' if jobs else ''} }}"


# $1 change directory, $2 most seconds, $3 lease while it runs, $4 lease after it, $5 the user's command, $6 what it is
# given as "$1", $7 a mark to leave before it is run. Its output goes through files, so that a server which it starts
# and which keeps its standard output open does not keep the cockpit waiting.
RUN = (
    HEAD
    + LEASE
    + """
change=$1
[ ! -L "$change/settled" ] || refuse 'the change was given up'
renew "$3" || exit 125
[ -z "$7" ] || : >"$change/$7" || exit 125
out=$(mktemp "$1/out.XXXXXX") && err=$(mktemp "$1/err.XXXXXX") || exit 125
sh -c 'printf "%s\\n" "$$" >"$1/busy"; shift; exec timeout -k 5 "$1" sh -c "$2" cockpit "$3"' sh \
    "$change" "$2" "$5" "$6" >"$out" 2>"$err" </dev/null
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
    + """
for change in "$base"/changes/*/; do
    change=${change%/}
    [ -s "$change/about" ] || continue
    case $(readlink "$change/settled") in
        confirmed) state=applied ;;
        undo-*) state='rolled back'; [ -e "$change/outcome" ] || state='being rolled back' ;;
        dropped) continue ;;
        *)
            state='left half done'
            { read -r guard <"$change/pid" && grep -qsF "$change/" "/proc/$guard/cmdline"; } 2>/dev/null &&
                state='under way'
            ;;
    esac
    printf '%s\\t%s\\t' "$change" "$state"
    head -n 1 -- "$change/about"
done
"""
)
