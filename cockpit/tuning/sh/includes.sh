# $1 PID of a server, $2 the directory that is its root here, "" for /, then paths or patterns there. Prints for each file: `file NAME REAL SAME`, parts separated by tabs, with
# SAME yes or no: whether the server's own root has the same file (unknown: not readable; yes for a file that the server
# read before it went into a chroot), then its lines that may include others: `line TEXT`. `missing NAME`: no such file,
# `unread NAME`: not readable.
server=$1 root=$2
visible= shared=
! ls -d "/proc/$server/root/" >/dev/null 2>&1 || visible=y
[ "$(readlink "/proc/$server/ns/mnt")" != "$(readlink /proc/self/ns/mnt)" ] || shared=y
shift 2
IFS=
one() {
    if [ -d "$1" ]; then
        for inner in "$1"/*; do [ ! -f "$inner" ] || one "$inner"; done
        return 0
    fi
    # Reading a pipe or a device would not end.
    [ -f "$1" ] || return 0
    # Links of another root lead elsewhere from here.
    real=$1
    [ "$root" ] || real=$(readlink -f -- "$1") || return 0
    [ -r "$1" ] || { printf 'unread\t%s\n' "$1"; return 0; }
    same=unknown
    if [ "$root" ]; then
        same=yes
    elif [ "$visible" ]; then
        same=no
        [ ! "$1" -ef "/proc/$server/root$1" ] || same=yes
        [ -e "/proc/$server/root$1" ] || [ -z "$shared" ] || same=yes
    fi
    printf 'file\t%s\t%s\t%s\n' "$1" "$real" "$same"
    head -c 8388608 -- "$1" | grep -iE 'include|serverroot|jkworkersfile|^[[:space:]]*import[[:space:]]' | head -c 65536 |
        while read -r line || [ "$line" ]; do printf 'line\t%s\n' "$line"; done
}
for pattern; do
    found=
    for name in $root$pattern; do
        [ -e "$name" ] || continue
        found=y
        one "$name"
    done
    [ "$found" ] || printf 'missing\t%s\n' "$pattern"
done
