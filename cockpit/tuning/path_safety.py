"""Sh functions that refuse a path which another user could lead elsewhere.

Whoever can write a directory can put a link in the place of a file there, and have root read, overwrite or give away
another file. So each directory on the way to a file, links included, must belong to root or to the acting user, and
nobody else may write it. A sticky bit (/tmp) is enough on the way, but not for the directory of the file itself.
"""

# judge DIRECTORY [last]: sets $flaw to what is wrong with it, "" if nothing is.
# walk PATH: judges all directories on the way; sets $place to the directory of the file behind its links, $entry to
# that file. secure FILE REAL: refuses; exit 5 if FILE no longer leads to REAL.
PATH_SAFETY = """
me=$(id -u)
judge() {
    flaw=
    set -- "$1" "$2" $(stat -c '%u %g 0%a %U %G' -- "$1")
    [ "$#" -ge 7 ] || { flaw="$1 cannot be examined"; return; }
    if [ "$3" != 0 ] && [ "$3" != "$me" ]; then
        flaw="its directory $1 belongs to $6, who could swap the file; chown $(id -un) $1"
        return
    fi
    [ "$2" = last ] || [ "$(($5 & 01000))" = 0 ] || return 0
    if [ "$(($5 & 02))" != 0 ]; then
        flaw="every user can write its directory $1, and so swap the file; chmod o-w $1"
    elif [ "$(($5 & 020))" != 0 ]; then
        case $(ls -ld -- "$1") in
            ??????????+*) flaw="its access list lets others write its directory $1; setfacl -b $1" ;;
            *) own_group "$4" || flaw="group $7 can write its directory $1, and so swap the file; chmod g-w $1" ;;
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
    rest=$1/ place= entry= hops=0
    judge /
    while [ -z "$flaw" ] && [ "$rest" ]; do
        name=${rest%%/*} rest=${rest#*/}
        case $name in '' | .) continue ;; ..) place=${place%/*}; continue ;; esac
        entry=$place/$name
        if [ -L "$entry" ]; then
            hops=$((hops + 1))
            case $(stat -c %u -- "$entry") in
                0 | "$me") [ "$hops" -le 40 ] || flaw="it leads through too many links" ;;
                *) flaw="its link $entry belongs to another user, who could lead it elsewhere" ;;
            esac
            link=$(readlink -- "$entry")
            case $link in /*) place= ;; esac
            rest=$link/$rest
        elif [ -d "$entry" ]; then
            place=$entry
            judge "$place"
        fi
    done
}
secure() {
    walk "$1"
    [ "$flaw" ] || [ "$entry" = "$2" ] || exit 5
    [ "$flaw" ] || judge "${place:-/}" last
    [ -z "$flaw" ] || refuse "$flaw"
}
"""
