# mounted PATH PROCESS: whether the path is a mount point for that process (a PID, or `self`).
mounted() {
    while read -r _ _ _ _ point _; do [ "$point" != "$1" ] || return 0; done <"/proc/$2/mountinfo"
    return 1
} 2>/dev/null
