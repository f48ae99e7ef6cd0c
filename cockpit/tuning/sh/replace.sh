# Replaces, creates or removes a configuration file atomically, synced to disk. The new file is created in a private
# directory beside the old file, which only this user can enter and which no wildcard for configuration files matches.
# Commands run inside that directory and name the file `new`, so that the directory's random name is in no argv.
# prepare NUMBER FILE REAL WAS SOURCE BECOMES: creates a copy of REAL with its owner, mode and attributes, and the
# content of SOURCE. WAS and BECOMES are digests.
# swap: moves the copy to REAL if REAL still has the digest WAS. clean: removes the copy's directory.
# WAS absent: REAL is created, mode 0644; BECOMES absent: REAL is removed. The directory for a unit's drop-ins is
# created before the first drop-in. `directories` lists those that cockpit created; they are removed when they are
# empty. A directory that is empty before a change creates its file was emptied or created by others, and stays.
attributes() {
    mode=$(ls -ld -- "$1")
    echo "${mode%% *}"
    stat -c %C -- "$1"
    getfattr --absolute-names -d -m - -e hex -- "$1" | grep -v -e '^#' -e '^security\.ima=' -e '^security\.evm='
} 2>/dev/null
copy() {
    cp --preserve=all -- "$1" new 2>/dev/null || {
        cp -p -- "$1" new || exit 4
        [ ! -e /sys/fs/selinux/enforce ] || stat -c %C -- "$1" >/dev/null 2>&1 ||
            refuse 'its security label cannot be kept by the cp there; install coreutils'
    }
    [ "$(attributes "$1")" = "$(attributes new)" ] ||
        refuse 'its access list, extended attributes or security label cannot be kept there; install coreutils'
    [ "$(stat -c '%a %u %g' new)" = "$(stat -c '%a %u %g' -- "$1")" ] ||
        refuse 'its owner and mode cannot be kept by this user'
}
boxes() { printf '%s/.webcockpit-%s-' "${1%/*}" "${change##*/}"; }
make() {
    printf '%s\n' "${1%/*}" >>"${change%/*}/directories" && flush "${change%/*}/directories" && mkdir -m 755 -- "${1%/*}"
}
unmake() {
    made=${change%/*}/directories
    grep -Fqx -- "${1%/*}" "$made" 2>/dev/null || return 0
    rmdir -- "${1%/*}" 2>/dev/null || [ ! -e "${1%/*}" ] || return 0
    unlist "${1%/*}"
    flush "${1%/*/*}"
}
unlist() {
    grep -Fvx -- "$1" "$made" >"$made.new"
    mv -f -- "$made.new" "$made"
}
leave() {
    made=${change%/*}/directories
    ! grep -Fqx -- "${1%/*}" "$made" 2>/dev/null || [ "$(ls -A -- "${1%/*}")" ] || unlist "${1%/*}"
}
prepare() {
    at=$1 file=$2 real=$3 was=$4 source=$5 becomes=$6
    secure "$file" "$real"
    matches "$real" "$was" || exit 5
    if [ "$was" = absent ] && unmade "$real"; then make "$real" || exit 4
    elif [ "$was" = absent ] && [ "$barrier" = settled ]; then leave "$real"
    fi
    if [ "$was" = absent ] || [ "$becomes" = absent ]; then
        [ -d "${real%/*}" ] || refuse 'its directory is gone'
        [ -w "${real%/*}" ] || refuse 'its directory is read-only for this user'
        [ "$becomes" != absent ] || return 0
    else
        [ -w "$real" ] || refuse 'it is read-only for this user'
        ! mounted "$real" self || refuse 'it is mounted as a single file into this container and cannot be replaced; change it outside (changes_outside), or mount its directory'
        [ "$(stat -c %h -- "$real")" = 1 ] || refuse 'it has a second hard link, which would keep the old content'
    fi
    box=$(mktemp -d -- "$(boxes "$real")XXXXXXXXXX") && cd -- "$box" || exit 4
    [ "$was" = absent ] || copy "$real"
    cat -- "$source" >new || exit 4
    [ "$was" != absent ] || chmod 644 new || exit 4
    holds new "$becomes" || refuse 'it could not be written completely; is the disk full?'
    flush new .
    eval "box_$at=\$box"
    cd /
}
swap() {
    at=$1 file=$2 real=$3 was=$4 becomes=$6
    [ ! -L "$change/$barrier" ] || refuse 'the change was given up'
    secure "$file" "$real"
    matches "$real" "$was" || exit 5
    eval "box=\$box_$at"
    if [ "$becomes" = absent ]; then rm -f -- "$real" || exit 4
    elif [ "$was" = absent ]; then cd -- "$box" && ln -- new "$real" 2>/dev/null || exit 5
    else cd -- "$box" && mv -f -- new "$real" || exit 4
    fi
    cd /
    flush "${real%/*}"
    [ "$becomes" != absent ] || unmake "$real"
    printf 'did %s\n' "$at"
}
clean() {
    for box in "$(boxes "$3")"*; do
        [ ! -d "$box" ] || ( cd -- "$box" && rm -f new )
    done
    find "${3%/*}" -maxdepth 1 -type d -name ".webcockpit-${change##*/}-*" -empty -delete 2>/dev/null ||
        rmdir -- "$(boxes "$3")"* 2>/dev/null
    unmake "$3"
}
trap 'exit 1' HUP INT TERM PIPE
