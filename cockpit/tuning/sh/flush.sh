# flush PATH...: syncs files and directories to disk. Old versions of sync(1) take no arguments.
flush() {
    sync -- "$@" 2>/dev/null && return
    case $(sync --help 2>&1) in *FILE*) [ -d "$1" ] || refuse "$1 could not be written to the disk" ;; esac
    sync
}
