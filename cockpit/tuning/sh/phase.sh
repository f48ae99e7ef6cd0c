# recorded FILE: whether the process with the identity in the file is running; sets $process to its PID.
# unrestored OUTCOME: whether an undo left a file, a value or the running server as changed; sets $left to these words.
# phase CHANGE: sets $phase to confirmed, dropped, undone, partial (undone, but see unrestored), kept (the same, and the
# user has accepted it by the file `kept`), undoing, guarded, arming, unarmed (nothing was touched), or abandoned: it was
# armed, but neither a guard nor an undo is running. An undo that was killed, or left something, is continued by the
# process that creates a link `after-IDENTITY`, which only one process can do; $by is the last in this chain.
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
unrestored() {
    left=
    while read -r word _ report _; do
        case $word-$report in file-left | value-foreign | value-stuck | reload-*) left="$left $word" ;; esac
    done <"$1"
    [ "$left" ]
}
phase() {
    if [ -L "$1/settled" ]; then
        phase=$(readlink "$1/settled")
        case $phase in
            undo-*)
                if [ -e "$1/outcome" ]; then
                    phase=undone
                    ! unrestored "$1/outcome" || { [ -e "$1/kept" ] && phase=kept || phase=partial; }
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
