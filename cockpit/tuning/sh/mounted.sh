# mounted PATH PROCESS: whether a path of this process (its number, or `self`) is a mount point.
mounted() {
    while read -r _ _ _ _ point _; do [ "$point" != "$1" ] || return 0; done <"/proc/$2/mountinfo"
    return 1
} 2>/dev/null
