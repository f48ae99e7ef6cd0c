# identify PID: sets $identity to PID:START:BOOT, because PIDs are reused, and restart at a reboot. START is field 22 of
# /proc/PID/stat. alive IDENTITY: whether that process is running. boot: sets $boot.
boot() { { read -r boot </proc/sys/kernel/random/boot_id; } 2>/dev/null || boot=unknown; }
started() {
    { read -r line <"/proc/$1/stat"; } 2>/dev/null || return 1
    set -f; set -- ${line##*) }; set +f
    [ "$#" -ge 20 ] && [ "$1" != Z ] && [ "$1" != X ] || return 1
    shift 19
    started=$1
}
identify() { boot; started "$1" && identity=$1:$started:$boot; }
alive() {
    case $1 in [0-9]*:[0-9]*:*) ;; *) return 1 ;; esac
    identify "${1%%:*}" && [ "$identity" = "$1" ]
}
