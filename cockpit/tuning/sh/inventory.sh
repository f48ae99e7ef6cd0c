# $1 paths, $2 patterns of texts, $3 PROGRAM=OPTION that prints the program's compiled defaults, $4 PROGRAM=VARIABLE of
# its environment to print, $5 PROGRAM=PATTERN of loaded libraries to print; all separated by spaces. NAMES is replaced
# before this program is sent. Prints facts from /proc, ss and these files, one per line, parts separated by tabs.
files=$1 texts=$2 versions=$3 variables=$4 libraries=$5
row user "$(id -un)"

# master PID NAME: prints program, directory, unit and origin of a server's first process.
master() {
    certain=yes origin=host unit=
    program=$(readlink "/proc/$1/exe") directory=$(readlink "/proc/$1/cwd") || certain=no
    [ "$program" ] || program=$(command -v -- "$2") || program=
    space=$(readlink "/proc/$1/ns/pid") && [ "$space" != "$own_space" ] && origin=container
    [ -O "/proc/$1" ] || case $(stat -c %u "/proc/$1") in 0) ;; *) [ "$origin" = container ] || origin=user ;; esac
    while IFS= read -r line; do
        case $line in
            *:/system.slice/*.service) unit=${line##*/} ;;
            *:/system.slice/*.service/*) unit=${line#*:/system.slice/} unit=${unit%%/*} ;;
            # The root of a container's cgroups, as seen by a process that entered the container.
            *:*/system.slice/*.service) [ "$origin" = container ] || unit=${line##*/} ;;
        esac
    done <"/proc/$1/cgroup"
    row master "$1" "$program" "$directory" "$certain" "$unit" "$origin"
    for variable in $variables; do
        case $2 in ${variable%%=*}) variable=${variable#*=} ;; *) continue ;; esac
        row fact "$1" "$variable" \
            "$(head -c 65536 "/proc/$1/environ" | tr '\0\n\t' '\n  ' | sed -n "s/^$variable=//p" | head -n 1)"
    done
    for library in $libraries; do
        case $2 in ${library%%=*}) ;; *) continue ;; esac
        row fact "$1" library "$(grep -o "${library#*=}" "/proc/$1/maps" | sort -u | head -n 200 | tr '\n' ' ')"
    done
    [ "$origin" = host ] || return 0
    program=${program% (deleted)}
    case $programs in *"$newline$program$newline"*) return 0 ;; esac
    programs=$programs$program$newline
    option=
    for version in $versions; do
        case ${program##*/} in ${version%%=*}) option=${version#*=} ;; esac
    done
    [ "$option" ] && trusted "$program" || return 0
    timeout 5 "$program" "$option" </dev/null 2>&1 | head -c 16384 | tr '\t' ' ' | while IFS= read -r line; do
        row built "$program" "$line"
    done
}

programs=$newline titles= own_space=$(readlink /proc/self/ns/pid)
for at in /proc/[0-9]*/comm; do
    read -r name <"$at" || continue
    case $name in NAMES) ;; *) continue ;; esac
    at=${at%/comm}
    read -r line <"$at/stat" || continue
    set -f; set -- ${line##*) }; set +f
    read -r parent <"/proc/$2/comm" || parent=
    if [ "$parent" = "$name" ]; then
        row process "${at#/proc/}" "$2" "$name"
        titles="$titles $at/cmdline"
    else
        printf '%s\t' "$(row process "${at#/proc/}" "$2" "$name")"
        head -c 65536 -- "$at/cmdline" | tr '\0\n\t' '\t  '
        echo
        master "${at#/proc/}" "$name"
    fi
done 2>/dev/null
# Prints `/proc/PID/cmdline:TITLE` of the other processes: of its first word, up to the first other character.
[ -z "$titles" ] || grep -aHos '^[ -~]\{1,300\}' $titles
# real PATH: the socket behind links.
real() {
    if [ -L "$1" ]; then readlink -f -- "$1"; else cd -P -- "${1%/*}/" && printf '%s/%s\n' "${PWD%/}" "${1##*/}"; fi
}
ss -ltxnpH 2>/dev/null | while read -r family _ _ queue local _ two three users; do
    case $family in
        tcp) row listen "$local" "$two $three $users" "$queue" ;;
        u_*) [ ! -S "$local" ] || row unix "$(real "$local")" "$users" ;;
    esac
done
read -r name </proc/sys/kernel/hostname
for address in "$name" $(hostname -I 2>/dev/null); do row address "$address"; done
for file in $files; do [ ! -r "$file" ] || row file "$file"; done
set --
for file in $texts; do [ ! -r "$file" ] || set -- "$@" "$file"; done
# The shell reads a pipe byte by byte, so one awk reads all files if all are small.
if [ $# -gt 0 ] && command -v awk >/dev/null && [ -z "$(find -L "$@" -prune -size +128 2>/dev/null)" ]; then
    awk 'BEGIN {
        for (n = 1; n < ARGC; n++) {
            while ((getline line < ARGV[n]) > 0) printf "text\t%s\t%s\n", ARGV[n], line
            close(ARGV[n])
        }
    }' "$@"
else
    for file; do
        head -c 65536 -- "$file" | while IFS= read -r line || [ "$line" ]; do printf 'text\t%s\t%s\n' "$file" "$line"; done
    done
fi
