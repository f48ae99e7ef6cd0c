# $1 file, $2 its earlier size, $3 its earlier inode. Prints the bytes written since then, at most 64 KiB.
from=$2
[ "$(stat -L -c %i -- "$1")" = "$3" ] || from=0
tail -c "+$((from + 1))" -- "$1" | head -c 65536
