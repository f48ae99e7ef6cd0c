"""Sh functions that identify a process, a boot, a machine, and the state of a change on its host.

A process is PID:START:BOOT: a PID alone soon belongs to another process, after a reboot at once. START is field 22 of
/proc/PID/stat. A machine is a digest of its machine id, which must not leave it, or of its host name.
"""

PROCESS = """
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
"""

# recorded FILE: whether the process whose identity is in the file runs; sets $process to its PID.
# phase CHANGE: sets $phase to confirmed, dropped, undone, undoing, guarded, arming, unarmed (nothing was touched), or
# abandoned: it was armed, and nothing works on it any more. An undo that was killed hands over to the next by a link
# `after-IDENTITY`, which only one process can make; $by is the last in this chain.
PHASE = (
    PROCESS
    + """
recorded() {
    recorded=
    { read -r recorded <"$1"; } 2>/dev/null
    process=${recorded%%:*}
    alive "$recorded"
}
undoer() {
    by=$(readlink "$1/settled")
    while next=$(readlink "$1/after-${by#undo-}"); do by=$next; done
    alive "${by#undo-}"
}
phase() {
    if [ -L "$1/settled" ]; then
        phase=$(readlink "$1/settled")
        case $phase in
            undo-*)
                if [ -e "$1/outcome" ]; then phase=undone
                elif undoer "$1"; then phase=undoing
                else phase=abandoned
                fi
                ;;
        esac
    elif recorded "$1/pid"; then phase=guarded
    elif [ -e "$1/armed" ]; then phase=abandoned
    elif recorded "$1/arming"; then phase=arming
    else phase=unarmed
    fi
}
"""
)

# machine: sets $machine. here CHANGE: refuses a change that was made on another machine with the same home.
MACHINE = (
    PROCESS
    + """
machine() {
    for file in /etc/machine-id /var/lib/dbus/machine-id; do
        id=
        { read -r id <"$file"; } 2>/dev/null
        case $id in '' | *[!0-9a-f]*) id= ;; *) break ;; esac
    done
    machine=$(printf 'cockpit %s' "${id:-$(uname -n)}" | sha256sum | cut -c1-16)
}
here() {
    machine
    made_on= made_in= made_at=
    { read -r made_on made_in made_at <"$1/machine"; } 2>/dev/null
    [ "$made_on" = "$machine" ] ||
        refuse "this change was made on ${made_at:-another machine}, which shares this home; undo it there"
    boot
}
"""
)
