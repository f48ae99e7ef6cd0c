# $1 PID of a server, $2 the server's root directory here ("": /), then paths or patterns. Prints per file, parts
# separated by tabs: `file NAME REAL SAME`, then `line TEXT` for lines that may include other files. SAME: whether the
# server's own root has the same file: yes, no, unknown (not readable); yes also for a file that the server read before
# its chroot. `missing NAME`: no such file. `unread NAME`: not readable.
server=$1 root=$2
visible= shared=
! ls -d "/proc/$server/root/" >/dev/null 2>&1 || visible=y
[ "$(readlink "/proc/$server/ns/mnt")" != "$(readlink /proc/self/ns/mnt)" ] || shared=y
shift 2
IFS=
including='include|serverroot|jkworkersfile|^[[:space:]]*import[[:space:]]' readable=
one() {
    if [ -d "$1" ]; then
        for inner in "$1"/*; do [ ! -f "$inner" ] || one "$inner"; done
        return 0
    fi
    # Reading a pipe or a device might never end.
    [ -f "$1" ] || return 0
    # Links within another root would resolve to other files here.
    real=$1
    [ "$root" ] || real=$(readlink -f -- "$1") || return 0
    case $1$real in *[$tab$newline]*) row unread "a file whose name has line breaks"; return 0 ;; esac
    [ -r "$1" ] || { row unread "$1"; return 0; }
    same=unknown
    if [ "$root" ]; then
        same=yes
    elif [ "$visible" ]; then
        same=no
        [ ! "$1" -ef "/proc/$server/root$1" ] || same=yes
        [ -e "/proc/$server/root$1" ] || [ -z "$shared" ] || same=yes
    fi
    row file "$1" "$real" "$same"
    readable=$readable$1$newline
}
# One search for all files, because a search for each would take most of the time; but only the start of large files.
search() {
    if [ "$(find -L "$@" -prune -size +16384 2>/dev/null)" ]; then
        for file; do head -c 8388608 -- "$file" | grep -iE "$including" | head -c 65536; echo; done
    else
        grep -hiE "$including" -- "$@" 2>/dev/null | head -c 1048576
    fi
}
for pattern; do
    found=
    for name in $root$pattern; do
        [ -e "$name" ] || continue
        found=y
        one "$name"
    done
    [ "$found" ] || row missing "$pattern"
done
IFS=$newline
set -f
set -- $readable
[ $# = 0 ] || search "$@" | while read -r line || [ "$line" ]; do printf 'line\t%s\n' "$line"; done
