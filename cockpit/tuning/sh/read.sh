# $1 file, $2 maximum size (bytes). Prints the path behind links, NUL, the content. Exit 6, with the path: the file is
# missing, but its directory exists (or is a missing directory for a unit's drop-ins).
if unmade "$1" && directory=$(cd -- "${1%/*/*}/" 2>/dev/null && pwd -P); then
    rest=${1%/*} rest=${rest##*/}/${1##*/}
    printf '%s/%s\0' "${directory%/}" "$rest"
    echo 'No such file or directory' >&2
    exit 6
fi
if missing "$1" && directory=$(cd -- "${1%/*}/" 2>/dev/null && pwd -P); then
    printf '%s/%s\0' "${directory%/}" "${1##*/}"
    echo 'No such file or directory' >&2
    exit 6
fi
meta=$(stat -L -c '%F|%s' -- "$1") || exit 4
case $meta in 'regular file|'* | 'regular empty file|'*) ;; *) refuse 'it is not a regular file' ;; esac
[ "${meta##*|}" -le "$2" ] || refuse "it is larger than $2 bytes"
real=$(readlink -f -- "$1") || refuse 'the path behind its links cannot be found'
printf '%s\0' "$real"
cat -- "$real" || exit 4
