# Refuses a path that another user could redirect. A user who can write a directory can replace a file there by a link,
# and so have root read, overwrite or disclose another file. So each parent directory of a file, also behind links, must
# belong to root or the acting user, and nobody else may have write access. A sticky bit (/tmp) suffices, except for the
# directory of the file itself.
# judge DIRECTORY UID:GID:0MODE [last]: sets $flaw to the problem, "" without one; `last`: the file's own directory.
# walk PATH [last]: judges all parent directories, with `last` also the file's own; sets $place to the directory of the
# file behind links, $entry to that file.
# secure FILE REAL: refuses an unsafe path; exit 5 if FILE no longer resolves to REAL. If a drop-in's directory is
# missing, its parent is judged.
# The effective UID, as of `id -u`.
while read -r word _ me _; do [ "$word" != Uid: ] || break; done </proc/self/status
judge() {
    uid=${2%%:*} mode=${2##*:} gid=${2#*:}
    flaw=
    if [ "$uid" != 0 ] && [ "$uid" != "$me" ]; then
        flaw="its directory $1 belongs to $(stat -c %U -- "$1"), who could swap the file; chown $(id -un) $1"
        return
    fi
    [ "$3" ] || [ "$((mode & 01000))" = 0 ] || return 0
    if [ "$((mode & 02))" != 0 ]; then
        flaw="every user can write its directory $1, and so swap the file; chmod o-w $1"
    elif [ "$((mode & 020))" != 0 ]; then
        case $(ls -ld -- "$1") in
            ??????????+*) flaw="its access list lets others write its directory $1; setfacl -b $1" ;;
            *)
                own_group "${gid%:*}" ||
                    flaw="group $(stat -c %G -- "$1") can write its directory $1, and so swap the file; chmod g-w $1"
                ;;
        esac
    fi
}
own_group() {
    [ "$1" != 0 ] || return 0
    [ "$1" = "$(id -g)" ] && [ "$(id -gn)" = "$(id -un)" ] || return 1
    members=$({ getent group "$1" || grep "^[^:]*:[^:]*:$1:" /etc/group; } 2>/dev/null)
    case ${members##*:} in '' | "$(id -un)") ;; *) return 1 ;; esac
}
walk() {
    rest=$1/ place= entry= hops=0 flaw= last=$2
    set -- /
    while [ -z "$flaw" ] && [ "$rest" ]; do
        name=${rest%%/*} rest=${rest#*/}
        case $name in '' | .) continue ;; ..) place=${place%/*}; continue ;; esac
        entry=$place/$name
        if [ -L "$entry" ]; then
            hops=$((hops + 1))
            case $(stat -c %u -- "$entry") in
                0 | "$me") [ "$hops" -le 40 ] || flaw="too many levels of symbolic links" ;;
                *) flaw="its link $entry belongs to another user, who could redirect it" ;;
            esac
            link=$(readlink -- "$entry")
            case $link in /*) place= ;; esac
            rest=$link/$rest
        elif [ -d "$entry" ]; then
            place=$entry
            set -- "$@" "$place"
        fi
    done
    [ -z "$last" ] || set -- "$@" "${place:-/}"
    [ "$flaw" ] || rights=$(stat -c '%u:%g:0%a' -- "$@") || flaw="a parent directory of $entry cannot be inspected"
    while [ -z "$flaw" ] && [ "$#" -gt 0 ]; do
        case $# in 1) kind=$last ;; *) kind= ;; esac
        judge "$1" "${rights%%[!0-9:]*}" "$kind"
        rights=${rights#*[!0-9:]}
        shift
    done
}
secure() {
    if unmade "$2"; then
        walk "${1%/*/*}/new" last
        [ "$flaw" ] || [ "${entry%/*}" = "${2%/*/*}" ] || exit 5
    else
        walk "$1" last
        [ "$flaw" ] || [ "$entry" = "$2" ] || exit 5
    fi
    [ -z "$flaw" ] || refuse "$flaw"
}
