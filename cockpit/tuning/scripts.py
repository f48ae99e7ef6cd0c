"""The sh programs that run on a host. Arguments are positional or quoted by shlex; content comes on stdin.

They need a POSIX sh and coreutils (or busybox). Exit 4: refused, the reason is the last line on stderr; exit 5: a
file is not as it was when it was read.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

REFUSED = 4
FOREIGN = 5

_HEAD = """
LC_ALL=C; export LC_ALL
umask 077
refuse() { printf '%s\\n' "$1" >&2; exit 4; }
digest() { sha256sum <"$1" | cut -c1-64; }
"""

# $1 file, $2 most bytes. Prints the path behind its links, NUL, the bytes.
READ = (
    _HEAD
    + """
meta=$(stat -L -c '%F|%s' -- "$1") || exit 4
case $meta in 'regular file|'* | 'regular empty file|'*) ;; *) refuse 'it is not a regular file' ;; esac
[ "${meta##*|}" -le "$2" ] || refuse "it is larger than $2 bytes"
real=$(readlink -f -- "$1") || refuse 'the path behind its links cannot be found'
printf '%s\\0' "$real"
cat -- "$real" || exit 4
"""
)

# Makes a directory of its own for one change, outside of any configuration, and prints it.
OPEN = (
    _HEAD
    + """
usable() { mkdir -p -m 700 -- "$1" 2>/dev/null && [ -d "$1" ] && [ ! -L "$1" ] && [ -O "$1" ] && [ -w "$1" ]; }
base=${XDG_STATE_HOME:-${HOME:-}/.local/state}/cockpit
case $base in /.local/* | [!/]*) base= ;; esac
if [ -z "$base" ] || ! usable "$base"; then
    base=/var/tmp/cockpit-$(id -u)
    usable "$base" || refuse "no place for a backup: neither ~/.local/state/cockpit nor $base can be used"
fi
chmod 700 -- "$base" && usable "$base/changes" || refuse "no place for a backup in $base"
mktemp -d -- "$base/changes/$(date -u +%Y%m%dT%H%M%SZ)-XXXXXX" || exit 4
"""
)

# $1 change directory, $2 number, $3 file behind links, $4 digest it had, $5 digest of stdin, $6 name of the backup.
# Keeps the original and, beside it, what is to stand in its place.
STAGE = (
    _HEAD
    + """
cp -- "$3" "$1/$6" || exit 4
[ "$(digest "$1/$6")" = "$4" ] || exit 5
printf '%s\\t%s\\n' "$6" "$3" >>"$1/files" || exit 4
cat >"$1/$2.new" || exit 4
[ "$(digest "$1/$2.new")" = "$5" ] || refuse 'what was sent did not arrive whole; is the disk full?'
"""
)

# prepare NUMBER FILE REAL WAS SOURCE BECOMES: a copy of REAL with its owner, mode and attributes, and SOURCE's bytes,
# under a name that no wildcard for configuration files matches. swap: it takes REAL's place if REAL still is WAS.
_REPLACE = (
    _HEAD
    + """
temporary() { printf '%s/.cockpit-%s-%s' "${1%/*}" "${change##*/}" "$2"; }
prepare() {
    at=$1 file=$2 real=$3 was=$4 source=$5 becomes=$6
    temp=$(temporary "$real" "$at")
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
swap() {
    at=$1 real=$3 was=$4
    [ ! -e "$change/$barrier" ] || refuse 'the change was given up'
    [ "$(digest "$real")" = "$was" ] || exit 5
    mv -f -- "$(temporary "$real" "$at")" "$real" || exit 4
    printf 'did %s\\n' "$at"
}
clean() { rm -f -- "$(temporary "$3" "$1")"; }
trap 'exit 1' HUP INT TERM PIPE
"""
)

# Lines on stdout: `did NUMBER` for each file that was replaced, and `at NUMBER`, the one that was handled last.
_COMMIT = """
at=0 barrier=given-up
trap 'printf "at %s\\n" "$at"; sweep' EXIT
"""

# First bars the way for a commit that still runs there after its connection was lost.
# A line on stdout for each file: number, then `kept` (the original stands there), `restored` or `left STATUS REASON`.
_RESTORE = """
trap sweep EXIT
barrier=none
( : >"$change/given-up" ) 2>/dev/null || true
back() {
    if [ "$(digest "$3")" = "$6" ]; then printf '%s kept\\n' "$1"; return; fi
    reason=$({ prepare "$@" && swap "$@" >/dev/null && [ "$(digest "$3")" = "$6" ]; } 2>&1)
    status=$?
    if [ "$status" = 0 ]; then printf '%s restored\\n' "$1"; return; fi
    printf '%s left %s %s\\n' "$1" "$status" "$(printf '%s' "$reason" | tail -n 1)"
}
"""


def commit(change: str, jobs: Sequence[Sequence[str]]) -> str:
    """Replaces all files or, when one cannot be prepared, none. A job: NUMBER FILE REAL WAS SOURCE BECOMES."""
    return _with_jobs(change, _COMMIT, ("prepare", "swap"), jobs)


def restore(change: str, jobs: Sequence[Sequence[str]]) -> str:
    """Puts back each file that still is WAS, one by one, whatever becomes of the others."""
    return _with_jobs(change, _RESTORE, ("back",), jobs)


def _with_jobs(change: str, body: str, steps: Sequence[str], jobs: Sequence[Sequence[str]]) -> str:
    sweep = "; ".join(shlex.join(("clean", *job)) for job in jobs)
    calls = [shlex.join((step, *job)) for step in steps for job in jobs]
    return "\n".join((_REPLACE, f"change={shlex.quote(change)}", f"sweep() {{ {sweep}; }}", body, *calls))


# $1 change directory, $2 most seconds, $3 the user's command. Its output goes through files, so that a server which
# it starts and which keeps its standard output open does not keep the cockpit waiting.
RUN = """
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin; export PATH
out=$(mktemp "$1/out.XXXXXX") && err=$(mktemp "$1/err.XXXXXX") || exit 125
timeout -k 5 "$2" sh -c "$3" >"$out" 2>"$err" </dev/null
status=$?
head -c 65536 -- "$out"
head -c 65536 -- "$err" >&2
rm -f -- "$out" "$err"
exit "$status"
"""

# $1 change directory.
DISCARD = 'rm -rf -- "$1"'
